"""
The values that travel between rooms: frozen, keyword-only, and free of behaviour that could fail.

What is on disk is a tagged union (`kind`), so that a line of the record says by itself what it is.
Missing is not zero: an unknown count is `None`, and a sum with an unknown is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

__all__ = [
    "CellKey",
    "Declared",
    "End",
    "Evidence",
    "ExactPrice",
    "FailedBoot",
    "Halt",
    "LowerBoundPrice",
    "Limit",
    "Price",
    "Refused",
    "Standing",
    "TierReading",
    "Unit",
    "Usage",
    "Verdict",
    "Void",
    "VoidPrice",
]

_STRICT = {"extra": "forbid", "allow_inf_nan": False}

Limit: TypeAlias = Literal["tokens", "usd", "calls", "wall", "output"]
"""The meters that can stop a seat."""

Standing: TypeAlias = Literal["accepted", "rejected", "unscorable"]
"""What a referee's own class table makes of a reading."""


def _no_bar(label: str, value: str) -> None:
    if not value or "|" in value or any(ch.isspace() and ch != " " for ch in value) or value != value.strip():
        raise ValueError(f"{label} is {value!r}: expected a non-empty name without '|', tabs, newlines or outer spaces")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Unit:
    """What outcomes are paired by: `benchmark|model|task`, immutable, never a bare task."""

    benchmark: str
    model: str
    task: str

    def __post_init__(self) -> None:
        for item in fields(self):
            _no_bar(item.name, getattr(self, item.name))

    def __str__(self) -> str:
        return f"{self.benchmark}|{self.model}|{self.task}"


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class CellKey:
    """A condition `(task, arm, extras, model)` and a replicate. No field has a default: a key with a gap is refused."""

    benchmark: str
    task: str
    arm: str
    extras: str
    model: str
    replicate: int

    def __post_init__(self) -> None:
        for label in ("benchmark", "task", "arm", "extras", "model"):
            _no_bar(label, getattr(self, label))
        if self.replicate < 1:
            raise ValueError(f"replicate is {self.replicate}: expected 1 or more")

    @property
    def unit(self) -> Unit:
        """The unit that this cell's outcome is paired by."""
        return Unit(benchmark=self.benchmark, model=self.model, task=self.task)

    @property
    def condition(self) -> str:
        """The condition without the replicate, as text."""
        return f"{self.benchmark}|{self.task}|{self.arm}|{self.extras}|{self.model}"

    def __str__(self) -> str:
        return f"{self.condition}|{self.replicate}"


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of one call or of many, by the five directions that are priced apart; `None` is unknown, never 0."""

    __pydantic_config__ = _STRICT

    input: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    cache_read: int | None = None
    output: int | None = None

    @classmethod
    def zero(cls) -> Usage:
        """Nothing used, known to be nothing."""
        return cls(input=0, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=0)

    @property
    def total(self) -> int | None:
        """All tokens, or None if any direction is unknown."""
        total: int | None = 0
        for item in fields(self):
            total = _sum(total, getattr(self, item.name))
        return total

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{item.name: _sum(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)})


@dataclass(frozen=True, kw_only=True, slots=True)
class ExactPrice:
    """A price in US dollars, every token of it counted and rated."""

    __pydantic_config__ = _STRICT
    usd: float
    kind: Literal["exact"] = "exact"


@dataclass(frozen=True, kw_only=True, slots=True)
class LowerBoundPrice:
    """At least this many US dollars: part of the usage is unknown."""

    __pydantic_config__ = _STRICT
    usd: float
    reason: str
    kind: Literal["lower_bound"] = "lower_bound"


@dataclass(frozen=True, kw_only=True, slots=True)
class VoidPrice:
    """No price at all; there is no figure here, not even 0.00."""

    __pydantic_config__ = _STRICT
    reason: str
    kind: Literal["void"] = "void"


Price: TypeAlias = ExactPrice | LowerBoundPrice | VoidPrice


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """The seat stopped by itself; the referee decides."""

    __pydantic_config__ = _STRICT
    note: str = ""
    kind: Literal["DECLARED"] = "DECLARED"


@dataclass(frozen=True, kw_only=True, slots=True)
class Halt:
    """A budget or cap stopped the seat: never a failure. `bound` and `spent` are in the limit's own unit."""

    __pydantic_config__ = _STRICT
    limit: Limit
    scope: Literal["cell", "arm", "run"]
    bound: float
    spent: float
    kind: Literal["HALT"] = "HALT"


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedBoot:
    """No behaviour of the subject at all; not judged."""

    __pydantic_config__ = _STRICT
    detail: str
    kind: Literal["FAILED_BOOT"] = "FAILED_BOOT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Void:
    """The machine, the fence, the model server or the referee failed: no number of any kind."""

    __pydantic_config__ = _STRICT
    cause: str
    detail: str
    kind: Literal["VOID"] = "VOID"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """A gate refused to build the cell; reported as a result."""

    __pydantic_config__ = _STRICT
    gate: str
    detail: str
    kind: Literal["REFUSED"] = "REFUSED"


End: TypeAlias = Declared | Halt | FailedBoot | Void | Refused


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What a verdict rests on: SHA-256 of the judged tree and of the suite, and the execution that made it."""

    __pydantic_config__ = _STRICT
    code: str
    suite: str
    execution: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TierReading:
    """
    One tier of a suite. `passed` and `total` count tests; both are None on a hidden tier, which tells its class alone.

    `ran` is False for a tier that was not reached, and then `reading` is NOT_RUN.
    """

    __pydantic_config__ = _STRICT
    tier: str
    reading: str
    ran: bool = True
    passed: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A referee's word on one exhibit. `detail` is for people; nothing is decided by it."""

    __pydantic_config__ = _STRICT
    reading: str
    standing: Standing
    evidence: Evidence
    tiers: tuple[TierReading, ...] = ()
    detail: str = ""
    seconds: float | None = None

    def same_as(self, other: Verdict) -> bool:
        """Whether both say the same of the same code by the same suite (the execution and its time may differ)."""
        mine, theirs = self.evidence, other.evidence
        return (self.reading, self.standing, self.tiers, mine.code, mine.suite) == (
            other.reading,
            other.standing,
            other.tiers,
            theirs.code,
            theirs.suite,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoding:
    """How the model samples. `num_predict` and `num_ctx` are in tokens; `seed` is set by the harness per call."""

    __pydantic_config__ = _STRICT
    temperature: float = 0.8
    top_p: float = 0.95
    num_predict: int = 512
    num_ctx: int = 4096
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """One tool offered to a model; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A model's wish to call a tool; `arguments` were parsed by the provider, or None if they did not parse."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None
    raw: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a conversation. A `tool` message answers the call `tool_call_id`, made to `tool_name`."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One call of a model: everything that decides its answer."""

    messages: tuple[Message, ...]
    decoding: Decoding
    seed: int
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """A model's answer. `stop` is "length" when num_predict or the window ended it: a valid answer, marked."""

    text: str
    stop: Literal["stop", "length", "tool_calls"]
    usage: Usage
    served_model: str
    latency_s: float
    tool_calls: tuple[ToolCall, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSpec:
    """
    A model as the experiment names it.

    `name` is the experiment's own label (part of unit and cell keys); `provider` a registered model provider; `model`
    what that provider calls it. `key_env` names the environment variable that holds a key, never the key.
    """

    name: str
    provider: str
    model: str
    base_url: str | None = None
    key_env: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelIdentity:
    """What the provider says it will serve; `digest` is None where a provider has none, and that is then shown."""

    served: str
    digest: str | None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mount:
    """A path of the host shown inside a workspace. Scored walls have none; a probe's weakening may."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Caps:
    """What a workspace may use: bytes, processes, CPU cores, seconds of life."""

    __pydantic_config__ = _STRICT
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

    The defaults are the sealed state; only a probe's positive control asks for anything weaker.
    """

    image: str
    caps: Caps = field(default_factory=Caps)
    network: Literal["none", "host", "bridge"] = "none"
    read_only_root: bool = True
    keep_capabilities: bool = False
    new_privileges: bool = False
    host_pids: bool = False
    run_as_root: bool = False
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
