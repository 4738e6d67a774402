"""Rows of a file made into cells, as the declaration says what each column holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from cells.declared.reading_values import BadValue, as_count, as_flag, as_number, as_text
from cells.declared.rows import ForeignCell, ForeignKey, ForeignReading, ForeignSpend
from cells.declared.source import CONDITION, Source
from cells.declared.tables import rows_of
from cells.declared.words import end_of, verdict_of
from harness.errors import DeclarationError
from harness.money import dollars, in_figures, to_cents
from harness.values import Declared, End, ExactPrice, FailedBoot, Halt, LowerBoundPrice, Price, VoidPrice

__all__ = ["cells_of"]

T = TypeVar("T")

NAMED_FAULTS = 20
"""How many bad rows of one file are named; more are no further news."""


def cells_of(path: Path, source: Source) -> Iterator[ForeignCell]:
    """
    The cells of one file, row by row.

    Raises `DeclarationError` for a file that can't be read as it was said to be, and after its last row for all that
    is wrong in rows, each with its place and column; the first twenty are named.
    """
    maker = _Maker(source)
    unit, rows = rows_of(path, maker.wanted, kind=source.format, delimiter=source.delimiter)
    faults: list[str] = []
    for place, values in rows:
        try:
            cell = maker.make(values)
        except _Fault as fault:
            faults.append(f"{path}, {unit} {place}, {fault}")
            if len(faults) == NAMED_FAULTS:
                faults.append("and perhaps more: the reading stopped here")
                break
            continue
        if not faults:
            yield cell
    if faults:
        raise DeclarationError("\n".join(faults))


_UNPRICED = VoidPrice(reason="the source says no price")
_NEVER_RAN = VoidPrice(reason="0 beside a failed boot: the meter of a session that never was saw nothing")
_NO_LABELS: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ended:
    """How a row ended and what the referee said of it, which many rows have in common."""

    end: End
    verdict: ForeignReading | None
    would_be: ForeignReading | None


class _Fault(Exception):  # noqa: N818 - becomes a line of one error
    """What is wrong with a row: its column, and why."""

    def __init__(self, column: str, why: object) -> None:
        super().__init__(f"column {column!r}: {why}")


def _taker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Takes the values at some places of a row."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple([values[at] for at in places])


class _Seen(Generic[T]):
    """What `make` makes of the values at some places of a row: made and checked when they are first seen."""

    def __init__(self, places: Sequence[int], make: Callable[[Sequence[Any]], T]) -> None:
        self._take, self._make = _taker(places), make
        self._known: dict[tuple[Any, ...], T] = {}

    def of(self, values: Sequence[Any]) -> T:
        """The same for every row that says the same."""
        said = self._take(values)
        try:
            return self._known[said]
        except (KeyError, TypeError):
            pass
        found = self._make(values)
        if all(value is None or type(value) is str for value in said):  # 1 and True are equal, and not the same word
            self._known[said] = found
        return found


class _Column(Generic[T]):
    """One column, each value read by `parse`; without a place (None) there is no such column."""

    def __init__(self, place: int | None, name: str, parse: Callable[[Any], T]) -> None:
        self._place, self._name, self._parse = place, name, parse

    def of(self, values: Sequence[Any]) -> T | None:
        """What a row says, None where it says nothing. Raises `_Fault` for what `parse` refuses."""
        if self._place is None:
            return None
        value = values[self._place]
        if value is None:
            return None
        try:
            return self._parse(value)
        except BadValue as error:
            raise _Fault(self._name, error) from None


class _Maker:
    """
    Makes one cell of one row. What is the same for all rows is worked out once; conditions and words, which many rows
    share, are checked when they are first seen.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        columns = source.columns.model_dump(exclude_none=True)
        self.wanted: list[str] = [*columns.values(), *source.labels.values()]
        self._at = {name: number for number, name in enumerate(columns)}
        self._labels = [(label, len(columns) + number) for number, label in enumerate(source.labels)]
        self._missing = frozenset(source.missing)
        self._verdicts = {
            word: ForeignReading(**verdict_of(word, meaning).model_dump()) for word, meaning in source.verdicts.items()
        }
        self._constants = source.constants.model_dump(exclude_none=True)
        self._varying = [name for name in CONDITION if name in self._at]
        self._keys: _Seen[ForeignKey] = _Seen([self._at[name] for name in self._varying], self._key)
        self._ends: _Seen[_Ended] = _Seen(
            [self._at[name] for name in ("end", "reading") if name in self._at], self._ended
        )
        decimal = source.decimal
        self._replicate, self._attempt = (
            self._read(name, lambda value: as_count(value, decimal, least=1)) for name in ("replicate", "attempt")
        )
        self._tokens, self._calls = (
            self._read(name, lambda value: as_count(value, decimal)) for name in ("tokens", "calls")
        )
        self._usd, self._wall_s = (
            self._read(name, lambda value: as_number(value, decimal)) for name in ("usd", "wall_s")
        )
        flags = dict.fromkeys(source.yes, True) | dict.fromkeys(source.no, False)
        self._lower_bound = self._read("lower_bound", lambda value: as_flag(value, flags))
        self._words: dict[str, str] = {}

    def _read(self, name: str, parse: Callable[[Any], T]) -> _Column[T]:
        place = self._at.get(name)
        return _Column(place, "" if place is None else self.wanted[place], parse)

    def make(self, row: Sequence[Any]) -> ForeignCell:
        """The cell of a row. Raises `_Fault` for the first value that can't be what its column holds."""
        values = row if self._says_all(row) else self._said(row)
        key, ended = self._keys.of(values), self._ends.of(values)
        identity = self._text("id", values)
        try:
            return ForeignCell(
                cell=key.sibling(identity, self._replicate.of(values)),
                attempt=self._attempt.of(values) or 1,
                end=ended.end,
                verdict=ended.verdict,
                would_be=ended.would_be,
                spend=ForeignSpend(
                    price=self._price(ended.end, values),
                    tokens=self._tokens.of(values),
                    calls=self._calls.of(values),
                    wall_s=self._wall_s.of(values),
                ),
                labels=self._labelled(values) if self._labels else _NO_LABELS,
            )
        except ValueError as error:
            raise _Fault(self._column("id"), error) from None

    def _says_all(self, row: Sequence[Any]) -> bool:
        """Whether no word of a row means that nothing was said."""
        try:
            return self._missing.isdisjoint(row)
        except TypeError:  # a list or table of JSON, which no column may hold
            return False

    def _said(self, row: Sequence[Any]) -> Sequence[Any]:
        return [None if type(value) is str and value in self._missing else value for value in row]

    def _key(self, values: Sequence[Any]) -> ForeignKey:
        """The condition of a row, as the key of a cell of it."""
        condition = self._constants | {name: self._text(name, values) for name in self._varying}
        try:
            return ForeignKey(id="-", **condition)
        except ValueError as error:
            named = str(error).partition(" ")[0]
            raise _Fault(self._column(named if named in self._at else "id"), error) from None

    def _ended(self, values: Sequence[Any]) -> _Ended:
        end = self._end(self._text("end", values))
        said = self._reading(end, values)
        return _Ended(
            end=end,
            verdict=said if isinstance(end, Declared) else None,
            would_be=said if isinstance(end, Halt) else None,
        )

    def _column(self, name: str) -> str:
        return self.wanted[self._at[name]]

    def _text(self, name: str, values: Sequence[Any]) -> str:
        value = values[self._at[name]]
        if value is None:
            raise _Fault(self._column(name), f"nothing: expected the {name} of every row")
        try:
            return as_text(value)
        except BadValue as error:
            raise _Fault(self._column(name), error) from None

    def _end(self, word: str) -> End:
        meaning = self.source.ends.get(word)
        if meaning is None:
            self._unknown("end", word, self.source.ends)
        return end_of(meaning, word)

    def _unknown(self, name: str, word: str, known: Any) -> NoReturn:
        table = "ends" if name == "end" else "verdicts"
        raise _Fault(
            self._column(name),
            f"{word!r} stands in no line of `{table}`: expected one of {', '.join(map(repr, known))}",
        )

    def _reading(self, end: End, values: Sequence[Any]) -> ForeignReading | None:
        """The END decides first: of what did not end by itself or at a limit, no word of a referee is taken."""
        if not isinstance(end, Declared | Halt) or "reading" not in self._at:
            return None
        # Where one column says both, a halt's word is no word of the referee's.
        said_by_end = self._column("reading") == self._column("end")
        if isinstance(end, Halt) and (said_by_end or values[self._at["reading"]] is None):
            return None
        word = self._text("reading", values)
        if word not in self._verdicts:
            self._unknown("reading", word, self._verdicts)
        return self._verdicts[word]

    def _price(self, end: End, values: Sequence[Any]) -> Price:
        usd = self._usd.of(values)
        if usd is None:
            return _UNPRICED
        if not usd and isinstance(end, FailedBoot):
            return _NEVER_RAN
        if self.source.rounding == "cents":
            usd = in_figures(to_cents(dollars(usd)))
        if self._lower_bound.of(values):
            return LowerBoundPrice(usd=usd, reason="the source says so")
        return ExactPrice(usd=usd)

    def _labelled(self, values: Sequence[Any]) -> Mapping[str, str]:
        labels: dict[str, str] = {}
        for label, at in self._labels:
            if values[at] is None:
                continue
            try:
                text = as_text(values[at])
            except BadValue as error:
                raise _Fault(self.wanted[at], error) from None
            labels[label] = self._words.setdefault(text, text)
        return labels
