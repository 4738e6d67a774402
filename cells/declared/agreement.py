"""
Whether two readings say the same, in sentences that the tool makes, so that nobody chooses what to tell of it.

Four things are held against each other, for each comparison that both readings compute. **Sign**: which way the whole
went, and each task or count. **Magnitude**: the ratios themselves, as printed or within the declared share; the
discordant counts. **Significance**: whether the p-value is at the level. **Floor**: which tasks' ratios the registered
spread can tell from 1. The counts of the classes are held against each other too.

Readings are many and their pairs more: what a pair needs is taken from each reading once, and of readings that say the
same of a comparison each two are compared once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from cells.declared.holding import Aspect, ClassSide, ContrastSide, Finding, RatioSide, Side, findings
from cells.readings import Scoreboard

__all__ = ["Accord", "accords"]

SAID: dict[Aspect, str] = {
    "sign": "sign",
    "magnitude": "magnitude",
    "significance": "significance",
    "floor": "which tasks clear the floor",
    "classes": "the counts of classes",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Accord:
    """
    Two readings on one `comparison`, or on the counts of classes (None). `agree` and `differ` are what was held against
    each other; of what is `undefined` nothing could be. `sentence` says all of it; nothing was held where a reading has
    no verdict to give.
    """

    first: str
    second: str
    comparison: str | None
    agree: tuple[Aspect, ...]
    differ: tuple[Aspect, ...]
    undefined: tuple[Aspect, ...] = ()
    sentence: str

    @property
    def whole(self) -> bool:
        """Whether both say the same in all that they could be asked, and something was held."""
        return bool(self.agree) and not self.differ and not self.undefined


def accords(boards: Sequence[tuple[str, Scoreboard]], *, magnitude: float) -> list[Accord]:
    """
    Every two readings on what both compute, disagreements first; two that ask different things are not held.

    O(readings squared) in accords, and in comparisons only as many as readings differ.
    """
    desk = _Desk(magnitude=magnitude)
    held = [desk.take(name, board) for name, board in boards]
    found = [accord for one, other in combinations(held, 2) for accord in desk.pair(one, other)]
    return sorted(found, key=lambda item: item.whole)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Held:
    """One reading: the number of its side of each comparison, in order, and of its classes; what refuses it, if so."""

    name: str
    refused: str | None
    sides: Mapping[tuple[type[Side], str], int]
    classes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """What two sides came to, and how it is said after the names of the readings."""

    agree: tuple[Aspect, ...]
    differ: tuple[Aspect, ...]
    undefined: tuple[Aspect, ...]
    said: str


@dataclass(kw_only=True)
class _Desk:
    """Sides by number, equal ones by one; what was found of two is kept."""

    magnitude: float
    _numbers: dict[Side, int] = field(default_factory=dict)
    _sides: list[Side] = field(default_factory=list)
    _told: dict[tuple[int, int, str | None], _Told] = field(default_factory=dict)

    def take(self, name: str, board: Scoreboard) -> _Held:
        """What is needed of a reading."""
        sides: dict[tuple[type[Side], str], Side] = {
            (RatioSide, item.name): RatioSide.of(item, board.alpha) for item in board.ratios
        }
        sides |= {(ContrastSide, item.name): ContrastSide.of(item, board.alpha) for item in board.contrasts}
        return _Held(
            name=name,
            refused=None if board.status == "final" else f"{name} is {board.status}",
            sides={key: self._number(side) for key, side in sides.items()},
            classes=self._number(ClassSide.of(board)),
        )

    def _number(self, side: Side) -> int:
        number = self._numbers.setdefault(side, len(self._sides))
        if number == len(self._sides):
            self._sides.append(side)
        return number

    def pair(self, one: _Held, other: _Held) -> Iterator[Accord]:
        """All that two readings say of each other."""
        refused = [why for why in (one.refused, other.refused) if why is not None]
        shared = [key for key in one.sides if key in other.sides]
        for key in shared:
            name = key[1]
            if refused:
                yield _unheld(one.name, other.name, name, refused)
            else:
                yield self._accord(one, other, name, (one.sides[key], other.sides[key]))
        if not refused and (shared or not (one.sides or other.sides)):
            yield self._accord(one, other, None, (one.classes, other.classes))

    def _accord(self, one: _Held, other: _Held, comparison: str | None, sides: tuple[int, int]) -> Accord:
        key = (*sides, comparison)
        told = self._told.get(key)
        if told is None:
            found = findings(self._sides[sides[0]], self._sides[sides[1]], self.magnitude)
            told = self._told.setdefault(key, _tell(found, comparison))
        return Accord(
            first=one.name,
            second=other.name,
            comparison=comparison,
            agree=told.agree,
            differ=told.differ,
            undefined=told.undefined,
            sentence=f"{one.name} and {other.name} {told.said}.",
        )


def _unheld(first: str, second: str, comparison: str, refused: Iterable[str]) -> Accord:
    sentence = f"{first} and {second} are not held against each other on {comparison}: {', '.join(refused)}."
    return Accord(first=first, second=second, comparison=comparison, agree=(), differ=(), sentence=sentence)


def _tell(found: Sequence[Finding], comparison: str | None) -> _Told:
    held = [one for one in found if one.undefined is None]
    return _Told(
        agree=tuple(one.aspect for one in held if one.how is None),
        differ=tuple(one.aspect for one in held if one.how is not None),
        undefined=tuple(one.aspect for one in found if one.undefined is not None),
        said="; ".join(_clauses(found, "" if comparison is None else f" on {comparison}")),
    )


def _clauses(found: Sequence[Finding], on: str) -> Iterator[str]:
    """The first two findings, which people ask for first, in one clause; then the others, what is undefined last."""
    lead, *rest = (
        [one for one in part if one.undefined is None] for part in (found[:2], *([one] for one in found[2:]))
    )
    if lead:
        yield _clause(lead) + on + _how(lead)
    else:
        yield f"can't be held against each other in {' or '.join(SAID[one.aspect] for one in found[:2])}{on}"
    yield from (f"they {_clause(part)}{_how(part)}" for part in rest if part)
    yield from (f"{SAID[one.aspect]} is undefined: {one.undefined}" for one in found if one.undefined is not None)


def _clause(part: Sequence[Finding]) -> str:
    agree = [SAID[one.aspect] + one.over for one in part if one.how is None]
    differ = [SAID[one.aspect] + one.over for one in part if one.how is not None]
    if not differ:
        return f"agree in {' and in '.join(agree)}"
    if not agree:
        return f"differ in {' and in '.join(differ)}"
    return f"agree in {' and in '.join(agree)} and not in {' and in '.join(differ)}"


def _how(part: Iterable[Finding]) -> str:
    parts = [one.how for one in part if one.how]
    return f": {'; '.join(parts)}" if parts else ""
