"""What probes' programs make of a workspace that is told to them, line by line: mounts, policies, launchers."""

from __future__ import annotations

import builtins
import io
import json
import os
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fences.bodies import MOUNTS
from fences.policy import FencePolicy
from fences.probes_files import PathSocketsProbe
from fences.probes_kernel import KernelCallsProbe, PtraceProbe
from fences.probes_mounts import MountFlagsProbe, MountInfoProbe, MountsProbe
from fences.probes_process import DescriptorsProbe, TerminalProbe
from fences.programs import PRELUDE
from fences.rendering import render
from fences.stage import set_the_stage
from fences.weakenings import NotMeasuredError
from harness.views import Site
from tests.fake_workspace import FakeWorkspace, ran

STRICT = render(FencePolicy(), "img")
GATEWAY = render(FencePolicy(network="gateway"), "img")
TRACED = render(FencePolicy(ptrace=True), "img")
NOWHERE = Site(canaries={}, places={"mark": "proctor-stage-x"})

DOCKER = """\
1 0 0:95 / / ro,relatime - overlay overlay rw,lowerdir=/var/lib/x
2 1 0:94 / /proc rw,nosuid,nodev,noexec - proc proc rw
3 1 0:98 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
4 3 0:99 / /dev/pts rw,nosuid,noexec - devpts devpts rw,gid=5
5 1 0:97 / /sys ro,nosuid,nodev,noexec - sysfs sysfs ro
6 3 0:93 / /dev/mqueue rw,nosuid,nodev,noexec - mqueue mqueue rw
7 1 254:0 /usr/bin/tini-static /usr/sbin/docker-init ro - ext4 /dev/vda rw
8 1 0:97 / /workspace rw,nosuid,nodev master:8 - tmpfs tmpfs rw,size=262144k
9 1 0:102 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw,size=65536k
10 1 254:0 /var/lib/proctor/docker/x/hosts /etc/hosts ro - ext4 /dev/vda rw
11 2 0:98 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw,size=65536k
12 3 0:103 / /dev/shm rw,nosuid,nodev,noexec - tmpfs tmpfs rw
"""
BUBBLEWRAP = """\
1 0 254:0 /var/lib/proctor/images/rootfs/1a / ro,nosuid,nodev - ext4 /dev/vda rw
2 1 0:103 / /proc rw,nosuid,nodev,noexec - proc proc rw
3 2 0:6 /null /proc/kcore ro,nosuid - devtmpfs devtmpfs rw
4 1 0:97 / /dev ro,nosuid,nodev - tmpfs tmpfs rw,mode=755
5 4 0:6 /urandom /dev/urandom rw,nosuid - devtmpfs devtmpfs rw
6 4 0:106 / /dev/pts rw,nosuid,noexec - devpts devpts rw
7 4 0:107 / /dev/shm rw,nosuid,nodev - tmpfs tmpfs rw
8 1 0:108 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw
9 1 0:93 / /workspace rw,nosuid,nodev - tmpfs proctor rw
10 1 0:104 / /run ro,nosuid,nodev - tmpfs tmpfs rw,size=64k
"""
GATE = "20 1 0:97 / /run/gateway ro,nosuid,nodev,noexec - tmpfs proctor rw\n"


def tries_of(probe, mounts, arguments, monkeypatch, *, folders=None):
    """What the probe's program reports of a workspace with these mounts, in which folders hold what is told."""

    def opened(path, *rest, **more):
        if str(path).startswith("/proc/self/mount"):
            return io.BytesIO(mounts.encode()) if "b" in "".join(rest) else io.StringIO(mounts)
        if path == "/proc/self/uid_map":
            return io.StringIO("20001 0 1\n")
        return builtins.open(path, *rest, **more)  # noqa: PTH123 - what the program itself would call

    monkeypatch.setattr(sys, "argv", ["-c", json.dumps(arguments)])
    monkeypatch.setattr(os, "listdir", lambda path: (folders or {}).get(path, []))
    space = {"open": opened, "__name__": "probe"}
    exec(compile(PRELUDE + probe.body, probe.name, "exec"), space)  # noqa: S102 - our own program
    return [SimpleNamespace(**{"fact": None, "signature": None, **item}) for item in space["tries"]]


def facts_of(*args, **more):
    """The facts alone, by what they are of."""
    return {item.what: item.fact for item in tries_of(*args, **more) if item.fact}


@pytest.mark.parametrize("told", [DOCKER, BUBBLEWRAP], ids=["docker", "bubblewrap"])
def test_the_mounts_of_a_sealed_workspace_belong_there(told, monkeypatch):
    """Neither backend's own mounts are named, and their flags are as they must be."""
    for probe in (MountsProbe(), MountFlagsProbe(), MountInfoProbe()):
        arguments = probe.arguments(STRICT, NOWHERE)
        assert facts_of(probe, told, arguments, monkeypatch) == {}, probe.name
        assert tries_of(probe, told, arguments, monkeypatch)[-1].signature == "NOTHING"


@pytest.mark.parametrize(
    ("line", "place", "fact"),
    [
        ("30 1 254:0 /opt /opt ro - ext4 /dev/vda rw", "/opt", "ext4 read-only"),
        ("30 1 254:0 /opt /tmp/x rw - ext4 /dev/vda rw", "/tmp/x", "ext4 writable"),
        ("30 1 254:0 /srv/tmp /tmp rw,nosuid,nodev - ext4 /dev/vda rw", "/tmp", "ext4 writable"),
        ("30 1 0:50 /part /tmp rw,nosuid,nodev - tmpfs tmpfs rw", "/tmp", "tmpfs writable"),
        ("30 1 0:50 / /dev/shm/x rw,nosuid,nodev - tmpfs tmpfs rw", "/dev/shm/x", "tmpfs writable"),
        ("30 1 254:0 /etc/hosts /etc/hosts rw - ext4 /dev/vda rw", "/etc/hosts", "ext4 writable"),
        ("30 1 254:0 /x /usr/share/x ro - ext4 /dev/vda rw", "/usr/share/x", "ext4 read-only"),
        ("30 1 0:51 /docker.sock /run/docker.sock ro - tmpfs tmpfs rw", "/run/docker.sock", "tmpfs read-only"),
        ("30 1 0:51 / /run rw - tmpfs tmpfs rw", "/run", "tmpfs writable"),
        ("30 1 0:52 / /workspace rw - nfs4 server:/x rw", "/workspace", "nfs4 writable"),
        ("30 1 0:53 / /sys/fs/bpf rw - bpf bpf rw", "/sys/fs/bpf", "bpf writable"),
        ("30 1 0:54 /kmsg /dev/kmsg rw - devtmpfs devtmpfs rw", "/dev/kmsg", "devtmpfs writable"),
        ("30 1 254:0 /a\\040b /a\\040b ro - ext4 /dev/vda rw", "/a b", "ext4 read-only"),
    ],
)
@pytest.mark.parametrize("told", [DOCKER, BUBBLEWRAP], ids=["docker", "bubblewrap"])
def test_any_other_mount_is_named(told, line, place, fact, monkeypatch):
    """By its place and its kind, whatever it is called and wherever it lies."""
    probe = MountsProbe()
    facts = facts_of(probe, told + line + "\n", probe.arguments(STRICT, NOWHERE), monkeypatch)
    assert facts[place] == fact


def test_an_image_in_parts_belongs_and_the_hosts_folders_do_not(monkeypatch):
    """Folders from where /usr is from are the image's; a folder of the host in the same place is not."""
    probe, base = MountsProbe(), "/var/lib/proctor/images/rootfs/1a"
    parts = "".join(
        f"4{n} 1 254:0 {base}{at} {at} ro - ext4 /dev/vda rw\n" for n, at in enumerate(["/usr", "/etc", "/opt"])
    )
    foreign = "50 1 254:0 /etc /home ro - ext4 /dev/vda rw\n51 1 254:0 /opt /srv ro - ext4 /dev/vda rw\n"
    arguments = probe.arguments(STRICT, NOWHERE)
    assert facts_of(probe, BUBBLEWRAP + parts, arguments, monkeypatch) == {}
    assert set(facts_of(probe, BUBBLEWRAP + parts + foreign, arguments, monkeypatch)) == {"/home", "/srv", "mounts"}
    writable = parts.replace("/opt ro", "/opt rw")
    assert "/opt" in facts_of(probe, BUBBLEWRAP + writable, arguments, monkeypatch)
    hosts = "".join(f"4{n} 1 254:0 {at} {at} ro - ext4 /dev/vda rw\n" for n, at in enumerate(["/usr", "/etc"]))
    assert "/etc" in facts_of(probe, BUBBLEWRAP + hosts, arguments, monkeypatch)


def test_the_gateways_folder_belongs_where_the_policy_has_one(monkeypatch):
    """Read-only, with its socket and nothing else, and only with the network `gateway`."""
    probe = MountsProbe()

    def found(fence, line, names):
        return facts_of(
            probe, BUBBLEWRAP + line, probe.arguments(fence, NOWHERE), monkeypatch,
            folders={"/run": ["gateway"], "/run/gateway": names},
        )  # fmt: skip

    assert found(GATEWAY, GATE, []) == {}
    assert found(GATEWAY, GATE, ["model.sock"]) == {}
    assert "/run/gateway" in found(STRICT, GATE, ["model.sock"])
    assert "/run/gateway" in found(GATEWAY, GATE, ["model.sock", "docker.sock"])
    assert "/run/gateway" in found(GATEWAY, GATE.replace(" ro,", " rw,"), ["model.sock"])
    assert "/run/gateway/x" in found(GATEWAY, GATE + GATE.replace("/run/gateway ", "/run/gateway/x "), ["model.sock"])


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("30 1 254:0 /x /mnt rw,nosuid - ext4 /dev/vda rw", "writable without nodev"),
        ("30 1 254:0 /x /mnt rw,nodev - ext4 /dev/vda rw", "writable without nosuid"),
        ("30 1 254:0 /x /mnt rw - ext4 /dev/vda rw", "writable without nodev nosuid"),
        ("30 1 254:0 /x /mnt ro - ext4 /dev/vda rw", None),
        ("30 1 254:0 /x /mnt rw - ext4 /dev/vda ro", None),
        ("30 1 254:0 /x /mnt rw,nosuid,nodev - ext4 /dev/vda rw", None),
    ],
)
def test_writable_mounts_need_both_flags(line, fact, monkeypatch):
    """A mount that can be written to and lacks a flag is named; one that is read-only in either way is not."""
    probe = MountFlagsProbe()
    facts = facts_of(probe, DOCKER + line + "\n", probe.arguments(STRICT, NOWHERE), monkeypatch)
    assert facts.get("/mnt") == fact


def test_flags_that_are_set_are_none_that_lack(monkeypatch):
    """In a control inside a user namespace nothing lacks: the note of where it is makes no finding."""
    probe = MountFlagsProbe()
    arguments = {**probe.arguments(STRICT, NOWHERE), "control": True}
    tries = tries_of(probe, BUBBLEWRAP, arguments, monkeypatch)
    assert tries[-1].signature == "NOTHING"
    assert not [item for item in tries if item.fact]


def test_a_folder_of_the_harness_is_found_in_the_list_of_mounts(monkeypatch):
    """By its name, in whatever field it stands."""
    probe = MountInfoProbe()
    arguments = probe.arguments(STRICT, NOWHERE)
    line = "30 1 254:0 /tmp/proctor-stage-x/sealed /srv ro - ext4 /dev/vda rw\n"
    assert facts_of(probe, DOCKER + line, arguments, monkeypatch)


def test_names_of_mounts_are_decoded():
    """The kernel writes blanks, tabs, line ends and backslashes of a path as three digits."""
    told = "1 0 0:1 / /a\\040b\\011c\\012d\\134e rw - ext4 /dev/x rw\n"
    space = {"open": lambda *rest, **more: io.StringIO(told)}
    exec(MOUNTS, space)  # noqa: S102 - our own program
    assert [item["place"] for item in space["mounts"]()] == ["/a b\tc\nd\\e"]
    assert space["inside"]("/a/b", "/a")
    assert space["inside"]("/a", "/a")
    assert not space["inside"]("/ab", "/a")


def test_programs_know_what_the_policy_leaves_open():
    """The gateway's socket, and the calls of a debugger, are let be where the policy has them, and nowhere else."""
    assert PathSocketsProbe().arguments(STRICT, NOWHERE) == {"gateway": None}
    assert PathSocketsProbe().arguments(GATEWAY, NOWHERE) == {"gateway": "/run/gateway/model.sock"}
    assert KernelCallsProbe().arguments(STRICT, NOWHERE)["open"] == []
    assert "ptrace" in KernelCallsProbe().arguments(TRACED, NOWHERE)["open"]
    assert PtraceProbe().arguments(STRICT, NOWHERE) == {"allowed": False}
    assert PtraceProbe().arguments(TRACED, NOWHERE) == {"allowed": True}
    with pytest.raises(NotMeasuredError, match="debuggers"):
        PtraceProbe().weaken(TRACED, NOWHERE)


@pytest.mark.anyio
@pytest.mark.parametrize("probe", [DescriptorsProbe(), TerminalProbe()], ids=lambda probe: probe.name)
async def test_a_careless_start_is_the_controls_alone(probe):
    """With the fence up a program is started as it is; a lifted guard puts a launcher before it."""
    room = FakeWorkspace(programs={"python3": lambda call: ran()})
    async with set_the_stage() as site:
        for fence in (STRICT, probe.weaken(STRICT, site), replace(STRICT, lifted=("output-cap",))):
            await probe.attempt(room, fence, site)
        strict, weak, other = (call.argv for call in room.calls)
        assert probe.body in strict[4]
        assert probe.careless not in strict
        assert weak[4:6] == (probe.careless, site.places["home"])
        assert weak[6:] == strict == other
