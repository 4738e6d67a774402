"""What an engine says of itself and of a running container, in the words that a fence compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.walls import GATEWAY_FOLDER, GATEWAY_SOURCE
from harness.workspaces.docker_folder import GATEWAY_PART, HOSTS_FILE
from harness.workspaces.docker_host import option_names, product_of
from harness.workspaces.docker_options import WORKSPACE
from harness.workspaces.docker_place import Place

__all__ = ["container_facts", "engine_facts", "engine_guarantees"]


_ULIMITS = {"file_bytes": "fsize", "open_files": "nofile", "core_bytes": "core"}


def container_facts(
    found: Mapping[str, Any], *, place: Place, exec_user: str, processes: int | None
) -> Mapping[str, Any]:
    """
    What `inspect` of a running container says, flat. `exec_user` is who programs run as; `processes` how many live in
    it, or None where that can't be seen. `mounts` are what is shown of the host beside what is the workspace's own by
    `place`, its volume and its names that resolve; its gateway's folder is there, by a name.
    """
    config, host = found["Config"], found["HostConfig"]
    mounts = _mounts(found.get("Mounts") or [], place)
    joined = any(mount["source"] == GATEWAY_SOURCE for mount in mounts["mounts"])
    security = [str(option) for option in host.get("SecurityOpt") or []]
    filters = [option.partition("=")[2] for option in security if option.startswith("seccomp=")]
    return {
        "container": found["Id"],
        "image": found["Image"],
        "running": bool(found["State"]["Running"]),
        "runtime": host.get("Runtime") or None,
        "network_mode": "gateway" if joined and host["NetworkMode"] == "none" else host["NetworkMode"],
        "network_disabled": bool(config.get("NetworkDisabled")),
        "networks": sorted((found.get("NetworkSettings") or {}).get("Networks") or {}),
        "user": config["User"],
        "exec_user": exec_user,
        "privileged": bool(host["Privileged"]),
        "cap_add": sorted(name.removeprefix("CAP_") for name in host.get("CapAdd") or []),
        "cap_drop": sorted(host.get("CapDrop") or []),
        "no_new_privileges": any(option.startswith("no-new-privileges") for option in security),
        "seccomp": bool(filters) and "unconfined" not in filters,
        "read_only_root": bool(host["ReadonlyRootfs"]),
        **mounts,
        "memory_folders": dict(host.get("Tmpfs") or {}),
        "masked_paths": sorted(host.get("MaskedPaths") or []),
        "devices": list(host.get("Devices") or []),
        **_namespaces(host),
        **_limits(host),
        "processes": processes,
    }


def _namespaces(host: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "pid_mode": host.get("PidMode") or "private",
        "ipc_mode": host.get("IpcMode") or "",
        "uts_mode": host.get("UTSMode") or "private",
        "cgroup_mode": host.get("CgroupnsMode") or "",
        "user_namespace_mode": host.get("UsernsMode") or "",
    }


def _limits(host: Mapping[str, Any]) -> Mapping[str, Any]:
    limits = {limit["Name"]: limit["Hard"] for limit in host.get("Ulimits") or []}
    return {
        "pids_limit": host.get("PidsLimit"),
        "memory_bytes": host.get("Memory"),
        "memory_and_swap_bytes": host.get("MemorySwap"),
        "nano_cpus": host.get("NanoCpus"),
        "shm_bytes": host.get("ShmSize"),
        **{key: limits.get(name) for key, name in _ULIMITS.items()},
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
    """What decides how an engine walls its containers in. `runtime` is its own choice among its `runtimes`."""
    components = version.get("Components") or []
    return {
        "backend": "docker",
        "product": product_of(version),
        "engine": str(version["Version"]),
        "api": str(version["ApiVersion"]),
        "architecture": str(version["Arch"]),
        "kernel": str(version["KernelVersion"]),
        "storage_driver": str(info["Driver"]),
        "cgroup_version": str(info.get("CgroupVersion") or "1"),
        "cgroup_driver": str(info.get("CgroupDriver") or "not told"),
        "runtime": str(info.get("DefaultRuntime") or "not told"),
        "runtimes": " ".join(sorted(info.get("Runtimes") or {})) or "not told",
        "users": _users(info),
        "security_options": " ".join(sorted(info.get("SecurityOptions") or [])) or "none",
        "components": " ".join(sorted(f"{part['Name']}={part['Version']}" for part in components)) or "not told",
    }


def _users(info: Mapping[str, Any]) -> str:
    """Whose a container's users are: where they are the host's own, root in a container is root."""
    options = option_names(info)
    if "rootless" in options:
        return "of the engine's own user, who is not root"
    return "mapped to others of the host" if "userns" in options else "the host's own"


def engine_guarantees(version: Mapping[str, Any], info: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Each promise of a workspace, with None if this engine can keep it and else why it can't."""
    warned = [str(text).removeprefix("WARNING: ") for text in info.get("Warnings") or []]

    def counted(what: str, *keys: str) -> str | None:
        if info.get("CgroupDriver") == "none":
            return f"this engine may use no control groups, so it does not limit {what}"
        if all(info.get(key) for key in keys):
            return None
        told = "; ".join(text for text in warned if "support" in text)
        return f"this engine's kernel does not limit {what}" + (f" (the engine warns: {told})" if told else "")

    linux = None if version.get("Os") == "linux" else f"the engine runs on {version.get('Os')!r}: expected linux"
    always = (
        "network", "processes", "root_read_only", "capabilities", "new_privileges", "environment", "kill", "user_apart",
        "keeper_apart", "forwarder_apart", "file_bytes", "open_files", "core_bytes", "workspace_bytes",
        "workspace_inodes", "tmp_bytes", "tmp_inodes", "shm_bytes", "shm_inodes",
    )  # fmt: skip
    filtered = "seccomp" in option_names(info)
    return {
        **dict.fromkeys(always, linux),
        "system_calls": None if filtered else "this engine has no filter of system calls (seccomp)",
        "pids": counted("the number of processes", "PidsLimit"),
        "memory_process": counted("memory", "MemoryLimit"),
        "memory_total": counted("memory", "MemoryLimit"),
        "swap": counted("swap", "MemoryLimit", "SwapLimit"),
        "cpu": counted("CPU time", "CpuCfsPeriod", "CpuCfsQuota"),
    }
