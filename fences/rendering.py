"""Pure renderings of a policy: the walls and tool rules of a workspace, and where each rule came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from fences.policy import FencePolicy
from harness.canonical import Json, digest_json
from harness.errors import GateRefused, unknown_name
from harness.permissions import READING, WRITING
from harness.ports import WorkspaceBackend
from harness.views import Fence
from harness.walls import GATEWAY_FOLDER, ToolRules, Walls

__all__ = ["Provenance", "check_requires", "layer_digests", "layers", "provenance", "render"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """One rule of the rendered fence: the layer that enforces it, what it says, and the key that it came from."""

    layer: str
    rule: str
    came_from: str


def render(policy: FencePolicy, image: str) -> Fence:
    """The fence that `policy` asks for around a workspace of `image`: equal for equal arguments, nothing is read."""
    walls = Walls(
        image=image,
        caps=policy.limits,
        network="gateway" if policy.network == "gateway" else "none",
        system_calls="traced" if policy.ptrace else "listed",
        environment=dict(policy.environment),
    )
    rules = ToolRules(
        tools=frozenset(policy.tools),
        readable=tuple(sorted(policy.readable)),
        writable=tuple(sorted(policy.writable)),
        denied=tuple(sorted(policy.denied)),
        background=policy.background,
    )
    return Fence(walls=walls, rules=rules, gateway=policy.gateway)


def layers(policy: FencePolicy, image: str, backend: WorkspaceBackend) -> dict[str, Json]:
    """
    Each layer of the fence as JSON data: what the backend is asked for (`walls`), the tools' rules, and the gateway's.

    Raises `FenceError` for walls that this backend can't have.
    """
    fence = render(policy, image)
    return {
        "walls": dict(backend.options(fence.walls)),
        "tool rules": {**asdict(fence.rules), "tools": sorted(fence.rules.tools)},
        "gateway": asdict(fence.gateway),
    }


def layer_digests(policy: FencePolicy, image: str, backend: WorkspaceBackend) -> dict[str, str]:
    """SHA-256 of each layer's canonical bytes: equal exactly where the layers are, byte for byte."""
    return {name: digest_json(layer) for name, layer in layers(policy, image, backend).items()}


def provenance(policy: FencePolicy) -> tuple[Provenance, ...]:
    """Every rule of every layer with the key of the experiment file, or the invariant, that it came from."""
    return (*_container_rows(policy), *_mount_rows(policy), *_tool_rows(policy), *_gateway_rows(policy))


def check_requires(policy: FencePolicy, guarantees: Mapping[str, str | None]) -> None:
    """
    Refuse a backend that can't give what the policy requires. `guarantees` maps each promise to None, or to why not.

    Raises `GateRefused` that names every guarantee the backend lacks, and why.
    """
    faults = []
    for name in policy.guarantees:
        if name not in guarantees:
            faults.append(unknown_name("guarantee", name, guarantees).removesuffix("."))
        elif (why := guarantees[name]) is not None:
            faults.append(f"{name} is not enforced: {why}")
    if faults:
        raise GateRefused(
            "fence",
            "this workspace backend can't give what fence.requires asks for: "
            + "; ".join(faults)
            + ". Choose another backend, or take the guarantee out of fence.requires and say so in the report.",
        )


def _container_rows(policy: FencePolicy) -> list[Provenance]:
    reached = "loopback only" if policy.network == "none" else "loopback, and the gateway's socket"
    calls = "our own list, and what a debugger needs" if policy.ptrace else "our own list, without ptrace"
    always = (
        "root file system read-only",
        "no capability, no new privileges, not root, and not the user of the first process",
        "process tree, IPC, host name and control groups of its own",
        "what /proc and /sys tell of the host is masked",
    )
    rows = [
        Provenance(layer="container", rule=f"network {policy.network}: {reached}", came_from="fence.network"),
        Provenance(layer="container", rule=f"system calls: {calls}, one architecture", came_from="fence.ptrace"),
        *(Provenance(layer="container", rule=rule, came_from="always") for rule in always),
    ]
    for item in fields(policy.limits):
        rule = f"{item.name} at most {getattr(policy.limits, item.name)}"
        rows.append(Provenance(layer="container", rule=rule, came_from=f"workspace.limits.{item.name}"))
    variables = [f"variable {name}" for name in sorted(policy.environment)] or ["no variable of the policy's"]
    rows += [Provenance(layer="container", rule=rule, came_from="fence.environment") for rule in variables]
    return rows


def _mount_rows(policy: FencePolicy) -> list[Provenance]:
    never = [
        Provenance(layer="mounts", rule=f"nothing of the host at {path}", came_from="fence.denied")
        for path in sorted(policy.denied)
    ]
    shown = [Provenance(layer="mounts", rule="no path of the host", came_from="always")]
    if policy.network == "gateway":
        rule = f"the gateway's own folder at {GATEWAY_FOLDER}, read-only, and no other path of the host"
        shown = [Provenance(layer="mounts", rule=rule, came_from="fence.network")]
    return [*shown, *never]


def _tool_rows(policy: FencePolicy) -> list[Provenance]:
    lives = "lives on until the next call" if policy.background else "is ended before the call is answered"
    rows = [Provenance(layer="tools", rule=f"what a call leaves running {lives}", came_from="fence.background")]
    for tool in sorted(policy.tools):
        needs = [("reads below", "readable")] if tool not in WRITING else []
        needs += [("writes below", "writable")] if tool not in READING else []
        for verb, kind in (*needs, ("never", "denied")):
            roots = sorted(getattr(policy, kind)) or ["nothing"]
            rows += [
                Provenance(layer=f"tool {tool}", rule=f"{verb} {root}", came_from=f"fence.{kind}") for root in roots
            ]
    return rows


def _gateway_rows(policy: FencePolicy) -> list[Provenance]:
    """Every path that the gateway serves, and every cap; without the gateway, that there is no address to reach."""
    if policy.network == "none":
        return [Provenance(layer="gateway", rule="no address allowed", came_from="fence.network")]
    from harness.gateway.wires import paths

    served = [
        Provenance(layer="gateway", rule=f"POST {path} ({wire.name})", came_from="fence.gateway.wires")
        for path, wire in sorted(paths(policy.gateway).items())
    ]
    caps = [
        Provenance(
            layer="gateway",
            rule=f"{item.name} at most {getattr(policy.gateway, item.name)}",
            came_from=f"fence.gateway.{item.name}",
        )
        for item in fields(policy.gateway)
        if item.name != "wires"
    ]
    only = "the cell's own model, whatever a request names; nothing else of any address"
    return [*served, *caps, Provenance(layer="gateway", rule=only, came_from="always")]
