"""The fence's policy: the one value that every layer is rendered from, refused unless it is consistent."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any

from harness.canonical import digest_json
from harness.errors import ExperimentError, unknown_name
from harness.permissions import WORKSPACE, contains, normal
from harness.values import STRICT
from harness.walls import SECRET_LIKE, Caps, GatewayRules

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = ["MODEL_REACHED", "MUST_WORK", "PROBE_PREFIX", "SCRATCH", "SECRET_LIKE", "UNREACHING", "FencePolicy"]

SCRATCH = "/tmp"  # noqa: S108 - a path inside the workspace, where each has a /tmp of its own
"""The only other place, beside the workspace's own folder, that the walls leave writable."""

PROBE_PREFIX = "probe:"
"""`requires = ["probe:NAME"]`: this probe must have been seen to succeed with the fence down."""

MUST_WORK = ("write-workspace", "read-task", "run-python3", "tools")
"""What a policy lists in `must_work` unless it says otherwise: a seat that can't work is another experiment."""

MODEL_REACHED = "model-reached"
"""One more, for the network `gateway` alone, whose policies list it unless they say otherwise."""

UNREACHING = frozenset({"submit"})
"""Tools that reach no file, process or address, so that nothing has to vouch for them."""

_GLOB = ("*", "?", "[", "]", "{", "}", "~", "$")
"""What makes a pattern, or a variable, of a path."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


TO_START = 32 << 20
"""Bytes of memory that no file may take: with less, no program could be started, and the seat had voided its cell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FencePolicy:
    """
    What a seat may reach. Roots are absolute paths inside the workspace, compared by containment; `denied` wins.

    `environment` is given to the seat word for word; nothing else of any environment is. `requires` names guarantees
    that the backend must enforce, and as `probe:NAME` probes whose positive control must have been measured;
    `must_work` what a seat must be able to do. `background` lets what a tool call leaves running live on, `ptrace` lets
    debuggers work; `gateway` is what a foreign agent may ask for, where the network is `gateway`.
    Raises `ExperimentError` for a policy that contradicts itself.
    """

    __pydantic_config__ = STRICT

    readable: tuple[str, ...] = (WORKSPACE,)
    writable: tuple[str, ...] = (WORKSPACE,)
    denied: tuple[str, ...] = ("/home", "/proc", "/root", "/run", "/sys", "/var/run")
    network: str = "none"
    tools: tuple[str, ...] = ("edit", "list", "read", "run", "search", "submit", "write")
    environment: Mapping[str, str] = field(default_factory=dict)
    requires: tuple[str, ...] = (
        "network",
        "probe:address",
        "probe:engine-socket",
        "probe:host-environment",
        "probe:host-file",
        "probe:loopback",
        "probe:sealed-half",
    )
    must_work: tuple[str, ...] = MUST_WORK
    background: bool = False
    ptrace: bool = False
    gateway: GatewayRules = field(default_factory=GatewayRules)
    limits: Caps = field(default_factory=Caps)

    def __post_init__(self) -> None:
        for kind in ("readable", "writable", "denied"):
            _check_roots(kind, getattr(self, kind))
        _check_against_each_other(self)
        if self.network not in ("none", "gateway"):
            raise ExperimentError(
                f"fence.network is {self.network!r}: expected 'none', or 'gateway' for a foreign agent's program. A "
                "seat reaches no address but, with the gateway, its one model."
            )
        _check_gateway(self.gateway)
        _check_names(self)
        _check_environment(self.environment)
        _check_limits(self.limits)

    @classmethod
    def from_mapping(cls, fence: Mapping[str, Any], limits: Mapping[str, Any] | None = None) -> FencePolicy:
        """
        The policy of an experiment file: its `[fence]` table and its `[workspace.limits]` table.

        Raises `ExperimentError` that names each unknown key, each bad value and what was expected.
        """
        known = [item.name for item in fields(cls) if item.name != "limits"]
        for key in fence:
            if key not in known:
                raise ExperimentError("fence: " + unknown_name("key", key, known))
        caps = [item.name for item in fields(Caps)]
        for key in limits or {}:
            if key not in caps:
                raise ExperimentError("workspace.limits: " + unknown_name("key", key, caps))
        rules = fence.get("gateway")
        known = [item.name for item in fields(GatewayRules)]
        for key in rules if isinstance(rules, Mapping) else ():
            if key not in known:
                raise ExperimentError("fence.gateway: " + unknown_name("key", key, known))
        from pydantic import ValidationError

        usual = {"must_work": (*MUST_WORK, MODEL_REACHED)} if fence.get("network") == "gateway" else {}
        try:
            return _adapter().validate_json(
                json.dumps({**usual, **fence, "limits": dict(limits or {})}, default=_refuse), strict=True
            )
        except ValidationError as error:
            raise ExperimentError(_explain(error)) from None

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON data, in an order that does not depend on how it was written down."""
        data = asdict(self)
        for key, value in data.items():
            if isinstance(value, tuple):
                data[key] = sorted(value)
        data["environment"] = dict(self.environment)
        return data

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical policy."""
        return digest_json(self.to_json())

    @property
    def guarantees(self) -> tuple[str, ...]:
        """The guarantees in `requires`: what the backend must enforce."""
        return tuple(name for name in self.requires if not name.startswith(PROBE_PREFIX))

    @property
    def measured(self) -> tuple[str, ...]:
        """The probes in `requires`, whose positive control must have been measured."""
        return tuple(name.removeprefix(PROBE_PREFIX) for name in self.requires if name.startswith(PROBE_PREFIX))


@cache
def _adapter() -> TypeAdapter[FencePolicy]:
    from pydantic import TypeAdapter

    return TypeAdapter(FencePolicy)


def _refuse(value: object) -> object:
    """What TOML has and a policy has not: dates and times."""
    raise ExperimentError(f"fence holds {value!r:.80}: expected texts, numbers, true or false, lists, tables")


def _explain(error: ValidationError) -> str:
    lines = []
    for fault in error.errors(include_url=False):
        place = [str(part) for part in fault["loc"]]
        table = ["workspace"] if place[:1] == ["limits"] else ["fence"]
        lines.append(f"{'.'.join(table + place)}: {fault['msg']}, got {fault['input']!r:.80}")
    return "the fence's policy can't be used:\n  " + "\n  ".join(lines)


def _check_roots(kind: str, roots: Iterable[str]) -> None:
    for root in roots:
        try:
            clean = normal(root)
        except ValueError as error:
            raise ExperimentError(f"fence.{kind} holds an unset or unclear root: {error}") from None
        if any(mark in root for mark in _GLOB):
            raise ExperimentError(
                f"fence.{kind} holds {root!r}, which has one of {' '.join(_GLOB)}: expected a folder by its name, "
                "since roots are compared by containment and never by a pattern"
            )
        if clean != root:
            raise ExperimentError(
                f"fence.{kind} holds {root!r}: expected an absolute path in normal form, as {clean!r}"
            )


def _check_against_each_other(policy: FencePolicy) -> None:
    if not any(contains(root, WORKSPACE) for root in policy.readable):
        raise ExperimentError(f"fence.readable is {list(policy.readable)}: expected it to hold {WORKSPACE!r}")
    if "/" in policy.readable:
        raise ExperimentError("fence.readable holds '/': name the folders that a seat's tools need")
    for root in policy.writable:
        if not any(contains(place, root) for place in (WORKSPACE, SCRATCH)):
            raise ExperimentError(
                f"fence.writable holds {root!r}: expected folders below {WORKSPACE} or {SCRATCH}, since the walls make "
                "everything else read-only"
            )
        if not any(contains(readable, root) for readable in policy.readable):
            raise ExperimentError(
                f"fence.writable holds {root!r}, which is in no readable root: add it to fence.readable"
            )
    for denied in policy.denied:
        if contains(denied, WORKSPACE) or contains(WORKSPACE, denied):
            raise ExperimentError(
                f"fence.denied holds {denied!r}, which intersects the workspace {WORKSPACE!r}: a seat that is denied "
                "its own folder can't work. Keep what is sealed out of the workspace instead."
            )
        for root in {*policy.readable, *policy.writable}:
            if contains(denied, root):
                raise ExperimentError(
                    f"fence.denied holds {denied!r}, which contains the root {root!r}: denied wins, so the root would "
                    "never be served. Take one of them out."
                )


def _check_names(policy: FencePolicy) -> None:
    for tool in policy.tools:
        if not _NAME.fullmatch(tool):
            raise ExperimentError(f"fence.tools holds {tool!r}: expected a tool's name in small letters")
    for name in policy.must_work:
        if name not in {*MUST_WORK, MODEL_REACHED}:
            raise ExperimentError("fence.must_work: " + unknown_name("ability", name, [*MUST_WORK, MODEL_REACHED]))
        if name == MODEL_REACHED and policy.network != "gateway":
            raise ExperimentError(
                f"fence.must_work holds {name!r}, and fence.network is {policy.network!r}: expected 'gateway'"
            )
    for name in policy.requires:
        if not _NAME.fullmatch(name.removeprefix(PROBE_PREFIX)):
            raise ExperimentError(
                f"fence.requires holds {name!r}: expected the name of a guarantee of the backend, or 'probe:NAME'"
            )
    for kind in ("readable", "writable", "denied", "tools", "requires", "must_work"):
        values: tuple[str, ...] = getattr(policy, kind)
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise ExperimentError(f"fence.{kind} lists {', '.join(map(repr, twice))} twice: expected each once")


def _check_environment(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise ExperimentError(
                f"fence.environment holds {name!r}: expected a variable's name and a text without NUL"
            )
        if re.search(SECRET_LIKE, name, re.IGNORECASE):
            raise ExperimentError(
                f"fence.environment holds {name!r}, which sounds like a secret: nothing secret goes into a workspace"
            )


def _check_gateway(rules: GatewayRules) -> None:
    if not rules.wires or len(set(rules.wires)) != len(rules.wires):
        raise ExperimentError(f"fence.gateway.wires is {list(rules.wires)}: expected one wire or more, each once")
    for item in fields(rules):
        value = getattr(rules, item.name)
        if item.name != "wires" and not (math.isfinite(value) and value > 0):
            raise ExperimentError(f"fence.gateway.{item.name} is {value!r}: expected a finite number above 0")


def _check_limits(limits: Caps) -> None:
    for item in fields(limits):
        value = getattr(limits, item.name)
        if item.name == "core_bytes":
            if value != 0:
                raise ExperimentError(f"workspace.limits.core_bytes is {value!r}: expected 0, no core files")
        elif not math.isfinite(value) or value <= 0:
            raise ExperimentError(f"workspace.limits.{item.name} is {value!r}: expected a finite number above 0")
    held = limits.workspace_bytes + limits.tmp_bytes + limits.shm_bytes
    if held + TO_START > limits.memory_bytes:
        raise ExperimentError(
            f"workspace.limits: workspace_bytes + tmp_bytes + shm_bytes is {held}, and memory_bytes "
            f"{limits.memory_bytes}: files there live in memory and count against it, and a seat that fills them must "
            f"leave {TO_START} bytes to start a program in. Expected memory_bytes of {held + TO_START} or more"
        )
