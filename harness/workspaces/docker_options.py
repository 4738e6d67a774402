"""Renders the walls of a workspace into what the container engine is asked to create: data in, data out."""

from __future__ import annotations

from typing import Any

from harness.walls import GATEWAY_FOLDER, Caps, Mount, Walls
from harness.workspaces.docker_folder import GATEWAY_PART, HOSTS_FILE
from harness.workspaces.docker_place import PATTERN, Place
from harness.workspaces.forwarding import forwarder_argv
from harness.workspaces.images import KEEPER
from harness.workspaces.seccomp import profile_text

__all__ = ["MASKED", "READ_ONLY", "WORKSPACE", "create_options", "exec_user"]

WORKSPACE = "/workspace"

MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/buddyinfo", "/proc/bus/pci", "/proc/cmdline", "/proc/config.gz",
    "/proc/diskstats", "/proc/driver", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/kallsyms",
    "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags",
    "/proc/latency_stats", "/proc/loadavg", "/proc/locks", "/proc/modules", "/proc/pagetypeinfo", "/proc/partitions",
    "/proc/pressure", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi", "/proc/slabinfo", "/proc/softirqs",
    "/proc/swaps", "/proc/timer_list", "/proc/timer_stats", "/proc/version_signature", "/proc/vmallocinfo",
    "/proc/vmstat", "/proc/zoneinfo", "/sys/block", "/sys/bus", "/sys/class", "/sys/dev",
    "/sys/devices/pci0000:00", "/sys/devices/platform", "/sys/devices/virtual", "/sys/firmware", "/sys/fs/bpf",
    "/sys/hypervisor", "/sys/kernel", "/sys/module", "/sys/power",
)  # fmt: skip
"""What /proc and /sys tell of the host and its hardware. A covered file reads as empty; so does a covered folder."""

READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""What of /proc could change the host's kernel."""

_MEMLOCK_BYTES = 64 << 10
_PAGE_BYTES = 4096

_FORWARD = 'while "$@"; [ $? != 127 ]; do sleep 1; done & exec sleep "$0"'
"""
The keeper sleeps, and beside it the forwarder runs, again if it was ended: the kernel may choose it when a seat has
used up the memory, and that must not end the workspace. An image without Python has none (127).
"""


def exec_user(walls: Walls, place: Place = PATTERN) -> str:
    """`uid:gid` of everything that runs behind these walls."""
    return "0:0" if walls.run_as_root else f"{place.seat}:{place.seat}"


def create_options(walls: Walls, place: Place = PATTERN) -> dict[str, Any]:
    """
    The body of the engine's create request for `walls`: plain JSON data, equal for equal walls and places.

    Only the id that stands for the image's name is put in later. The first process is a keeper of another user: the
    seat can't kill it, and when its time is over the container ends with everything in it, whether or not anybody is
    left to see to that. It sleeps, or forwards connections to the gateway.
    """
    first, *words = _keeper(walls)
    return {
        "Image": walls.image,
        "Entrypoint": [first],
        "Cmd": words,
        "User": f"{KEEPER}:{KEEPER}" if walls.keeper_apart and not walls.run_as_root else exec_user(walls, place),
        "WorkingDir": "/",
        "Hostname": "" if "uts" in walls.host_namespaces else "seat",
        "Env": _environment(walls),
        "Labels": dict(place.labels),
        "Healthcheck": {"Test": ["NONE"]},  # an image's own would run as the keeper
        "NetworkDisabled": _is_cut_off(walls),
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "OpenStdin": False,
        "Tty": False,
        "StopSignal": "SIGKILL",
        "StopTimeout": 0,
        "HostConfig": _host_config(walls, place),
    }


def _keeper(walls: Walls) -> list[str]:
    lifetime = f"{walls.caps.lifetime_s:.0f}"
    if walls.network == "gateway":
        return ["/bin/sh", "-c", _FORWARD, lifetime, *forwarder_argv(walls.caps.lifetime_s)]
    return ["sleep", lifetime]


def _is_cut_off(walls: Walls) -> bool:
    """Whether there is no network: the gateway is a socket in a folder."""
    return walls.network in ("none", "gateway")


def _environment(walls: Walls) -> list[str]:
    own = {"HOME": "/workspace", "LANG": "C.UTF-8"}
    return [f"{name}={value}" for name, value in sorted({**own, **walls.environment}.items())]


def _host_config(walls: Walls, place: Place) -> dict[str, Any]:
    return {
        **_privileges(walls),
        **_namespaces(walls),
        **_limits(walls.caps),
        "ReadonlyRootfs": walls.read_only_root,
        "Tmpfs": _memory_folders(walls),
        "Sysctls": _kept_by_the_kernel(walls),
        "Mounts": [_workspace(walls, place), *map(_mount, _own(walls, place)), *map(_mount, walls.mounts)],
        "Init": True,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
    }


def _memory_folders(walls: Walls) -> dict[str, str]:
    """
    Folders in memory, but where a control shows something of the host's: the engine would cover it. The engine's own
    /dev/shm has a limit of bytes alone; with the host's inter-process communication it is the host's.
    """
    caps, shared = walls.caps, f"rw,nosuid,nodev,nr_inodes={walls.caps.workspace_inodes},mode=1777"
    folders = {"/tmp": f"{shared},exec,size={caps.tmp_bytes}"}  # noqa: S108 - the container's, made anew each time
    if "ipc" not in walls.host_namespaces:
        folders["/dev/shm"] = f"{shared},noexec,size={caps.shm_bytes}"  # noqa: S108 - likewise
    shown = {mount.target for mount in walls.mounts}
    return {path: options for path, options in folders.items() if path not in shown}


def _kept_by_the_kernel(walls: Walls) -> dict[str, str]:
    """
    System V segments, queues and semaphores outlive whoever made them, and count as the container's memory: filled, no
    program could be started any more. So segments end with their maker and are limited as /dev/shm is.
    """
    if "ipc" in walls.host_namespaces:
        return {}  # the host's own, which no engine changes
    pages = -(-walls.caps.shm_bytes // _PAGE_BYTES)
    return {
        "kernel.shm_rmid_forced": "1",
        "kernel.shmall": str(pages),
        "kernel.msgmni": "32",  # queues, of 16 KiB each
        "kernel.sem": "250 4000 100 32",  # in a set, in all, in a call, sets
    }


def _privileges(walls: Walls) -> dict[str, Any]:
    security = [] if walls.new_privileges else ["no-new-privileges:true"]
    match walls.system_calls:
        case "listed" | "traced":
            security += [f"seccomp={profile_text(traced=walls.system_calls == 'traced')}"]
        case "engine":
            pass
        case "any":
            security += ["seccomp=unconfined", "apparmor=unconfined"]
    return {
        "Privileged": False,
        "CapAdd": list(walls.capabilities),
        "CapDrop": [] if walls.keep_capabilities else ["ALL"],
        "SecurityOpt": security,
        "MaskedPaths": list(MASKED) if walls.masked else [],
        "ReadonlyPaths": list(READ_ONLY) if walls.masked else [],
        "Devices": [],
        "GroupAdd": [],
    }


def _namespaces(walls: Walls) -> dict[str, Any]:
    # With no network an engine still writes the host's name server into resolv.conf, unless it is given another.
    names = {"Dns": ["127.0.0.1"], "DnsSearch": ["."]} if _is_cut_off(walls) else {}
    shared = walls.host_namespaces
    return {
        "NetworkMode": "none" if _is_cut_off(walls) else walls.network,
        "PidMode": "host" if "pid" in shared else "",
        "IpcMode": "host" if "ipc" in shared else "private",
        "CgroupnsMode": "host" if "cgroup" in shared else "private",
        "UTSMode": "host" if "uts" in shared else "",
        "UsernsMode": "",
        "ShmSize": walls.caps.shm_bytes,
        **names,
    }


def _limits(caps: Caps) -> dict[str, Any]:
    return {
        "Memory": caps.memory_bytes,
        "MemorySwap": caps.memory_bytes,  # memory and swap together: so no swap
        "PidsLimit": caps.pids,
        "NanoCpus": round(caps.cpus * 1e9),
        "OomScoreAdj": 500,
        "Ulimits": [
            _ulimit("core", caps.core_bytes),
            _ulimit("fsize", caps.file_bytes),
            _ulimit("memlock", _MEMLOCK_BYTES),
            _ulimit("msgqueue", 0),
            _ulimit("nofile", caps.open_files),
            _ulimit("sigpending", 256),
        ],
    }


def _ulimit(name: str, value: int) -> dict[str, Any]:
    return {"Name": name, "Soft": value, "Hard": value}


def _workspace(walls: Walls, place: Place) -> dict[str, Any]:
    """
    The volume at /workspace: memory with a limit of bytes and of files, which lives while any container has it.

    The engine makes it together with the first container that names it.
    """
    mount = {"Type": "volume", "Source": place.volume, "Target": WORKSPACE, "ReadOnly": place.rest}
    if place.rest:
        return {**mount, "VolumeOptions": {"NoCopy": True}}
    caps = walls.caps
    uid, gid = ("0", "0") if walls.run_as_root else (place.uid, place.gid)
    limits = f"size={caps.workspace_bytes},nr_inodes={caps.workspace_inodes},mode=0700,uid={uid},gid={gid}"
    driver = {"type": "tmpfs", "device": "tmpfs", "o": f"{limits},nosuid,nodev"}
    options = {
        "NoCopy": True,
        "Labels": dict(place.labels),
        "DriverConfig": {"Name": "local", "Options": driver},
    }
    return {**mount, "VolumeOptions": options}


def _own(walls: Walls, place: Place) -> tuple[Mount, ...]:
    """What of the host a workspace is shown as its own."""
    if place.folder is None or not _is_cut_off(walls):
        return ()
    # Without networking an engine leaves /etc/hosts empty, whatever the image says.
    hosts = Mount(source=f"{place.folder}/{HOSTS_FILE}", target="/etc/hosts")
    gateway = Mount(source=f"{place.folder}/{GATEWAY_PART}", target=GATEWAY_FOLDER)
    return (hosts, gateway) if walls.network == "gateway" else (hosts,)


def _mount(mount: Mount) -> dict[str, Any]:
    return {"Type": "bind", "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}
