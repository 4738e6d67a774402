"""
What became of what was registered of a result: each prediction as it stands, the row of the table of outcomes, adverse
outcomes.

A pure function of what was registered and a scoreboard. A figure that is a bound only decides where every value that
it may have decides alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

from cells.figure_reading import FigureValue, figure_value
from cells.registered import AdverseReading, OutcomeReading
from harness.regions import Span, exact, shown

if TYPE_CHECKING:
    from cells.readings import Scoreboard
    from harness.experiment import Experiment
    from harness.figure_refs import FigureRef
    from harness.predictions import AdverseEntry, Condition, OrderingClaim, OutcomeRow, Prediction

__all__ = ["Fate", "PredictionReading", "read_predictions", "with_registered"]

Fate: TypeAlias = Literal["HOLDS", "REFUTED", "UNRESOLVED", "VOID"]
"""What a prediction came to; VOID if the figure that it is about does not exist."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PredictionReading:
    """
    One prediction and what it came to. `why` says it: by how much a figure is below or above where the claim holds,
    which order is inverted, what is missing. `figures` are the figures with their values, `holds_if` and `refuted_if`
    the two regions, as text.
    """

    name: str
    claim: str
    kind: str
    fate: Fate
    why: str
    figures: tuple[str, ...]
    holds_if: str
    refuted_if: str


def read_predictions(predictions: Iterable[Prediction], board: Scoreboard) -> tuple[PredictionReading, ...]:
    """Hold each prediction against the scoreboard. Raises `ExperimentError` for a figure that the board has not."""
    return tuple(_read(prediction, board) for prediction in predictions)


def _read(prediction: Prediction, board: Scoreboard) -> PredictionReading:
    before = _before_all(board)
    # Of a record that is refused no figure may be read, and some are not there.
    values = [] if board.status == "refused" else [figure_value(ref, board) for ref in prediction.refs]
    fate, why = before or (
        _stretch(prediction, values[0])
        if prediction.ordering is None
        else _order(prediction.ordering, prediction.refs, values)
    )
    if prediction.stretch is not None:
        holds_if = str(prediction.stretch.span)
        refuted_if = " or ".join(str(region.span) for region in prediction.refuted_by)
    else:
        assert prediction.ordering is not None  # one of the three claims is always there
        holds_if = "each is above the next"
        refuted_if = f"a later one is above an earlier one by more than {shown(exact(prediction.ordering.inversion))}"
    return PredictionReading(
        name=prediction.name,
        claim=prediction.claim,
        kind=prediction.kind,
        fate=fate,
        why=why,
        figures=_figures(prediction.refs if values else (), values),
        holds_if=holds_if,
        refuted_if=refuted_if,
    )


def _before_all(board: Scoreboard) -> tuple[Fate, str] | None:
    """What is to be said before any figure is looked at: of a record that is refused, and of cells that are missing."""
    match board.status:
        case "refused":
            return "VOID", f"no figure may be read of this record: {board.problems[0]}"
        case "incomplete":
            return "UNRESOLVED", f"the run is incomplete: {len(board.missing)} of {board.planned} cells are missing"
        case _:
            return None


def _figures(refs: Iterable[FigureRef], values: Iterable[FigureValue]) -> tuple[str, ...]:
    return tuple(f"{ref} = {value}" for ref, value in zip(refs, values, strict=True))


def _stretch(prediction: Prediction, value: FigureValue) -> tuple[Fate, str]:
    """A point or a band."""
    assert prediction.stretch is not None  # the caller has seen to it
    hold, can_be = prediction.stretch.span, value.span
    if hold.covers(can_be):
        return "HOLDS", f"it is {value}, which is {hold}"
    if any(region.span.covers(can_be) for region in prediction.refuted_by):
        return "REFUTED", _how_far(value, hold)
    if value.value is None:
        return "VOID", "the figure is undefined"
    if value.bound != "exact":
        return "UNRESOLVED", f"it is {value}: a bound that leaves open where the figure is"
    return "UNRESOLVED", f"it is {value}, {_off(exact(value.value), hold)}, and in no region that refutes it"


def _how_far(value: FigureValue, hold: Span) -> str:
    if value.value is None:
        return "the figure is undefined, which was registered to refute it"
    return f"it is {value}, {_off(exact(value.value), hold)}"


def _off(point: Fraction, hold: Span) -> str:
    """On which side of where the claim holds a value lies, and by how much."""
    assert hold.low is not None
    assert hold.high is not None
    if point < hold.low:
        return f"below {shown(hold.low)} by {shown(hold.low - point)}"
    return f"above {shown(hold.high)} by {shown(point - hold.high)}"


def _order(claim: OrderingClaim, refs: Sequence[FigureRef], values: Sequence[FigureValue]) -> tuple[Fate, str]:
    undefined = [str(ref) for ref, value in zip(refs, values, strict=True) if value.value is None]
    if undefined:
        return "VOID", f"undefined: {', '.join(undefined)}"
    bounds = [str(ref) for ref, value in zip(refs, values, strict=True) if value.bound != "exact"]
    if bounds:
        return "UNRESOLVED", f"a bound only: {', '.join(bounds)}"
    points = [exact(value.value) for value in values if value.value is not None]
    excess, early, late = max((points[j] - points[i], i, j) for i, j in combinations(range(len(points)), 2))
    pair = f"{refs[late]} is above {refs[early]} by {shown(excess)}"
    if excess > exact(claim.inversion):
        return "REFUTED", f"inverted: {pair}"
    if all(earlier > later for earlier, later in combinations(points, 2)):
        return "HOLDS", "each is above the next"
    return "UNRESOLVED", pair if excess else f"{refs[early]} and {refs[late]} are equal"


def with_registered(board: Scoreboard, experiment: Experiment) -> Scoreboard:
    """The scoreboard with the registered row that holds, and with the adverse outcomes that did and did not happen."""
    return replace(
        board,
        outcome=_outcome(experiment.outcomes, board) if experiment.outcomes else None,
        adverse=tuple(_adverse(entry, board) for entry in experiment.adverse),
    )


def _held_by(conditions: Sequence[Condition], board: Scoreboard) -> tuple[bool | None, tuple[str, ...]]:
    """Whether all conditions hold, None where a bound leaves it open; and the figures."""
    pairs = [(condition.span, figure_value(condition.ref, board)) for condition in conditions]
    figures = _figures([condition.ref for condition in conditions], [value for _span, value in pairs])
    if not all(span.meets(value.span) for span, value in pairs):
        return False, figures
    return (True if all(span.covers(value.span) for span, value in pairs) else None), figures


def _outcome(rows: Sequence[OutcomeRow], board: Scoreboard) -> OutcomeReading:
    before = _before_all(board)
    if before is not None:
        return OutcomeReading(row=None, verdict=None, figures=(), why=before[1])
    open_rows = []
    for number, row in enumerate(rows, start=1):
        held, figures = _held_by(row.when, board)
        if held:
            return OutcomeReading(row=number, verdict=row.verdict, figures=figures, why=None)
        if held is None:
            open_rows.append(str(number))
    why = f"rows {', '.join(open_rows)} are possible: a figure is a bound only" if open_rows else "no row holds"
    return OutcomeReading(row=None, verdict=None, figures=(), why=why)


def _adverse(entry: AdverseEntry, board: Scoreboard) -> AdverseReading:
    before = _before_all(board)
    if before is not None:
        return AdverseReading(name=entry.name, happened=None, figures=(), why=before[1])
    held, figures = _held_by(entry.when, board)
    why = "a figure is a bound only" if held is None else None
    return AdverseReading(name=entry.name, happened=held, figures=figures, why=why)
