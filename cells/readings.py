"""
The scoreboard: every reading of a record over its declared set of cells.

A pure function of the registration and the record; it can be made again at any time, and comes out the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from cells.bounds import DeclaredSet, declared_set
from cells.charges import Charges, read_charges
from cells.conditions import Census, censuses
from cells.confounds import circumstances, confounds
from cells.contrasts import ContrastReading, Status
from cells.costs import Cost, cost
from cells.earlier import Earlier, earlier
from cells.families import read_added, read_families
from cells.groups import Members, by_arm, by_condition
from cells.guards import GuardReading, read_guards
from cells.pairing import complaint, units
from cells.ratios import RatioReading, read_ratio
from cells.readable import Cell, Outcome
from cells.registered import AdverseReading, OutcomeReading, StopReading
from cells.selection import Imbalance, imbalances
from cells.settled import Settled, class_label, settle
from cells.spent import Spent
from cells.strata import unplaced

if TYPE_CHECKING:
    from harness.analysis import Analysis, Contrast

__all__ = ["Scoreboard", "Tries", "score", "scoreboard_to_json"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tries:
    """A cell that was tried more than once, and how each try ended."""

    cell: str
    classes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scoreboard:
    """
    The readings of one record. `head` says which entry was its last, None for a record without entries.

    `status` is `final` if every declared cell has an outcome, `incomplete` while some have none, and `refused` if the
    record says something it may not; `problems` says what. Unless it is final, no test gives a verdict. `over` names
    the set that all bounds are taken over, those of the pass rates too. `selection` is what did not befall the arms
    alike: a reader of the figures must have seen its `sentences`; `not_enforced` are the promises of a workspace that
    were not kept where the cells were played, each with why. `charges` are what each arm was charged and what is sunk;
    `confounds` say what else differed between the arms. `stop` is the registered rule that ended the run; `outcome` and
    `adverse` are what became of what was registered of the result, None and empty where nothing was. `withdrawn` are
    the tasks that an amendment took out of all arms, each with why. `earlier` are the cells that read by an earlier
    candidate than the one that ships.
    """

    registration_id: str
    head: str | None
    family: str
    alpha: float
    over: DeclaredSet
    status: Status
    problems: tuple[str, ...]
    planned: int
    missing: tuple[str, ...]
    doubled: tuple[str, ...]
    undeclared: tuple[str, ...]
    repeated: int
    tries: tuple[Tries, ...]
    arms: tuple[Census, ...]
    arm_costs: tuple[Cost, ...]
    conditions: tuple[Census, ...]
    costs: tuple[Cost, ...]
    contrasts: tuple[ContrastReading, ...]
    added: tuple[ContrastReading, ...]
    ratios: tuple[RatioReading, ...]
    guards: tuple[GuardReading, ...]
    selection: tuple[Imbalance, ...]
    not_enforced: Mapping[str, str]
    charges: Charges
    confounds: tuple[str, ...]
    earlier: tuple[Earlier, ...] = ()
    stop: StopReading | None = None
    outcome: OutcomeReading | None = None
    adverse: tuple[AdverseReading, ...] = ()
    withdrawn: Mapping[str, str] = field(default_factory=dict)

    @property
    def spent(self) -> Spent:
        """What every try cost together."""
        return self.charges.total

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader of the figures must have been told: withdrawn tasks, a stop, and the selection, each once."""
        gone = [f"Task {task} is withdrawn from all arms: {why}." for task, why in self.withdrawn.items()]
        stop = () if self.stop is None else (self.stop.sentence,)
        return tuple(dict.fromkeys([*gone, *stop, *(item.sentence for item in self.selection)]))


def score(
    declared: Iterable[Cell],
    outcomes: Iterable[Outcome],
    analysis: Analysis,
    *,
    head: str | None,
    registration_id: str,
    refused: Sequence[Mapping[str, str]] = (),
    added: Sequence[Contrast] = (),
    not_enforced: Mapping[str, str] = MappingProxyType({}),
    faults: Sequence[str] = (),
    of_run: Mapping[str, str] = MappingProxyType({}),
    stop: StopReading | None = None,
) -> Scoreboard:
    """
    Read a record's `outcomes`, several tries of a cell among them, over the `declared` cells as the `analysis` says.

    `refused` are the registration's rows of cells that a gate did not let be built; `added` are contrasts of later
    amendments, shown apart; `faults` are problems of the set that no cell shows; `stop` is the stop rule that ended the
    run; `of_run` is what `circumstances` takes; `not_enforced` is passed on. Raises `IntegrityError` if a cell is
    declared twice.
    """
    settled = _settled(declared, outcomes, stop)
    conditions = by_condition(settled)
    groups = _groups(conditions, refused)
    status, problems = _standing(settled, conditions, analysis, added, faults)
    over = declared_set(settled.declared)
    contrasts = read_families(settled, status, analysis, over)
    return Scoreboard(
        registration_id=registration_id,
        head=head,
        family=analysis.family,
        alpha=analysis.alpha,
        over=over,
        status=status,
        problems=problems,
        **_cells(settled) | groups,
        contrasts=contrasts,
        added=read_added(added, settled, status, analysis, over),
        ratios=tuple(read_ratio(item, conditions, groups["costs"], status) for item in analysis.ratios),
        guards=read_guards(analysis.guards, contrasts),
        selection=imbalances(groups["arms"], (*analysis.contrasts, *analysis.ratios)),
        not_enforced=dict(not_enforced),
        charges=read_charges(settled),
        confounds=confounds(circumstances(settled.outcomes.values(), of_run)),
        stop=stop,
    )


def _settled(declared: Iterable[Cell], outcomes: Iterable[Outcome], stop: StopReading | None) -> Settled:
    if stop is None:
        return settle(declared, outcomes)
    cells, kept = tuple(declared), frozenset(stop.unfired)
    return settle(cells, outcomes, [cell for cell in cells if str(cell) in kept])


def _cells(settled: Settled) -> dict[str, Any]:
    """What the board says of the set itself."""
    return {
        "planned": len(settled.declared),
        "missing": tuple(map(str, settled.missing)),
        "doubled": tuple(map(str, settled.doubled)),
        "undeclared": tuple(map(str, settled.undeclared)),
        "repeated": settled.repeated,
        "tries": _tries(settled),
        "earlier": tuple(earlier(settled)),
    }


def _groups(conditions: Sequence[Members], refused: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """What the board says of each arm and of each condition: how its cells ended, and what they cost."""
    arms = by_arm(conditions)
    return {
        "arms": censuses(arms, refused, tasks=False),
        "arm_costs": tuple(map(cost, arms)),
        "conditions": censuses(conditions, refused, tasks=True),
        "costs": tuple(map(cost, conditions)),
    }


def _tries(settled: Settled) -> tuple[Tries, ...]:
    return tuple(
        Tries(cell=str(cell), classes=tuple(map(class_label, tries)))
        for cell, tries in settled.tries.items()
        if len(tries) > 1
    )


def _standing(
    settled: Settled,
    conditions: Sequence[Members],
    analysis: Analysis,
    added: Sequence[Contrast],
    faults: Sequence[str],
) -> tuple[Status, tuple[str, ...]]:
    unlike = [complaint(item, settled.declared) for item in (*analysis.contrasts, *added)]
    firsts = [members.first for members in conditions]  # what is of units alone is seen of one cell a condition
    for item in (*analysis.contrasts, *added):
        unlike += unplaced(item, firsts, analysis.groupings)
    unlike += [units(item, firsts)[1] for item in analysis.ratios]
    refusals = [
        *faults,
        *(f"undeclared cell {cell}: it is no part of the registration" for cell in settled.undeclared),
        *(
            f"doubled cell {cell}: tried again after it was done with: {_said(settled, cell)}"
            for cell in settled.doubled
        ),
        *(problem for problem in unlike if problem),
    ]
    missing = [f"missing cell {cell}: the record has no outcome of it" for cell in settled.missing]
    status: Status = "refused" if refusals else "incomplete" if missing else "final"
    return status, (*refusals, *missing)


def _said(settled: Settled, cell: Cell) -> str:
    return ", ".join(class_label(outcome) for outcome in settled.tries[cell])


def scoreboard_to_json(board: Scoreboard) -> dict[str, Any]:
    """The scoreboard as JSON data, with the derived figures that people quote (`beside`, `judged`, `bound`)."""
    data: dict[str, Any] = _plain(board)
    return data


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        derived = [name for name, item in vars(type(value)).items() if isinstance(item, property)]
        return {name: _plain(getattr(value, name)) for name in (*(item.name for item in fields(value)), *derived)}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
