"""Renders the walls of a workspace into what the container engine is asked to create: data in, data out."""

from __future__ import annotations

from typing import Any

from harness.walls import Caps, Mount, Walls
from harness.workspaces.images import KEEPER, SEAT
from harness.workspaces.seccomp import profile_text

__all__ = ["MASKED", "READ_ONLY", "create_options", "exec_user"]

MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/bus/pci", "/proc/cmdline", "/proc/config.gz", "/proc/diskstats",
    "/proc/driver", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/kallsyms", "/proc/kcore",
    "/proc/key-users", "/proc/keys", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags",
    "/proc/latency_stats", "/proc/loadavg", "/proc/locks", "/proc/modules", "/proc/partitions",
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


def exec_user(walls: Walls) -> str:
    """`uid:gid` of everything that runs behind these walls."""
    return "0:0" if walls.run_as_root else f"{SEAT}:{SEAT}"


def create_options(walls: Walls) -> dict[str, Any]:
    """
    The body of the engine's create request for `walls`: plain JSON data, equal for equal walls.

    What differs from one workspace to the next (its labels, and the id that stands for the image's name) is added when
    it is opened. The first process is a keeper of another user that only sleeps: the seat can't kill it, and when its
    sleep is over the container ends with everything in it, whether or not anybody is left to see to that.
    """
    return {
        "Image": walls.image,
        "Entrypoint": ["sleep"],
        "Cmd": [f"{walls.caps.lifetime_s:.0f}"],
        "User": exec_user(walls) if walls.run_as_root else f"{KEEPER}:{KEEPER}",
        "WorkingDir": "/",
        "Hostname": "seat",
        "Env": _environment(walls),
        "NetworkDisabled": walls.network == "none",
        "AttachStdin": False,
        "AttachStdout": False,
        "AttachStderr": False,
        "OpenStdin": False,
        "Tty": False,
        "StopSignal": "SIGKILL",
        "StopTimeout": 0,
        "HostConfig": _host_config(walls),
    }


def _environment(walls: Walls) -> list[str]:
    own = {"HOME": "/workspace", "LANG": "C.UTF-8"}
    return [f"{name}={value}" for name, value in sorted({**own, **walls.environment}.items())]


def _host_config(walls: Walls) -> dict[str, Any]:
    return {
        **_privileges(walls),
        **_namespaces(walls),
        **_limits(walls.caps),
        "ReadonlyRootfs": walls.read_only_root,
        "Tmpfs": _memory_folders(walls),
        "Mounts": [_mount(mount) for mount in walls.mounts],
        "Init": True,
        "AutoRemove": False,
        "RestartPolicy": {"Name": "no"},
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
    }


def _privileges(walls: Walls) -> dict[str, Any]:
    security = [] if walls.new_privileges else ["no-new-privileges:true"]
    match walls.system_calls:
        case "listed" | "traced":
            security += [f"seccomp={profile_text()}"]
        case "engine":
            pass
        case "any":
            security += ["seccomp=unconfined", "apparmor=unconfined"]
    return {
        "Privileged": False,
        "CapAdd": [],
        "CapDrop": [] if walls.keep_capabilities else ["ALL"],
        "SecurityOpt": security,
        "MaskedPaths": list(MASKED) if walls.masked else [],
        "ReadonlyPaths": list(READ_ONLY) if walls.masked else [],
        "Devices": [],
        "GroupAdd": [],
    }


def _namespaces(walls: Walls) -> dict[str, Any]:
    # With no network an engine still writes the host's name server into resolv.conf, unless it is given another.
    names = {"Dns": ["127.0.0.1"], "DnsSearch": ["."]} if walls.network == "none" else {}
    return {
        "NetworkMode": walls.network,
        "PidMode": "host" if "pid" in walls.host_namespaces else "",
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "UTSMode": "",
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


def _memory_folders(walls: Walls) -> dict[str, str]:
    user, _, group = exec_user(walls).partition(":")
    caps, shared = walls.caps, f"rw,exec,nosuid,nodev,nr_inodes={walls.caps.workspace_inodes}"
    return {
        "/tmp": f"{shared},size={caps.tmp_bytes},mode=1777",  # noqa: S108 - the container's, made anew each time
        "/workspace": f"{shared},size={caps.workspace_bytes},mode=0700,uid={user},gid={group}",
    }


def _mount(mount: Mount) -> dict[str, Any]:
    return {"Type": "bind", "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}
