"""What a container engine is asked for, what is read from it, and what happens when it fails: all without an engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.canonical import digest_json
from harness.errors import WorkspaceError
from harness.walls import Caps, Mount, Walls
from harness.workspaces.docker import DockerBackend
from harness.workspaces.docker_facts import container_facts, engine_facts, engine_guarantees
from harness.workspaces.docker_host import EngineHost
from harness.workspaces.docker_options import create_options, exec_user
from harness.workspaces.docker_owner import LABEL_OWNER, labels, owner_gone
from harness.workspaces.docker_place import Place
from harness.workspaces.docker_witness import Witness
from harness.workspaces.seccomp import profile

SEALED = Walls(image="proctor-seat")


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """The leaves of a JSON value by their paths."""
    if isinstance(value, dict) and value:
        return {key: leaf for name, item in value.items() for key, leaf in flat(item, f"{path}/{name}").items()}
    return {path: value}


def volume_of(asked: dict[str, Any]) -> dict[str, Any]:
    """The mount of the workspace's own volume."""
    (found,) = [mount for mount in asked["HostConfig"]["Mounts"] if mount["Type"] == "volume"]
    return dict(found)


def changed(**weaker: Any) -> set[str]:
    """Where the options of weakened walls differ from the sealed ones."""
    sealed, weak = flat(create_options(SEALED)), flat(create_options(replace(SEALED, **weaker)))
    return {key for key in sealed.keys() | weak.keys() if sealed.get(key) != weak.get(key)}


SYSCTLS = {f"/HostConfig/Sysctls/kernel.{name}" for name in ("shm_rmid_forced", "shmall", "msgmni", "sem")}


def test_sealed_walls_ask_for_everything_that_seals() -> None:
    """The sealed options hold each wall by its own name."""
    asked = create_options(SEALED)
    host = asked["HostConfig"]
    assert (asked["NetworkDisabled"], host["NetworkMode"], host["Dns"]) == (True, "none", ["127.0.0.1"])
    assert (host["CapDrop"], host["CapAdd"], host["Privileged"]) == (["ALL"], [], False)
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert (host["ReadonlyRootfs"], host["PidMode"], host["IpcMode"]) == (True, "", "private")
    assert (host["Devices"], host["CgroupnsMode"], host["UTSMode"], host["UsernsMode"]) == ([], "private", "", "")
    assert asked["User"] == "20000:20000"
    assert asked["Healthcheck"] == {"Test": ["NONE"]}, "an image's own would run as the keeper"
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
    limits = volume_of(asked)["VolumeOptions"]["DriverConfig"]["Options"]
    assert limits == {
        "type": "tmpfs",
        "device": "tmpfs",
        "o": "size=11,nr_inodes=13,mode=0700,uid={seat-uid},gid={seat-gid},nosuid,nodev",
    }
    assert host["Tmpfs"]["/tmp"].endswith(",size=17")
    assert sorted(host["Tmpfs"]) == ["/dev/shm", "/tmp"]
    assert "size=16777216" in host["Tmpfs"]["/dev/shm"]
    assert (asked["Entrypoint"], asked["Cmd"]) == (["sleep"], ["29"])


def test_shared_memory_of_the_old_kind_ends_with_its_processes() -> None:
    """A segment, a queue or a set of semaphores outlives whoever made it, and would hold the cell's memory for good."""
    asked = create_options(replace(SEALED, caps=Caps(shm_bytes=(8 << 20) + 1)))["HostConfig"]["Sysctls"]
    assert (asked["kernel.shm_rmid_forced"], asked["kernel.shmall"]) == ("1", "2049")
    assert int(asked["kernel.msgmni"]) * 16_384 < 1 << 20
    assert int(asked["kernel.sem"].split()[1]) < 10_000
    assert create_options(replace(SEALED, host_namespaces=("ipc",)))["HostConfig"]["Sysctls"] == {}


def test_options_are_plain_and_equal_for_equal_walls() -> None:
    """They are JSON that can be digested, and say nothing of the time, the process or the machine's state."""
    again = replace(SEALED, environment=dict(SEALED.environment))
    assert create_options(SEALED) == json.loads(json.dumps(create_options(SEALED)))
    assert digest_json(create_options(SEALED)) == digest_json(create_options(again))
    assert DockerBackend(url="unix:///nowhere").options(SEALED) == create_options(SEALED)


@pytest.mark.parametrize(
    ("weaker", "where"),
    [
        ({"network": "bridge"}, {"/NetworkDisabled", "/HostConfig/NetworkMode", "/HostConfig/Dns", "/HostConfig/DnsSearch", "/HostConfig/Mounts"}),
        ({"network": "host"}, {"/NetworkDisabled", "/HostConfig/NetworkMode", "/HostConfig/Dns", "/HostConfig/DnsSearch", "/HostConfig/Mounts"}),
        ({"read_only_root": False}, {"/HostConfig/ReadonlyRootfs"}),
        ({"network": "gateway"}, {"/Entrypoint", "/Cmd", "/HostConfig/Mounts"}),
        ({"keep_capabilities": True}, {"/HostConfig/CapDrop"}),
        ({"capabilities": ("NET_RAW",)}, {"/HostConfig/CapAdd"}),
        ({"host_namespaces": ("ipc",)}, {"/HostConfig/IpcMode", "/HostConfig/Tmpfs//dev/shm", "/HostConfig/Sysctls", *SYSCTLS}),
        ({"host_namespaces": ("uts",)}, {"/HostConfig/UTSMode", "/Hostname"}),
        ({"host_namespaces": ("cgroup",)}, {"/HostConfig/CgroupnsMode"}),
        ({"keeper_apart": False}, {"/User"}),
        ({"masked": False}, {"/HostConfig/MaskedPaths", "/HostConfig/ReadonlyPaths"}),
        ({"system_calls": "any"}, {"/HostConfig/SecurityOpt"}),
        ({"system_calls": "engine"}, {"/HostConfig/SecurityOpt"}),
        ({"system_calls": "traced"}, {"/HostConfig/SecurityOpt"}),
        ({"caps": Caps(core_bytes=1)}, {"/HostConfig/Ulimits"}),
        ({"caps": Caps(shm_bytes=1)}, {"/HostConfig/ShmSize", "/HostConfig/Tmpfs//dev/shm", "/HostConfig/Sysctls/kernel.shmall"}),
        ({"new_privileges": True}, {"/HostConfig/SecurityOpt"}),
        ({"host_namespaces": ("pid",)}, {"/HostConfig/PidMode"}),
        ({"run_as_root": True}, {"/User", "/HostConfig/Mounts"}),
        ({"mounts": (Mount(source="/etc", target="/host"),)}, {"/HostConfig/Mounts"}),
        ({"environment": {"NAME": "value"}}, {"/Env"}),
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
    mine = labels("run", "name", "20001")[LABEL_OWNER]
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


HERE = Place(name="n", volume="n", seat="20017", uid="20017", gid="20017", folder="/f")


def inspected(walls: Walls, place: Place) -> dict[str, Any]:
    """What an engine's `inspect` says of a container that was made as asked."""
    asked = create_options(walls, place)
    mounts = [
        {"Type": m["Type"], "Name": m["Source"], "Source": m["Source"], "Destination": m["Target"], "RW": not m["ReadOnly"]}
        for m in asked["HostConfig"]["Mounts"]
    ]  # fmt: skip
    config = {"User": asked["User"], "NetworkDisabled": asked["NetworkDisabled"]}
    host = asked["HostConfig"]
    return {"Id": "c", "Image": "i", "Config": config, "HostConfig": host, "State": {"Running": True}, "Mounts": mounts}


def facts_of(walls: Walls) -> Mapping[str, Any]:
    """The facts of a workspace behind these walls that runs as asked."""
    return container_facts(inspected(walls, HERE), place=HERE, exec_user=exec_user(walls, HERE), processes=2)


def test_facts_tell_a_sealed_container_from_a_weak_one() -> None:
    """Each wall of what `inspect` says of a running container is read back, up as well as down."""
    sealed = facts_of(SEALED)
    weak_walls = replace(
        SEALED, network="host", read_only_root=False, keep_capabilities=True, new_privileges=True, host_namespaces=("pid",),
        system_calls="any", masked=False, run_as_root=True, mounts=(Mount(source="/etc", target="/host"),),
    )  # fmt: skip
    weak = facts_of(weak_walls)
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
    assert (sealed["user"], weak["user"], sealed["processes"]) == ("20000:20000", "0:0", 2)
    assert (sealed["exec_user"], weak["exec_user"]) == ("20017:20017", "0:0")


def test_facts_name_what_is_the_workspaces_own_and_show_the_rest() -> None:
    """Its volume and its hosts file are told apart by source, target and mode; the gateway's folder goes by a name."""
    sealed, gateway = facts_of(SEALED), facts_of(replace(SEALED, network="gateway"))
    assert sealed["workspace"] == {"source": "n", "target": "/workspace", "read_only": False}
    assert (sealed["hosts_file"], gateway["hosts_file"]) == (True, True)
    assert (sealed["network_mode"], gateway["network_mode"]) == ("none", "gateway")
    assert (gateway["shm_bytes"], gateway["file_bytes"], gateway["open_files"], gateway["core_bytes"]) == (
        16 << 20,
        64 << 20,
        1024,
        0,
    )
    assert (sealed["mounts"], gateway["mounts"]) == (
        [],
        [{"source": "gateway", "target": "/run/gateway", "read_only": True}],
    )
    for other in (
        replace(HERE, folder="/another"),
        replace(HERE, volume="another"),
        replace(HERE, rest=True),
    ):
        strange = container_facts(inspected(SEALED, HERE), place=other, exec_user="1:1", processes=None)
        assert len(strange["mounts"]) == 1, "what is not exactly the workspace's own is shown as it is"
    writable = inspected(replace(SEALED, network="gateway"), HERE)
    for mount in writable["Mounts"]:
        mount["RW"] = True
    shown = container_facts(writable, place=HERE, exec_user="1:1", processes=None)
    assert [mount["source"] for mount in shown["mounts"]] == ["/f/hosts", "/f/gateway"]


VERSION = {"Os": "linux", "Version": "1", "ApiVersion": "1", "Arch": "a", "KernelVersion": "k"}
FULL = {
    "SecurityOptions": ["name=seccomp,profile=default"],
    "PidsLimit": True,
    "MemoryLimit": True,
    "SwapLimit": True,
    "CpuCfsPeriod": True,
    "CpuCfsQuota": True,
    "Driver": "overlay2",
    "CgroupDriver": "cgroupfs",
}
COUNTED = {"pids", "memory_process", "memory_total", "swap", "cpu"}


def test_guarantees_say_no_with_a_reason() -> None:
    """An engine that can limit nothing promises nothing of it, and says why; a full one promises all."""
    assert set(engine_guarantees(VERSION, FULL).values()) == {None}
    bare = engine_guarantees(VERSION, {})
    assert {name for name, why in bare.items() if why} == {"system_calls", *COUNTED}
    assert "windows" in str(engine_guarantees({**VERSION, "Os": "windows"}, FULL)["network"])
    no_swap = engine_guarantees(VERSION, {**FULL, "SwapLimit": False, "Warnings": ["WARNING: No swap limit support"]})
    assert {name for name, why in no_swap.items() if why} == {"swap"}
    assert "No swap limit support" in str(no_swap["swap"])
    rootless = engine_guarantees(VERSION, {**FULL, "CgroupDriver": "none"})
    assert {name for name, why in rootless.items() if why and "control groups" in why} == COUNTED


@pytest.mark.parametrize(
    ("options", "users"),
    [
        (["name=seccomp,profile=default"], "the host's own"),
        (["name=seccomp,profile=default", "name=userns"], "mapped to others of the host"),
        (["name=rootless", "name=cgroupns"], "of the engine's own user, who is not root"),
    ],
)
def test_an_engine_says_whose_its_users_are(options: list[str], users: str) -> None:
    """Every fact is a text, none is empty, and what an engine does not tell is said not to be told."""
    facts = engine_facts(VERSION, {**FULL, "SecurityOptions": options})
    assert (facts["users"], facts["product"], facts["runtimes"]) == (users, "docker", "not told")
    assert all(facts.values())
    podman = {**VERSION, "Components": [{"Name": "Podman Engine", "Version": "4.3.1"}]}
    assert engine_facts(podman, {**FULL, "Runtimes": {"runc": {}, "crun": {}}})["runtimes"] == "crun runc"
    assert engine_facts(podman, FULL)["product"] == "podman"


HOST = EngineHost(
    url="unix:///e",
    product="docker",
    first_uid=0,
    first_gid=0,
    rootless=False,
    runtimes=frozenset({"runc"}),
    shares_files=False,
)


def test_what_an_engine_can_not_give_is_refused() -> None:
    """A runtime that it lacks, and a folder that it does not see, with what to do; what it has is not."""
    HOST.check(SEALED, None)
    HOST.check(SEALED, "runc")
    replace(HOST, shares_files=True).check(replace(SEALED, network="gateway"), None)
    with pytest.raises(WorkspaceError, match=r"has no runtime 'runsc'. It has: runc\. Add it"):
        HOST.check(SEALED, "runsc")
    with pytest.raises(WorkspaceError, match="does not see this host's folders"):
        HOST.check(replace(SEALED, network="gateway"), None)
    with pytest.raises(WorkspaceError, match="is podman, which accepts walls"):
        replace(HOST, product="podman").check(SEALED, None)


def test_a_runtime_that_was_accepted_and_not_used_is_refused() -> None:
    """What runs is compared with what was asked; without a choice there is nothing to compare."""
    HOST.check_runtime("runsc", {"HostConfig": {"Runtime": "runsc"}})
    HOST.check_runtime(None, {"HostConfig": {"Runtime": "runc"}})
    for running in ({"Runtime": "runc"}, {"Runtime": ""}, {}):
        with pytest.raises(WorkspaceError, match="accepted the runtime 'runsc' and runs the workspace under"):
            HOST.check_runtime("runsc", {"HostConfig": running})


def test_a_seat_that_is_somebody_else_on_the_host_is_refused() -> None:
    """The kernel's own mapping is compared with what the workspace was made for; unseen, nothing is claimed."""

    def mapped(*users: tuple[int, int, int]) -> Witness:
        return Witness(descriptor=-1, first=1, roll=None, users=users)

    remapped = replace(HOST, first_uid=300_000)
    remapped.check_users("20017", "320017", mapped((0, 300_000, 65_536)))
    remapped.check_users("20017", "320017", None)
    replace(HOST, rootless=True).check_users("20017", "20017", mapped((0, 1000, 1), (1, 100_000, 65_536)))
    with pytest.raises(WorkspaceError, match="runs user 20017 of a container as 420017 on its host: expected 320017"):
        remapped.check_users("20017", "320017", mapped((0, 400_000, 65_536)))
    with pytest.raises(WorkspaceError, match="as None on its host"):
        remapped.check_users("20017", "320017", mapped((0, 300_000, 1000)))
    split = mapped((0, 300_000, 20_000), (20_000, 500_000, 40_000))
    assert (split.outside(19_999), split.outside(20_017), split.outside(60_000)) == (319_999, 500_017, None)


def test_a_chosen_runtime_is_asked_for() -> None:
    """The runtime is part of the options that are compared; without a choice the engine's own is."""
    chosen = DockerBackend(url="unix:///nowhere", runtime="runsc").options(SEALED)
    assert chosen["HostConfig"].pop("Runtime") == "runsc"
    assert chosen == create_options(SEALED)
