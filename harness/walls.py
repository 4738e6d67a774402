"""The walls of a workspace as values, the rules of a seat's tools, and what a program run behind them did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from harness.values import STRICT

__all__ = ["Caps", "ExecResult", "Mount", "ToolRules", "Walls"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """A path of the host shown inside a workspace. Scored walls have none; a probe's weakening may."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Caps:
    """What a workspace may use: bytes, processes, CPU cores, seconds of life."""

    __pydantic_config__ = STRICT
    memory_bytes: int = 1 << 30
    pids: int = 128
    cpus: float = 1.0
    workspace_bytes: int = 256 << 20
    workspace_inodes: int = 20_000
    tmp_bytes: int = 64 << 20
    file_bytes: int = 64 << 20
    open_files: int = 1024
    lifetime_s: float = 7200.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Walls:
    """
    What a workspace is walled by, rendered by `fences` from a policy and rendered again by a backend into its options.

    The defaults are the sealed state; only a probe's positive control asks for anything weaker. `open_kernel` lifts the
    filter of system calls and uncovers what /proc and /sys tell of the host.
    """

    image: str
    caps: Caps = field(default_factory=Caps)
    network: Literal["none", "host", "bridge"] = "none"
    read_only_root: bool = True
    keep_capabilities: bool = False
    new_privileges: bool = False
    host_pids: bool = False
    run_as_root: bool = False
    open_kernel: bool = False
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRules:
    """
    What a seat's file tools may touch, by containment of paths inside the workspace, and which tools exist.

    `denied` wins over both roots. An empty `readable` or `writable` refuses everything.
    """

    tools: frozenset[str]
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    denied: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecResult:
    """
    What one program in a workspace did. `status` is None when it could not be known: then nothing may be concluded.

    Outputs are cut at the caller's cap, which `stdout_cut` and `stderr_cut` tell. `timed_out` means the time limit
    killed everything the program had started.
    """

    stdout: bytes
    stderr: bytes
    status: int | None
    seconds: float
    timed_out: bool = False
    stdout_cut: bool = False
    stderr_cut: bool = False
