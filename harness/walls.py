"""The walls of a workspace as values, the rules of a seat's tools, and what a program run behind them did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from harness.values import STRICT

__all__ = [
    "GATEWAY_FOLDER",
    "GATEWAY_PORT",
    "GATEWAY_SOCKET",
    "GATEWAY_SOURCE",
    "SECRET_LIKE",
    "Caps",
    "ExecResult",
    "GatewayRules",
    "KillProof",
    "Mount",
    "Namespace",
    "SystemCalls",
    "ToolRules",
    "Walls",
]

GATEWAY_FOLDER = "/run/gateway"
"""Where a workspace with the network `gateway` sees the gateway's folder, read-only."""

GATEWAY_SOCKET = "model.sock"
"""The gateway's socket in that folder."""

GATEWAY_PORT = 8081
"""The port of a workspace's own loopback that is joined to the gateway's socket."""

GATEWAY_SOURCE = "gateway"
"""
What the facts of a running workspace call the source of its own gateway's folder: the folder's path on the host is new
for each workspace, and a backend shows this name only for the very folder that is `workspace.gateway`.
"""

SECRET_LIKE = r"(?:^|_)(?:key|keys|token|secret|secrets|password|passwd|credential|credentials|auth)(?:_|$)"  # noqa: S105 - a pattern
"""
A pattern for names of variables that sound like a secret, to be searched without regard to case: no workspace has one.
"""

Namespace: TypeAlias = Literal["cgroup", "ipc", "pid", "uts"]
SystemCalls: TypeAlias = Literal["listed", "traced", "engine", "any"]
"""
- `listed`: our own list of allowed calls, for one architecture;
- `traced`: the list, and what a debugger needs (ptrace among them), where the policy asks for it;
- `engine`: whatever the engine filters by itself; only a positive control asks for it;
- `any`: no filter; likewise.
"""


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
    shm_bytes: int = 16 << 20
    file_bytes: int = 64 << 20
    core_bytes: int = 0
    open_files: int = 1024
    lifetime_s: float = 7200.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Walls:
    """
    What a workspace is walled by, rendered by `fences` from a policy and rendered again by a backend into its options.

    The defaults are the sealed state; only a probe's positive control asks for anything weaker, but for two that a
    policy may choose: the network `gateway` (loopback, and one folder of the host with the gateway's socket, read-only)
    and `traced` system calls. `masked` covers what /proc and /sys tell of the host; `host_namespaces` are shared with
    the host; `capabilities` are added ones; `keeper_apart` has the first process run as another user than the seat.
    """

    image: str
    caps: Caps = field(default_factory=Caps)
    network: Literal["none", "gateway", "host", "bridge"] = "none"
    read_only_root: bool = True
    keep_capabilities: bool = False
    capabilities: tuple[str, ...] = ()
    new_privileges: bool = False
    host_namespaces: tuple[Namespace, ...] = ()
    run_as_root: bool = False
    keeper_apart: bool = True
    system_calls: SystemCalls = "listed"
    masked: bool = True
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRules:
    """
    What a seat's file tools may touch, by containment of paths inside the workspace, and which tools exist.

    `denied` wins over both roots. An empty `readable` or `writable` refuses everything. With `background` what a call
    leaves running lives on until the next; without it, it is ended before the call is answered.
    """

    tools: frozenset[str]
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    denied: tuple[str, ...] = ()
    background: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class GatewayRules:
    """
    What a foreign agent may ask of the gateway: the wires it may speak, and how much of everything. The model, the
    address behind it and the key are the harness's own and are named in no request.

    Sizes are in bytes and times in seconds; `connections` at once, `requests` in one connection.
    """

    __pydantic_config__ = STRICT
    wires: tuple[Literal["anthropic", "ollama", "openai"], ...] = ("anthropic", "ollama", "openai")
    header_bytes: int = 32 << 10
    body_bytes: int = 1 << 20
    connections: int = 8
    requests: int = 1000
    arrival_s: float = 10.0
    answer_s: float = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class KillProof:
    """
    What was seen from outside when a workspace was ended: how many of its processes were alive before and after, and by
    which witness (`pid namespace`, `control group`, `engine`). None where nobody could look; `alive` other than 0 voids
    a cell.
    """

    before: int | None
    alive: int | None
    witness: str
    seconds: float


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
