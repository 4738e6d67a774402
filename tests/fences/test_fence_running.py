"""What is running is compared with what was asked for, fact by fact."""

from __future__ import annotations

import pytest

from fences.policy import FencePolicy
from fences.running import check_running, compare_running, running_rows
from harness.errors import FenceError
from harness.views import Finding
from harness.walls import Mount, Walls

WALLS = Walls(image="img")
FACTS = {
    "network_mode": "none",
    "network_disabled": True,
    "exec_user": "20001:20001",
    "privileged": False,
    "cap_add": [],
    "cap_drop": ["ALL"],
    "no_new_privileges": True,
    "seccomp": True,
    "read_only_root": True,
    "mounts": [],
    "devices": [],
    "pid_mode": "private",
    "ipc_mode": "private",
    "pids_limit": 128,
    "memory_bytes": 1 << 30,
    "memory_and_swap_bytes": 1 << 30,
    "nano_cpus": 10**9,
}


def test_a_workspace_as_asked_passes():
    """Every fact of a sealed workspace agrees, and each has its row."""
    facts = check_running(FencePolicy(), WALLS, FACTS)
    assert {fact.agrees for fact in facts} == {True}
    assert {row.holds for row in running_rows(facts)} == {True}
    assert {fact.name for fact in facts} == set(FACTS)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("network_mode", "bridge"),
        ("network_disabled", False),
        ("exec_user", "0:0"),
        ("exec_user", "root"),
        ("exec_user", ""),
        ("privileged", True),
        ("cap_add", ["SYS_ADMIN"]),
        ("cap_drop", []),
        ("no_new_privileges", False),
        ("seccomp", False),
        ("read_only_root", False),
        ("mounts", [{"source": "/var/run/docker.sock", "target": "/s", "read_only": True}]),
        ("devices", ["/dev/kvm"]),
        ("pid_mode", "host"),
        ("ipc_mode", "host"),
        ("pids_limit", -1),
        ("memory_bytes", 0),
        ("memory_and_swap_bytes", -1),
        ("nano_cpus", 0),
    ],
)
def test_a_fact_that_differs_is_named(key, value):
    """Each fact alone refuses, with its name, what was asked for and what is running."""
    with pytest.raises(FenceError, match=f"{key}: asked for .*running with"):
        check_running(FencePolicy(), WALLS, {**FACTS, key: value})
    row = next(row for row in running_rows(compare_running(WALLS, {**FACTS, key: value})) if row.holds is not True)
    assert (row.probe, row.holds) == ("running-" + key.replace("_", "-"), False)


def test_a_fact_that_is_not_told_is_inconclusive():
    """An absent fact confirms nothing: it is reported as not told, and never as agreeing."""
    facts = check_running(FencePolicy(), WALLS, {key: FACTS[key] for key in FACTS if key != "seccomp"})
    row = next(row for row in running_rows(facts) if row.probe == "running-seccomp")
    assert (row.finding_up, row.holds) == (Finding.INCONCLUSIVE, None)


def test_a_fact_that_is_required_must_be_told():
    """A policy that requires a fact is not content with a backend that does not tell it."""
    with pytest.raises(FenceError, match=r"seccomp.*not told"):
        check_running(FencePolicy(requires=("probe:running-seccomp",)), WALLS, {**FACTS, "seccomp": None})


def test_a_weakened_workspace_is_compared_with_what_it_asked_for():
    """The comparison is with the walls at hand: a control's mount agrees, and its absence does not."""
    walls = Walls(image="img", mounts=(Mount(source="/a", target="/b"),))
    there = {**FACTS, "mounts": [{"source": "/a", "target": "/b", "read_only": True}]}
    assert check_running(FencePolicy(), walls, there)
    with pytest.raises(FenceError, match="mounts"):
        check_running(FencePolicy(), walls, FACTS)
