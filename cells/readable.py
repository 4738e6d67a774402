"""
What the readings need of a cell and its outcome, wherever it was played: by this harness or by another.

A recorded cell is named by its key and is one of a registration; a foreign one is named by its run and its id, for ids
repeat across runs. Both have a condition, and both may be counted, paired and priced by the same code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.values import End, Price, Unit

__all__ = ["Cell", "Outcome", "Said", "Spending"]


class Cell(Protocol):
    """A cell's name and condition. Equal cells are one cell; as text it is what people call it by."""

    @property
    def benchmark(self) -> str: ...

    @property
    def task(self) -> str: ...

    @property
    def arm(self) -> str: ...

    @property
    def extras(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def replicate(self) -> int | None:
        """None where the other harness did not number them: then nothing says which cells make a pair."""

    @property
    def unit(self) -> Unit:
        """What outcomes are paired by."""


class Said(Protocol):
    """What a referee said of an exhibit."""

    @property
    def reading(self) -> str: ...


class Spending(Protocol):
    """What a try cost, None where it is unknown. `wall_s` is in seconds."""

    @property
    def tokens(self) -> int | None: ...

    @property
    def calls(self) -> int | None: ...

    @property
    def wall_s(self) -> float | None: ...

    @property
    def price(self) -> Price: ...


class Outcome(Protocol):
    """How one try of a cell ended. `end` and `spend` are hashable, so that equal outcomes are found at once."""

    @property
    def cell(self) -> Cell: ...

    @property
    def attempt(self) -> int: ...

    @property
    def end(self) -> End: ...

    @property
    def spend(self) -> Spending: ...

    @property
    def would_be(self) -> Said | None: ...

    @property
    def outcome_class(self) -> str:
        """The reading of a declared end, else the kind of the end."""

    @property
    def passed(self) -> bool | None:
        """True or False for a declared end that was accepted or rejected; None for what has no number."""

    @property
    def undecided(self) -> bool:
        """Whether the referee could not decide on a declared end."""

    @property
    def is_final(self) -> bool:
        """Whether the cell is done with."""
