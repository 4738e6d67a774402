"""
The values that travel between rooms: frozen, keyword-only, and free of behaviour that could fail.

What is on disk is a tagged union (`kind`), so that a line of the record says by itself what it is.
Missing is not zero: an unknown count is `None`, and a sum with an unknown is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

if TYPE_CHECKING:
    from pydantic import ConfigDict

__all__ = [
    "STRICT",
    "CellKey",
    "Declared",
    "End",
    "Evidence",
    "ExactPrice",
    "FailedBoot",
    "Halt",
    "Limit",
    "LowerBoundPrice",
    "Price",
    "Refused",
    "Standing",
    "TestReading",
    "TierReading",
    "Unit",
    "Usage",
    "Verdict",
    "Void",
    "VoidPrice",
    "no_bar",
]

STRICT: ConfigDict = {"extra": "forbid", "allow_inf_nan": False}
"""How every value is read from disk: unknown keys, NaN and infinities are refused."""

Limit: TypeAlias = Literal["tokens", "usd", "calls", "wall", "output"]
"""The meters that can stop a seat."""

Standing: TypeAlias = Literal["accepted", "rejected", "unscorable"]
"""What a referee's own class table makes of a reading."""


@lru_cache(maxsize=1 << 16)
def no_bar(label: str, value: str) -> None:
    """
    Raise `ValueError` for a name that can't be a part of a unit.

    Names are few and cells are many: what was found good is not looked at again.
    """
    # What does not print (tabs, newlines, escapes, halves of characters) can't be told apart, or can't be written.
    if not value or "|" in value or not value.isprintable() or value != value.strip():
        raise ValueError(f"{label} is {value!r}: expected a name that prints on one line, without '|' or outer spaces")


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Unit:
    """What outcomes are paired by: `benchmark|model|task`, immutable, never a bare task."""

    benchmark: str
    model: str
    task: str

    def __post_init__(self) -> None:
        for item in fields(self):
            no_bar(item.name, getattr(self, item.name))

    def __str__(self) -> str:
        return f"{self.benchmark}|{self.model}|{self.task}"


@lru_cache(maxsize=1 << 16)
def _unit(benchmark: str, model: str, task: str) -> Unit:
    """Readings ask for the unit of each cell many times over; each is made and checked once."""
    return Unit(benchmark=benchmark, model=model, task=task)


@lru_cache(maxsize=1 << 16)
def _condition(benchmark: str, task: str, arm: str, extras: str, model: str) -> None:
    """Check the parts of a condition, which many cells share. Raises `ValueError` for the first that is no name."""
    parts = {"benchmark": benchmark, "task": task, "arm": arm, "extras": extras, "model": model}
    for label, part in parts.items():
        no_bar(label, part)


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
        _condition(self.benchmark, self.task, self.arm, self.extras, self.model)
        if self.replicate < 1:
            raise ValueError(f"replicate is {self.replicate}: expected 1 or more")

    @property
    def unit(self) -> Unit:
        """The unit that this cell's outcome is paired by."""
        return _unit(self.benchmark, self.model, self.task)

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

    __pydantic_config__ = STRICT

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
        parts = (self.input, self.cache_write_5m, self.cache_write_1h, self.cache_read, self.output)
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{item.name: _sum(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)})


@dataclass(frozen=True, kw_only=True, slots=True)
class ExactPrice:
    """A price in US dollars, every token of it counted and rated."""

    __pydantic_config__ = STRICT
    usd: float
    kind: Literal["exact"] = "exact"


@dataclass(frozen=True, kw_only=True, slots=True)
class LowerBoundPrice:
    """At least this many US dollars: part of the usage is unknown."""

    __pydantic_config__ = STRICT
    usd: float
    reason: str
    kind: Literal["lower_bound"] = "lower_bound"


@dataclass(frozen=True, kw_only=True, slots=True)
class VoidPrice:
    """No price at all; there is no figure here, not even 0.00."""

    __pydantic_config__ = STRICT
    reason: str
    kind: Literal["void"] = "void"


Price: TypeAlias = ExactPrice | LowerBoundPrice | VoidPrice
"""Told apart by `kind`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """The seat stopped by itself; the referee decides."""

    __pydantic_config__ = STRICT
    note: str = ""
    kind: Literal["DECLARED"] = "DECLARED"


@dataclass(frozen=True, kw_only=True, slots=True)
class Halt:
    """
    A budget or cap stopped the seat: never a failure. `bound` and `spent` are in the limit's own unit, None where
    another harness that stopped its seat did not tell them.
    """

    __pydantic_config__ = STRICT
    limit: Limit
    scope: Literal["cell", "arm", "run"]
    bound: float | None
    spent: float | None
    kind: Literal["HALT"] = "HALT"


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedBoot:
    """No behaviour of the subject at all; not judged."""

    __pydantic_config__ = STRICT
    detail: str
    kind: Literal["FAILED_BOOT"] = "FAILED_BOOT"


@dataclass(frozen=True, kw_only=True, slots=True)
class Void:
    """The machine, the fence, the model server or the referee failed: no number of any kind."""

    __pydantic_config__ = STRICT
    cause: str
    detail: str
    kind: Literal["VOID"] = "VOID"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """A gate refused to build the cell; reported as a result."""

    __pydantic_config__ = STRICT
    gate: str
    detail: str
    kind: Literal["REFUSED"] = "REFUSED"


End: TypeAlias = Declared | Halt | FailedBoot | Void | Refused
"""Told apart by `kind`; decided before anything the referee says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What a verdict rests on: SHA-256 of the judged tree and of the suite, and the execution that made it."""

    __pydantic_config__ = STRICT
    code: str
    suite: str
    execution: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TierReading:
    """
    One tier of a suite. `passed` and `total` count tests; both are None on a hidden tier, which tells its class alone.

    `ran` is False for a tier that was not reached, and then `reading` is NOT_RUN.
    """

    __pydantic_config__ = STRICT
    tier: str
    reading: str
    ran: bool = True
    passed: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TestReading:
    """
    One test of a tier that may be told of, in the suite's order; a hidden tier has none.

    `reading` is `PASS`, the class that the test came to, or `NOT_RUN`; `detail` is the violated fact, or what was said.
    """

    __test__: ClassVar[bool] = False  # no test class, whatever its name makes a collector think
    __pydantic_config__ = STRICT
    id: str
    reading: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """
    A referee's word on one exhibit. `detail` is for people; nothing is decided by it.

    `seconds` (by the clock) and `cpu_s` (of the processor) are what judging used, None where that is unknown; `limits`
    are those that the subject was under, each named with its unit (`cpu_s`, `memory_bytes`). Where a gate refused the
    exhibit, `would_be` is the reading without that gate, a diagnostic that nothing counts.
    """

    __pydantic_config__ = STRICT
    reading: str
    standing: Standing
    evidence: Evidence
    tiers: tuple[TierReading, ...] = ()
    tests: tuple[TestReading, ...] = ()
    detail: str = ""
    would_be: str | None = None
    seconds: float | None = None
    cpu_s: float | None = None
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def said(self) -> tuple[object, ...]:
        """All that two verdicts must agree on: readings, code and suite. The execution and its time may differ."""
        tests = tuple((test.id, test.reading) for test in self.tests)
        return self.reading, self.standing, self.tiers, tests, self.would_be, self.evidence.code, self.evidence.suite

    def same_as(self, other: Verdict) -> bool:
        """Whether both say the same of the same code by the same suite."""
        return self.said == other.said
