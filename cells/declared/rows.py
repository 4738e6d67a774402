"""
A cell that another harness played, as the readings take it: from a table, a log, or a folder of jobs.

It is named by its run and its id. What the other harness did not say is None, never 0 and never a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Self, TypeAlias

from harness.values import Declared, End, Halt, Price, Standing, Unit, Void, no_bar

__all__ = ["ForeignCell", "ForeignKey", "ForeignReading", "ForeignSpend", "Name", "name_of", "name_text"]

CONDITION = ("benchmark", "task", "arm", "extras", "model")
"""The parts of a condition, in the order of a key."""

Name: TypeAlias = tuple[str, str]
"""What identifies a cell: a run, and an id in it. Ids repeat across runs."""


def name_text(name: Name) -> str:
    """A name as people write it, `run/id`; a `/` in the run is written `%2F`, and a `%` `%25`."""
    run, identity = name
    return f"{run if run.isalnum() else run.replace('%', '%25').replace('/', '%2F')}/{identity}"


def name_of(text: str) -> Name:
    """The name that `name_text` writes so. Raises `ValueError` for a text without a run and an id."""
    run, slash, identity = text.partition("/")
    if not run or not slash or not identity:
        raise ValueError(f"the cell {text!r} has no run and id: expected run/id")
    return run.replace("%2F", "/").replace("%25", "%") if "%" in run else run, identity


@lru_cache(maxsize=4096)
def _unit(benchmark: str, model: str, task: str) -> Unit:
    """Units are few and cells are many; each unit is made and checked once."""
    return Unit(benchmark=benchmark, model=model, task=task)


def _is_name(value: str) -> bool:
    return bool(value) and value.isprintable() and value == value.strip()


@lru_cache(maxsize=4096)
def _checked_name(label: str, value: str) -> None:
    if not _is_name(value):
        raise ValueError(f"{label} is {value!r}: expected a name that prints on one line, without outer spaces")


class _Parts(NamedTuple):
    run: str
    id: str
    benchmark: str
    task: str
    arm: str
    extras: str
    model: str
    replicate: int | None


class ForeignKey(_Parts):
    """
    Whose cell this is (`run`), what it is called there (`id`), and its condition.

    `replicate` is None where the other harness did not number the cells of a condition. Raises `ValueError` for a part
    that can't be part of a unit or a name. A tuple, since cells are looked up far more often than they are made.
    """

    __slots__ = ()

    def __new__(
        cls,
        *,
        run: str,
        id: str,  # noqa: A002 - what it is called
        benchmark: str,
        task: str,
        arm: str,
        extras: str,
        model: str,
        replicate: int | None = None,
    ) -> Self:
        """Make a key of parts that are checked."""
        for label, part in zip(CONDITION, (benchmark, task, arm, extras, model), strict=True):
            no_bar(label, part)
        _checked_name("run", run)
        return tuple.__new__(cls, (run, id, benchmark, task, arm, extras, model, None)).sibling(id, replicate)

    def sibling(self, identity: str, replicate: int | None) -> Self:
        """Another cell of this one's run and condition, whose parts were checked when this one was made."""
        if not _is_name(identity):
            _checked_name("id", identity)
        if replicate is not None and replicate < 1:
            raise ValueError(f"replicate is {replicate}: expected 1 or more")
        return tuple.__new__(type(self), (self[0], identity, *self[2:7], replicate))

    @property
    def name(self) -> Name:
        """What identifies the cell."""
        return self[:2]

    @property
    def condition(self) -> tuple[str, str, str, str, str]:
        """What it was played under: benchmark, task, arm, extras and model."""
        return self[2:7]

    @property
    def unit(self) -> Unit:
        """The unit that this cell's outcome is paired by."""
        return _unit(self.benchmark, self.model, self.task)

    def __str__(self) -> str:
        return name_text(self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignReading:
    """What the other harness's referee said (`PASS`, `NO_BUILD`, a word of its own), and what that counts as."""

    reading: str
    standing: Standing


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignSpend:
    """What a try cost: tokens of all directions, calls of the model, seconds of the seat, and a typed price."""

    price: Price
    tokens: int | None = None
    calls: int | None = None
    wall_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignCell:
    """
    One try of a foreign cell. As with recorded ones the END decides first: a `verdict` stands beside DECLARED only, a
    `would_be` (what the referee said of a halted cell's work, a diagnostic) beside HALT only.

    `labels` are further words of the other harness (an account, a stage), kept and never counted.
    """

    cell: ForeignKey
    end: End
    spend: ForeignSpend
    attempt: int = 1
    verdict: ForeignReading | None = None
    would_be: ForeignReading | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.end, Declared) != (self.verdict is not None):
            raise ValueError(f"{self.cell}: expected a verdict beside DECLARED, and beside nothing else")
        if self.would_be is not None and not isinstance(self.end, Halt):
            raise ValueError(f"{self.cell}: a would-be reading beside {self.end.kind}: expected one beside HALT only")
        if self.attempt < 1:
            raise ValueError(f"{self.cell}: attempt is {self.attempt}: expected 1 or more")

    @property
    def outcome_class(self) -> str:
        """The class that is printed: the reading of a declared end, else the kind of the end."""
        return self.end.kind if self.verdict is None else self.verdict.reading

    @property
    def passed(self) -> bool | None:
        """True or False for a declared end that was accepted or rejected; None for everything without a number."""
        if self.verdict is None or self.verdict.standing == "unscorable":
            return None
        return self.verdict.standing == "accepted"

    @property
    def undecided(self) -> bool:
        """Whether the other harness's referee could not decide."""
        return self.verdict is not None and self.verdict.standing == "unscorable"

    @property
    def is_final(self) -> bool:
        """Whether the cell is done with; a VOID may have been tried again."""
        return not isinstance(self.end, Void)
