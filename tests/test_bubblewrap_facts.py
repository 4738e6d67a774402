"""What a running sandbox says of itself, read as facts: each hole is told as one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.walls import Walls
from harness.workspaces.bubblewrap_facts import facts_of

SEALED = Walls(image="host")

SAID = """Name:\tcat
Uid:\t20001\t20001\t20001\t20001
Gid:\t20001\t20001\t20001\t20001
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
==
Limit                     Soft Limit           Hard Limit           Units
Max file size             1024                 1024                 bytes
Max core file size        0                    0                    bytes
Max processes             41                   41                   processes
==
1 0 0:1 / / ro,nosuid - ext4 x ro
2 1 0:2 / /dev ro,nosuid - tmpfs x rw
3 1 0:3 / /workspace rw,nosuid - tmpfs x rw
4 2 0:4 /null /dev/null rw - devtmpfs x rw
5 2 0:5 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=64k,uid=1
7 2 0:4 /null /proc/vmstat ro - devtmpfs x rw
==
Inter-|   Receive
 face |bytes
    lo:       0
==
net:[1]
pid:[2]
ipc:[3]
uts:[4]
mnt:[5]
user:[6]
cgroup:[7]
"""
OUTSIDE = ["net:[11]", "pid:[12]", "ipc:[13]", "uts:[14]", "mnt:[15]", "user:[16]", "cgroup:[17]"]


def test_facts_of_a_sealed_sandbox() -> None:
    """What the kernel says of a strict one reads as strict."""
    facts = facts_of(SAID, SEALED, OUTSIDE, None)
    assert (facts["network_mode"], facts["pid_mode"], facts["ipc_mode"]) == ("none", "private", "private")
    assert (facts["cap_drop"], facts["seccomp"], facts["no_new_privileges"]) == (["ALL"], True, True)
    assert (facts["read_only_root"], facts["mounts"], facts["devices"]) == (True, [], [])
    assert (facts["pids_limit"], facts["exec_user"], facts["privileged"]) == (40, "20001:20001", False)
    assert (facts["core_bytes"], facts["shm_bytes"], facts["masked_paths"]) == (0, 64 << 10, ["/proc/vmstat"])
    assert (facts["uts_mode"], facts["cgroup_mode"], facts["cap_add"]) == ("private", "private", [])


def test_the_gateways_folder_is_told_only_if_it_is_that(tmp_path: Path) -> None:
    """What is mounted at its place is the gateway's by device and root, not by name; the forwarder's place is not the seat's."""
    gateway = tmp_path / "gateway"
    gateway.mkdir()
    device = gateway.stat().st_dev
    run = "9 1 0:9 / /run ro - tmpfs tmpfs rw,size=64k\n"
    shown = f"{run}8 9 {os.major(device)}:{os.minor(device)} {gateway} /run/gateway ro - ext4 x rw\n1 0 0:1 / / ro"
    said = SAID.replace("1 0 0:1 / / ro", shown)
    facts = facts_of(said, replace(SEALED, network="gateway"), OUTSIDE, gateway)
    assert (facts["network_mode"], facts["network_disabled"], facts["pids_limit"]) == ("gateway", True, 39)
    assert facts["mounts"] == [{"source": "gateway", "target": "/run/gateway", "read_only": True}]
    elsewhere = said.replace(f"{gateway} /run", f"{tmp_path}/other /run")
    other_device = said.replace(f"{os.major(device)}:{os.minor(device)} {gateway}", f"0:4095 {gateway}")
    for other in (elsewhere, other_device):
        told = facts_of(other, replace(SEALED, network="gateway"), OUTSIDE, gateway)
        assert (told["network_mode"], told["mounts"][0]["source"]) == ("none", None)


@pytest.mark.parametrize(
    ("before", "after", "key", "value"),
    [
        ("net:[1]", "net:[11]", "network_mode", "host"),
        ("    lo:       0", "    lo:       0\n  eth0: 1", "network_mode", "host"),
        ("pid:[2]", "pid:[12]", "pid_mode", "host"),
        ("user:[6]", "user:[16]", "privileged", True),
        ("CapBnd:\t0000000000000000", "CapBnd:\t0000000000002400", "cap_add", ["NET_BIND_SERVICE", "NET_RAW"]),
        ("CapEff:\t0000000000000000", "CapEff:\t000001ffffffffff", "cap_drop", []),
        ("uts:[4]", "uts:[14]", "uts_mode", "host"),
        ("cgroup:[7]", "cgroup:[17]", "cgroup_mode", "host"),
        ("/proc/vmstat ro", "/workspace ro", "masked_paths", []),
        ("0                    0 ", "unlimited            unlimited ", "core_bytes", None),
        ("rw,size=64k,uid=1", "rw,uid=1", "shm_bytes", None),
        (
            "/null /proc/vmstat",
            "/ /run/gateway",
            "mounts",
            [{"source": None, "target": "/run/gateway", "read_only": True}],
        ),
        ("/null /proc/vmstat", "/ /run", "mounts", [{"source": None, "target": "/run", "read_only": True}]),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "no_new_privileges", False),
        ("Seccomp:\t2", "Seccomp:\t0", "seccomp", False),
        ("/ / ro,", "/ / rw,", "read_only_root", False),
        ("/dev/null rw", "/dev/sda rw", "devices", ["sda"]),
        ("41                   41 ", "unlimited            unlimited ", "pids_limit", None),
        (
            "/null /dev/null",
            "/x /srv/secret",
            "mounts",
            [{"source": None, "target": "/srv/secret", "read_only": False}],
        ),
    ],
)
def test_facts_tell_each_hole(before: str, after: str, key: str, value: object) -> None:
    """A sandbox that is not what was asked for does not read as if it were."""
    assert before in SAID
    assert facts_of(SAID.replace(before, after), SEALED, OUTSIDE, None)[key] == value


def test_facts_that_were_cut_are_no_facts() -> None:
    """Too little said is an error, never a default."""
    with pytest.raises(ValueError, match="parts of 5"):
        facts_of(SAID.rpartition("==\n")[0], SEALED, OUTSIDE, None)
