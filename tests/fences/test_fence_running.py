"""What is running is compared with what was asked for, fact by fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fences.policy import FencePolicy
from fences.running import check_running, compare_running, running_rows
from harness.errors import FenceError
from harness.views import Finding
from harness.walls import GATEWAY_FOLDER, GATEWAY_SOURCE, Mount, Walls

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
    "uts_mode": "private",
    "cgroup_mode": "private",
    "shm_bytes": 16 << 20,
    "file_bytes": 64 << 20,
    "core_bytes": 0,
    "open_files": 1024,
    "user": "20000:20000",
}


def test_a_workspace_as_asked_passes():
    """Every fact of a sealed workspace agrees, and each has its row."""
    facts = check_running(FencePolicy(), WALLS, FACTS)
    assert {fact.agrees for fact in facts} == {True}
    assert {row.holds for row in running_rows(facts)} == {True}
    other = check_running(FencePolicy(), WALLS, {**FACTS, "exec_user": "20077:20077"})
    assert running_rows(other) == running_rows(facts), "a cell's own user must not make two tables differ"
    assert {fact.name for fact in facts} == {*FACTS, "keeper_apart"} - {"user"}


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
        ("uts_mode", "host"),
        ("cgroup_mode", "host"),
        ("shm_bytes", 64 << 20),
        ("file_bytes", -1),
        ("core_bytes", -1),
        ("open_files", 1 << 20),
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


def test_a_keeper_that_is_the_seats_own_user_is_named():
    """The first process must be another user's, unless the walls say otherwise; one that is not told confirms nothing."""
    same = {**FACTS, "user": FACTS["exec_user"]}
    with pytest.raises(FenceError, match="keeper_apart: asked for another user than the seat, running with 20001"):
        check_running(FencePolicy(), WALLS, same)
    assert check_running(FencePolicy(), replace(WALLS, keeper_apart=False), same)
    row = next(row for row in running_rows(compare_running(WALLS, {**FACTS, "user": None})) if "keeper" in row.probe)
    assert (row.probe, row.holds) == ("running-keeper-apart", None)


def test_the_gateway_is_its_own_folder_read_only_and_nothing_else():
    """Exactly that mount, by the name that a backend shows for the very folder; anything beside it is named."""
    walls = replace(WALLS, network="gateway")
    folder = {"source": GATEWAY_SOURCE, "target": GATEWAY_FOLDER, "read_only": True}
    facts = {**FACTS, "network_mode": "gateway", "mounts": [folder]}
    assert check_running(FencePolicy(), walls, facts)
    for wrong in (
        [],
        [{**folder, "read_only": False}],
        [{**folder, "source": "/srv/other"}],
        [folder, {"source": "/etc", "target": "/mnt", "read_only": True}],
    ):
        with pytest.raises(FenceError, match="mounts: asked for"):
            check_running(FencePolicy(), walls, {**facts, "mounts": wrong})
    with pytest.raises(FenceError, match="mounts: asked for"):
        check_running(FencePolicy(), WALLS, {**FACTS, "mounts": [folder]})


def test_added_capabilities_and_shared_namespaces_are_compared_with_what_was_asked():
    """A control's own weakening agrees with itself, and is no more than it asked for."""
    walls = replace(WALLS, capabilities=("SYS_TIME", "NET_RAW"), host_namespaces=("uts",))
    facts = {**FACTS, "cap_add": ["NET_RAW", "SYS_TIME"], "uts_mode": "host"}
    assert check_running(FencePolicy(), walls, facts)
    with pytest.raises(FenceError, match="cap_add"):
        check_running(FencePolicy(), walls, {**facts, "cap_add": ["NET_RAW", "SYS_ADMIN", "SYS_TIME"]})
    with pytest.raises(FenceError, match="uts_mode"):
        check_running(FencePolicy(), WALLS, {**FACTS, "uts_mode": "host"})
