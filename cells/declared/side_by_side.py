"""The readings of a declared set, side by side: each over its own cells, and whether they agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cells.declared.agreement import Accord, accords
from cells.declared.class_counts import class_counts
from cells.declared.declaration import Declaration, ReadingEntry
from cells.declared.gathering import Found, gather, hold
from cells.declared.naming import DeclaredSet
from cells.declared.rows import ForeignCell, Name, name_text
from cells.readings import Scoreboard, score
from harness.analysis import Analysis
from harness.errors import DeclarationError, ExperimentError
from harness.guarding import GuardEntry
from harness.values import Declared, Halt, VoidPrice

__all__ = ["DeclaredReading", "SideBySide", "read_side_by_side"]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredReading:
    """
    One reading. `declared` cells are named by it, `priced` of them ended by themselves or at a limit and have a price;
    `without_price` names the others that are there. `digest` is of the set's names: a figure over it is of no other.

    What refuses the comparison is in `missing`, `conflicting`, `changed` and `undeclared` by name and in the board's
    `problems` by sentence. `again` names the cells whose rows are there more than once and say the same.
    `unread_guards` are the registered guards that it can't read, since a contrast of theirs is not among its
    comparisons. `found` has the cells themselves.
    """

    name: str
    note: str
    digest: str
    declared: int
    priced: int
    without_price: tuple[str, ...]
    missing: tuple[str, ...]
    conflicting: tuple[str, ...]
    changed: tuple[str, ...]
    undeclared: tuple[str, ...]
    again: tuple[str, ...]
    unread_guards: tuple[str, ...]
    classes: Mapping[str, int]
    lists: Mapping[str, str]
    board: Scoreboard
    found: Found = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class SideBySide:
    """
    All readings. `accords` are what every two of them say of each other, disagreements first. `elsewhere` are cells of
    the sources that are in no reading and of no reading's condition; `left_out` those that were left out, with why.
    `sources` are the files that were read, by the SHA-256 of each; `remarks` what importers noted beside the cells.
    """

    question: str
    declaration: str
    sources: Mapping[str, str]
    accords: tuple[Accord, ...]
    readings: tuple[DeclaredReading, ...]
    elsewhere: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def final(self) -> bool:
        """Whether every reading has verdicts to give."""
        return all(reading.board.status == "final" for reading in self.readings)


def read_side_by_side(
    declaration: Declaration,
    cells: Iterable[ForeignCell],
    sets: Sequence[DeclaredSet],
    *,
    left_out: Mapping[Name, str],
    digest: str,
    sources: Mapping[str, str],
) -> SideBySide:
    """
    Compute every reading over the cells of the sources, and hold them against each other.

    `digest` is of the declaration's bytes. Raises `DeclarationError` where a comparison names an arm, model or extras
    that no cell of the reading has.
    """
    gathered = gather(cells, sets, left_out)
    held = [(entry, each, hold(each, gathered)) for entry, each in zip(declaration.readings, sets, strict=True)]
    inside = {name for _entry, _set, found in held for name in found.undeclared}
    elsewhere = tuple(sorted(name for name in gathered.strangers if name not in inside))
    faults = _whole(elsewhere) if declaration.whole else ()
    readings = [_read(declaration.analysis, *one, digest=digest, faults=faults) for one in held]
    boards = [(reading.name, reading.board) for reading in readings]
    return SideBySide(
        question=declaration.question,
        declaration=digest,
        sources=sources,
        accords=tuple(accords(boards, magnitude=declaration.agreement.magnitude)),
        readings=tuple(readings),
        elsewhere=tuple(map(name_text, elsewhere)),
        left_out={name_text(name): why for name, why in left_out.items()},
    )


def _whole(elsewhere: Iterable[Name]) -> tuple[str, ...]:
    return tuple(
        f"undeclared cell {name_text(name)}: the declaration says that the sources hold nothing else (`whole`)"
        for name in elsewhere
    )


def _read(
    analysis: Analysis, entry: ReadingEntry, each: DeclaredSet, found: Found, *, digest: str, faults: Sequence[str]
) -> DeclaredReading:
    grown = [] if entry.digest in {None, each.digest} else [_expired(entry, each)]
    board = score(
        found.cells,
        found.outcomes,
        _analysis(analysis, entry, found),
        head=None,
        registration_id=digest,
        faults=(*grown, *found.faults, *faults),
    )
    dear = {outcome.cell: _priced(outcome) for outcome in found.outcomes}
    return DeclaredReading(
        name=entry.name,
        note=entry.note,
        digest=each.digest,
        declared=len(each.cells),
        priced=sum(dear.values()),
        without_price=tuple(str(cell) for cell, priced in dear.items() if not priced),
        missing=tuple(map(name_text, found.missing)),
        conflicting=tuple(map(name_text, found.conflicting)),
        changed=tuple(map(name_text, found.changed)),
        undeclared=tuple(map(name_text, found.undeclared)),
        again=tuple(map(name_text, found.again)),
        unread_guards=tuple(item.name for item in analysis.guards if not _reads(entry, item)),
        classes=class_counts(board),
        lists=each.files,
        board=board,
        found=found,
    )


def _expired(entry: ReadingEntry, each: DeclaredSet) -> str:
    return (
        f"the set of reading {entry.name} has changed: it was registered as {entry.digest}, and its {len(each.cells)} "
        f"cells are {each.digest}. Figures and bounds over the old set are of no other"
    )


def _priced(outcome: ForeignCell) -> bool:
    """Whether the subject did something whose price is known: a void price, or one of what never ran, is none."""
    return isinstance(outcome.end, Declared | Halt) and not isinstance(outcome.spend.price, VoidPrice)


def _reads(entry: ReadingEntry, guard: GuardEntry) -> bool:
    """Whether a reading has every contrast that a guard is read from."""
    return entry.comparisons is None or {*guard.contrasts} <= {*entry.comparisons}


def _analysis(analysis: Analysis, entry: ReadingEntry, found: Found) -> Analysis:
    """The comparisons of one reading, and the guards that read no other."""
    if entry.comparisons is not None:
        names = set(entry.comparisons)
        contrasts = tuple(item for item in analysis.contrasts if item.name in names)
        analysis = analysis.model_copy(
            update={
                "contrasts": contrasts,
                "ratios": tuple(item for item in analysis.ratios if item.name in names),
                "guards": tuple(item for item in analysis.guards if _reads(entry, item)),
            }
        )
    cells = found.cells
    if cells and not (found.missing or found.conflicting):  # else an arm may be unknown for want of its cells
        arms, models, extras = ({getattr(cell, part) for cell in cells} for part in ("arm", "model", "extras"))
        try:
            analysis.validate_against(arms, models, extras)
        except ExperimentError as error:
            raise DeclarationError(f"reading {entry.name!r} can't be computed:\n{error}") from None
    return analysis
