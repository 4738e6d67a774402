"""Rows of a file made into cells, as the declaration says what each column holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


class _Seen(Generic[T]):
    """What `make` makes of the values at some places of a row: made and checked when they are first seen."""

    def __init__(self, places: Sequence[int], make: Callable[[Sequence[Any]], T]) -> None:
        self._places, self._make = tuple(places), make
        self._known: dict[tuple[Any, ...], T] = {}

    def of(self, values: Sequence[Any]) -> T:
        """The same for every row that says the same."""
        said = tuple([values[at] for at in self._places])
        try:
            return self._known[said]
        except (KeyError, TypeError):
            pass
        found = self._make(values)
        if all(value is None or type(value) is str for value in said):  # 1 and True are equal, and not the same word
            self._known[said] = found
        return found


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
        self._missing = tuple(source.missing)
        self._flags = dict.fromkeys(source.yes, True) | dict.fromkeys(source.no, False)
        self._verdicts = {
            word: ForeignReading(**verdict_of(word, meaning).model_dump()) for word, meaning in source.verdicts.items()
        }
        self._constants = source.constants.model_dump(exclude_none=True)
        self._varying = [name for name in CONDITION if name in self._at]
        self._keys: _Seen[ForeignKey] = _Seen([self._at[name] for name in self._varying], self._key)
        self._ends: _Seen[_Ended] = _Seen(
            [self._at[name] for name in ("end", "reading") if name in self._at], self._ended
        )
        self._words: dict[str, str] = {}

    def make(self, row: Sequence[Any]) -> ForeignCell:
        """The cell of a row. Raises `_Fault` for the first value that can't be what its column holds."""
        missing, values = self._missing, row
        if any(word in row for word in missing):
            values = [None if type(value) is str and value in missing else value for value in row]
        key, ended = self._keys.of(values), self._ends.of(values)
        identity = self._text("id", values)
        try:
            return ForeignCell(
                cell=key.sibling(identity, self._count("replicate", values, least=1)),
                attempt=self._count("attempt", values, least=1) or 1,
                end=ended.end,
                verdict=ended.verdict,
                would_be=ended.would_be,
                spend=ForeignSpend(
                    price=self._price(ended.end, values),
                    tokens=self._count("tokens", values),
                    calls=self._count("calls", values),
                    wall_s=self._number("wall_s", values),
                ),
                labels=self._labelled(values) if self._labels else _NO_LABELS,
            )
        except ValueError as error:
            raise _Fault(self._column("id"), error) from None

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

    def _said(self, name: str, values: Sequence[Any]) -> Any:
        """The value of a field, None where nothing was said."""
        at = self._at.get(name)
        return None if at is None else values[at]

    def _text(self, name: str, values: Sequence[Any]) -> str:
        value = values[self._at[name]]
        if value is None:
            raise _Fault(self._column(name), f"nothing: expected the {name} of every row")
        try:
            return as_text(value)
        except BadValue as error:
            raise _Fault(self._column(name), error) from None

    def _number(self, name: str, values: Sequence[Any]) -> float | None:
        at = self._at.get(name)
        if at is None or values[at] is None:
            return None
        try:
            return as_number(values[at], self.source.decimal)
        except BadValue as error:
            raise _Fault(self._column(name), error) from None

    def _count(self, name: str, values: Sequence[Any], *, least: int = 0) -> int | None:
        at = self._at.get(name)
        if at is None or values[at] is None:
            return None
        try:
            return as_count(values[at], self.source.decimal, least=least)
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
        if isinstance(end, Halt) and (said_by_end or self._said("reading", values) is None):
            return None
        word = self._text("reading", values)
        if word not in self._verdicts:
            self._unknown("reading", word, self._verdicts)
        return self._verdicts[word]

    def _price(self, end: End, values: Sequence[Any]) -> Price:
        usd = self._number("usd", values)
        if usd is None:
            return _UNPRICED
        if not usd and isinstance(end, FailedBoot):
            return _NEVER_RAN
        if self.source.rounding == "cents":
            usd = in_figures(to_cents(dollars(usd)))
        flag = self._said("lower_bound", values)
        try:
            lower = flag is not None and as_flag(flag, self._flags)
        except BadValue as error:
            raise _Fault(self._column("lower_bound"), error) from None
        return LowerBoundPrice(usd=usd, reason="the source says so") if lower else ExactPrice(usd=usd)

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
