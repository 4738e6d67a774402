"""What an engine says of itself and of a running container, in the words that a fence compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.walls import GATEWAY_FOLDER, GATEWAY_SOURCE
from harness.workspaces.docker_folder import GATEWAY_PART, HOSTS_FILE
from harness.workspaces.docker_options import WORKSPACE
from harness.workspaces.docker_place import Place

__all__ = ["container_facts", "engine_facts", "engine_guarantees"]


def container_facts(
    found: Mapping[str, Any], *, place: Place, exec_user: str, processes: int | None
) -> Mapping[str, Any]:
    """
    What `inspect` of a running container says, flat. `exec_user` is who programs run as; `processes` how many live in
    its process namespace, or None where that can't be seen. `mounts` are what is shown of the host beside what is the
    workspace's own by `place`: its volume, its names that resolve; its gateway's folder is there, by a name.
    """
    config, host, state = found["Config"], found["HostConfig"], found["State"]
    security = [str(option) for option in host.get("SecurityOpt") or []]
    filters = [option.partition("=")[2] for option in security if option.startswith("seccomp=")]
    return {
        "container": found["Id"],
        "image": found["Image"],
        "running": bool(state["Running"]),
        "network_mode": host["NetworkMode"],
        "network_disabled": bool(config.get("NetworkDisabled")),
        "networks": sorted((found.get("NetworkSettings") or {}).get("Networks") or {}),
        "user": config["User"],
        "exec_user": exec_user,
        "privileged": bool(host["Privileged"]),
        "cap_add": sorted(host.get("CapAdd") or []),
        "cap_drop": sorted(host.get("CapDrop") or []),
        "no_new_privileges": any(option.startswith("no-new-privileges") for option in security),
        "seccomp": bool(filters) and "unconfined" not in filters,
        "read_only_root": bool(host["ReadonlyRootfs"]),
        **_mounts(found.get("Mounts") or [], place),
        "memory_folders": dict(host.get("Tmpfs") or {}),
        "masked_paths": sorted(host.get("MaskedPaths") or []),
        "devices": list(host.get("Devices") or []),
        "pid_mode": host.get("PidMode") or "private",
        "ipc_mode": host.get("IpcMode") or "",
        "cgroup_mode": host.get("CgroupnsMode") or "",
        "user_namespace_mode": host.get("UsernsMode") or "",
        "pids_limit": host.get("PidsLimit"),
        "memory_bytes": host.get("Memory"),
        "memory_and_swap_bytes": host.get("MemorySwap"),
        "nano_cpus": host.get("NanoCpus"),
        "processes": processes,
    }


def _mounts(found: Iterable[Mapping[str, Any]], place: Place) -> Mapping[str, Any]:
    """Each mount that is the workspace's own is told apart by its source, its target and its mode, all three."""
    volume = {"source": place.volume, "target": WORKSPACE, "read_only": place.rest}
    hosts = {"source": f"{place.folder}/{HOSTS_FILE}", "target": "/etc/hosts", "read_only": True}
    gateway = {"source": f"{place.folder}/{GATEWAY_PART}", "target": GATEWAY_FOLDER, "read_only": True}
    mounts = [_mount(mount) for mount in found]
    others = [mount for mount in mounts if mount not in (volume, hosts)]
    return {
        "workspace": next((mount for mount in mounts if mount == volume), None),
        "hosts_file": hosts in mounts,
        "mounts": [{**mount, "source": GATEWAY_SOURCE} if mount == gateway else mount for mount in others],
    }


def _mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    source = mount["Name"] if mount.get("Type") == "volume" else mount.get("Source")
    return {"source": source, "target": mount["Destination"], "read_only": not mount["RW"]}


def engine_facts(version: Mapping[str, Any], info: Mapping[str, Any]) -> Mapping[str, str]:
    """What decides how an engine walls its containers in."""
    return {
        "backend": "docker",
        "engine": str(version["Version"]),
        "api": str(version["ApiVersion"]),
        "architecture": str(version["Arch"]),
        "kernel": str(version["KernelVersion"]),
        "storage_driver": str(info["Driver"]),
        "cgroup_version": str(info.get("CgroupVersion", "1")),
        "runtime": str(info.get("DefaultRuntime", "")),
        "security_options": " ".join(sorted(info.get("SecurityOptions") or [])),
        "components": " ".join(sorted(f"{part['Name']}={part['Version']}" for part in version.get("Components") or [])),
    }


def engine_guarantees(version: Mapping[str, Any], info: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Each promise of a workspace, with None if this engine can keep it and else why it can't."""

    def counted(key: str, what: str) -> str | None:
        return None if info.get(key) else f"this engine's kernel does not limit {what}"

    names = " ".join(info.get("SecurityOptions") or [])
    linux = None if version.get("Os") == "linux" else f"the engine runs on {version.get('Os')!r}: expected linux"
    always = (
        "network", "processes", "root_read_only", "capabilities", "new_privileges", "environment", "file_bytes",
        "open_files", "workspace_bytes", "workspace_inodes", "tmp_bytes", "tmp_inodes",
    )  # fmt: skip
    return {
        **dict.fromkeys(always, linux),
        "system_calls": None if "seccomp" in names else "this engine has no filter of system calls (seccomp)",
        "pids": counted("PidsLimit", "the number of processes"),
        "memory_process": counted("MemoryLimit", "memory"),
        "memory_total": counted("MemoryLimit", "memory"),
        "swap": counted("SwapLimit", "swap"),
        "cpu": counted("CpuCfsQuota", "CPU time"),
    }
