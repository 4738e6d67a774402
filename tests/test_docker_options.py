"""What a container engine is asked for, what is read from it, and what happens when it fails: all without an engine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from harness.canonical import digest_json
from harness.walls import Caps, Mount, Walls
from harness.workspaces.docker import DockerBackend
from harness.workspaces.docker_facts import container_facts, engine_facts, engine_guarantees
from harness.workspaces.docker_options import create_options
from harness.workspaces.docker_owner import LABEL_OWNER, Witness, labels, owner_gone
from harness.workspaces.seccomp import profile

SEALED = Walls(image="proctor-seat")


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The leaves of a JSON value by their paths."""
    if isinstance(value, dict) and value:
        return {key: leaf for name, item in value.items() for key, leaf in flat(item, f"{path}/{name}").items()}
    return {path: value}


def changed(**weaker: Any) -> set[str]:
    """Where the options of weakened walls differ from the sealed ones."""
    sealed, weak = flat(create_options(SEALED)), flat(create_options(replace(SEALED, **weaker)))
    return {key for key in sealed.keys() | weak.keys() if sealed.get(key) != weak.get(key)}


def test_sealed_walls_ask_for_everything_that_seals() -> None:
    """The sealed options hold each wall by its own name."""
    asked = create_options(SEALED)
    host = asked["HostConfig"]
    assert (asked["NetworkDisabled"], host["NetworkMode"], host["Dns"]) == (True, "none", ["127.0.0.1"])
    assert (host["CapDrop"], host["CapAdd"], host["Privileged"]) == (["ALL"], [], False)
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert (host["ReadonlyRootfs"], host["PidMode"], host["IpcMode"]) == (True, "", "private")
    assert (host["Mounts"], host["Devices"], host["CgroupnsMode"]) == ([], [], "private")
    assert asked["User"] == "20000:20000"
    assert "uid=20001,gid=20001" in host["Tmpfs"]["/workspace"]
    assert "/proc/kallsyms" in host["MaskedPaths"]
    assert "/proc/sys" in host["ReadonlyPaths"]


def test_caps_are_rendered() -> None:
    """Each cap ends up in the option that enforces it; memory and swap are one limit, so there is no swap."""
    caps = Caps(
        memory_bytes=5 << 20, pids=7, cpus=0.25, workspace_bytes=11, workspace_inodes=13, tmp_bytes=17, file_bytes=19,
        open_files=23, lifetime_s=29.0,
    )  # fmt: skip
    asked = create_options(replace(SEALED, caps=caps))
    host = asked["HostConfig"]
    limits = {item["Name"]: (item["Soft"], item["Hard"]) for item in host["Ulimits"]}
    assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == (5 << 20, 5 << 20, 7)
    assert host["NanoCpus"] == 250_000_000
    assert (limits["fsize"], limits["nofile"], limits["core"], limits["msgqueue"]) == (
        (19, 19),
        (23, 23),
        (0, 0),
        (0, 0),
    )
    assert "size=11," in host["Tmpfs"]["/workspace"]
    assert "nr_inodes=13," in host["Tmpfs"]["/workspace"]
    assert "size=17," in host["Tmpfs"]["/tmp"]
    assert (asked["Entrypoint"], asked["Cmd"]) == (["sleep"], ["29"])


def test_options_are_plain_and_equal_for_equal_walls() -> None:
    """They are JSON that can be digested, and say nothing of the time, the process or the machine's state."""
    again = replace(SEALED, environment=dict(SEALED.environment))
    assert create_options(SEALED) == json.loads(json.dumps(create_options(SEALED)))
    assert digest_json(create_options(SEALED)) == digest_json(create_options(again))
    assert DockerBackend(url="unix:///nowhere").options(SEALED) == create_options(SEALED)


@pytest.mark.parametrize(
    ("weaker", "where"),
    [
        ({"network": "bridge"}, {"/NetworkDisabled", "/HostConfig/NetworkMode", "/HostConfig/Dns", "/HostConfig/DnsSearch"}),
        ({"network": "host"}, {"/NetworkDisabled", "/HostConfig/NetworkMode", "/HostConfig/Dns", "/HostConfig/DnsSearch"}),
        ({"read_only_root": False}, {"/HostConfig/ReadonlyRootfs"}),
        ({"keep_capabilities": True}, {"/HostConfig/CapDrop"}),
        ({"new_privileges": True}, {"/HostConfig/SecurityOpt"}),
        ({"host_namespaces": ("pid",)}, {"/HostConfig/PidMode"}),
        ({"run_as_root": True}, {"/User", "/HostConfig/Tmpfs//workspace"}),
        ({"mounts": (Mount(source="/etc", target="/host"),)}, {"/HostConfig/Mounts"}),
        ({"environment": {"NAME": "value"}}, {"/Env"}),
        (
            {"system_calls": "any", "masked": False},
            {"/HostConfig/SecurityOpt", "/HostConfig/MaskedPaths", "/HostConfig/ReadonlyPaths"},
        ),
    ],
)  # fmt: skip
def test_a_weakening_changes_its_own_wall_alone(weaker: dict[str, Any], where: set[str]) -> None:
    """Each weakening is rendered, and touches no other wall: a probe's control proves what it says it proves."""
    assert changed(**weaker) == where


def test_the_filter_of_system_calls() -> None:
    """What reaches around the namespaces is in no rule, sockets are pinned to families, and there is one architecture."""
    rules = profile("x86_64")["syscalls"]
    allowed = {name for rule in rules if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    closed = {
        "add_key", "bpf", "chroot", "clock_settime", "fsopen", "init_module", "io_uring_enter", "io_uring_setup",
        "kexec_load", "keyctl", "memfd_secret", "mount", "move_mount", "name_to_handle_at", "open_by_handle_at",
        "perf_event_open", "pidfd_getfd", "pivot_root", "process_vm_readv", "process_vm_writev", "ptrace", "quotactl",
        "reboot", "request_key", "setns", "socketcall", "syslog", "umount2", "unshare", "userfaultfd", "vmsplice",
    }  # fmt: skip
    assert closed & allowed == set()
    assert {"execve", "openat", "futex", "clone", "socket"} <= allowed
    assert profile("x86_64")["architectures"] == ["SCMP_ARCH_X86_64"]
    assert profile("aarch64")["architectures"] == ["SCMP_ARCH_AARCH64"]
    assert profile("x86_64")["defaultAction"] == "SCMP_ACT_ERRNO"
    families = {rule["args"][0]["value"] for rule in rules if rule["names"] == ["socket"]}
    assert families == {1, 2, 10, 16}, (
        "UNIX, INET, INET6, NETLINK: no vsock (40), no kernel crypto (38), no packet (17)"
    )
    clone = next(rule for rule in rules if rule["names"] == ["clone"])
    assert clone["args"][0]["value"] & 0x7E02_0000 == 0x7E02_0000, "no namespace can be made"
    clone3 = next(rule for rule in rules if rule["names"] == ["clone3"])
    assert (clone3["action"], clone3["errnoRet"]) == ("SCMP_ACT_ERRNO", 38)


def test_own_containers_are_kept_and_a_dead_owners_are_not() -> None:
    """A label made by a living process is its own; the label of a dead one, or of a reused number, is an orphan's."""
    mine = labels("run", "name")[LABEL_OWNER]
    with subprocess.Popen([sys.executable, "-c", ""]) as program:
        pid = program.pid
    _, started, boot, place = mine.split(":")
    assert not owner_gone(mine, running=True)
    assert not owner_gone(mine, running=False)
    assert owner_gone(f"{pid}:{started}:{boot}:{place}", running=True), "dead"
    assert owner_gone(f"{mine.split(':')[0]}:{int(started) + 1}:{boot}:{place}", running=True), (
        "the number is another's"
    )


@pytest.mark.parametrize("label", ["", "nonsense", "1:2:another-boot:4", "x:y:z:w"])
def test_a_strangers_container_is_kept_while_it_runs(label: str) -> None:
    """An owner that can't be looked at from here may live: only what has ended by itself may be taken."""
    assert not owner_gone(label, running=True)
    assert owner_gone(label, running=False)


def test_a_witness_is_of_the_container_or_none() -> None:
    """A process whose control group does not name the container is another machine's number; there is no witness then."""
    assert Witness.of(1, "no-container-has-this-name") is None
    assert Witness.of(2**22 + 1, "x") is None


def test_facts_tell_a_sealed_container_from_a_weak_one() -> None:
    """Each wall of what `inspect` says of a running container is read back, up as well as down."""

    def inspected(walls: Walls) -> dict[str, Any]:
        asked = create_options(walls)
        mounts = [{"Source": m.source, "Destination": m.target, "RW": not m.read_only} for m in walls.mounts]
        config = {"User": asked["User"], "NetworkDisabled": asked["NetworkDisabled"]}
        state = {"Running": True}
        return {
            "Id": "c",
            "Image": "i",
            "Config": config,
            "HostConfig": asked["HostConfig"],
            "State": state,
            "Mounts": mounts,
        }

    sealed = container_facts(inspected(SEALED), exec_user="20001:20001", processes=2)
    weak_walls = replace(
        SEALED, network="host", read_only_root=False, keep_capabilities=True, new_privileges=True, host_namespaces=("pid",),
        system_calls="any", masked=False, run_as_root=True, mounts=(Mount(source="/etc", target="/host"),),
    )  # fmt: skip
    weak = container_facts(inspected(weak_walls), exec_user="0:0", processes=None)
    keys = (
        "network_mode",
        "network_disabled",
        "cap_drop",
        "no_new_privileges",
        "seccomp",
        "read_only_root",
        "pid_mode",
    )
    assert [sealed[key] for key in keys] == ["none", True, ["ALL"], True, True, True, "private"]
    assert [weak[key] for key in keys] == ["host", False, [], False, False, False, "host"]
    assert (sealed["mounts"], weak["mounts"]) == ([], [{"source": "/etc", "target": "/host", "read_only": True}])
    assert (sealed["user"], weak["user"], sealed["processes"], weak["processes"]) == ("20000:20000", "0:0", 2, None)


def test_guarantees_say_no_with_a_reason() -> None:
    """An engine that can limit nothing promises nothing of it, and says why; a full one promises all."""
    version = {"Os": "linux", "Version": "1", "ApiVersion": "1", "Arch": "a", "KernelVersion": "k"}
    full = {
        "SecurityOptions": ["name=seccomp"],
        "PidsLimit": True,
        "MemoryLimit": True,
        "SwapLimit": True,
        "CpuCfsQuota": True,
    }
    assert set(engine_guarantees(version, full).values()) == {None}
    bare = engine_guarantees(version, {})
    assert {name for name, why in bare.items() if why} == {
        "system_calls", "pids", "memory_process", "memory_total", "swap", "cpu",
    }  # fmt: skip
    assert "windows" in str(engine_guarantees({**version, "Os": "windows"}, full)["network"])
    assert engine_facts(version, {**full, "Driver": "overlay2"})["security_options"] == "name=seccomp"
