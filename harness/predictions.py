"""
What is said of a result before there is one: predictions, the table of outcomes, adverse outcomes, stop rules.

Each speaks of figures of the scoreboard by structure and of regions of the number line, so that a machine can check
at freeze that a prediction can be right and can be wrong, and that a table of outcomes has one row for every result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.errors import ExperimentError
from harness.figure_refs import FigureRef, Known, refuse_unknown
from harness.grouping import Text
from harness.partition import fault_of_table
from harness.regions import Domain, Region, Span, exact, shown

__all__ = [
    "AdverseEntry",
    "BandClaim",
    "Condition",
    "OrderingClaim",
    "OutcomeRow",
    "PointClaim",
    "Prediction",
    "StopRule",
    "refs_of",
    "refuse_bad_claims",
]

ClaimKind: TypeAlias = Literal["point", "band", "ordering"]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )


class Condition(FigureRef, Region):
    """A figure and the region that it must be in: the keys of both, side by side."""

    @property
    def ref(self) -> FigureRef:
        """The figure alone; conditions on one figure have equal ones."""
        return FigureRef(**{name: getattr(self, name) for name in FigureRef.model_fields})

    def __str__(self) -> str:
        return f"{self.ref} {self.span}"


class PointClaim(_Table):
    """A figure is a value, give or take a tolerance."""

    of: FigureRef
    """The figure."""
    value: float
    """What it is claimed to be."""
    tolerance: Annotated[float, Field(ge=0)]
    """How far off it may be and still hold, either way."""

    @property
    def span(self) -> Span:
        """Where the claim holds."""
        return Span(low=exact(self.value) - exact(self.tolerance), high=exact(self.value) + exact(self.tolerance))


class BandClaim(_Table):
    """A figure is between two values, both included."""

    of: FigureRef
    """The figure."""
    low: float
    """The least value that holds."""
    high: float
    """The greatest value that holds."""

    @model_validator(mode="after")
    def _low_first(self) -> BandClaim:
        if self.low > self.high:
            raise ValueError(f"low {shown(exact(self.low))} is above high {shown(exact(self.high))}: expected it below")
        return self

    @property
    def span(self) -> Span:
        """Where the claim holds."""
        return Span(low=exact(self.low), high=exact(self.high))


class OrderingClaim(_Table):
    """Figures fall strictly from the first to the last."""

    greatest_first: Annotated[list[FigureRef], Field(min_length=2)]
    """The figures, in the order claimed."""
    inversion: Annotated[float, Field(ge=0)]
    """Refuted if a later figure is above an earlier one by more than this."""

    @model_validator(mode="after")
    def _comparable(self) -> OrderingClaim:
        first = self.greatest_first[0]
        for at, ref in enumerate(self.greatest_first):
            if ref in self.greatest_first[:at]:
                raise ValueError(f"{ref} is ordered twice: expected each figure once")
            if (ref.spec.domain, ref.spec.quantity) != (first.spec.domain, first.spec.quantity):
                raise ValueError(f"{first} and {ref} are not of one kind: expected figures that can be compared")
        return self


class Prediction(_Table):
    """A claim about figures, with what would refute it. Between the two it is unresolved."""

    name: Text
    """The name it is reported under, unique among the predictions."""
    claim: Text
    """The claim in a sentence, for people."""
    point: PointClaim | None = None
    """A value with a tolerance."""
    band: BandClaim | None = None
    """A range."""
    ordering: OrderingClaim | None = None
    """An order of figures, which carries its own refuter."""
    refuted_by: list[Region] = []
    """For a point or band: the regions of the figure that refute it."""

    @model_validator(mode="after")
    def _can_be_right_and_wrong(self) -> Prediction:
        given = [name for name in ("point", "band", "ordering") if getattr(self, name) is not None]
        where = f"prediction {self.name!r}"
        if len(given) != 1:
            raise ValueError(f"{where} has {' and '.join(given) or 'no claim'}: expected one of point, band, ordering")
        if self.ordering is not None:
            if self.refuted_by:
                raise ValueError(f"{where}: an ordering is refuted by its `inversion`: expected no `refuted_by`")
        elif not self.refuted_by:
            raise ValueError(f"{where} has no `refuted_by`: expected a region that would refute it")
        if self.stretch is not None:
            _refuse_meeting(where, self.stretch, self.refuted_by)
        return self

    @property
    def kind(self) -> ClaimKind:
        """Which of the three it is."""
        return "point" if self.point is not None else "band" if self.band is not None else "ordering"

    @property
    def stretch(self) -> PointClaim | BandClaim | None:
        """The point or band; None for an ordering."""
        return self.point or self.band

    @property
    def refs(self) -> tuple[FigureRef, ...]:
        """The figures that it is about."""
        if self.ordering is not None:
            return tuple(self.ordering.greatest_first)
        assert self.stretch is not None  # the validator has seen to it
        return (self.stretch.of,)


def _refuse_meeting(where: str, stretch: PointClaim | BandClaim, refuters: Iterable[Region]) -> None:
    """Refuse a claim that can't hold, a refuter that can't happen, and the two at one point."""
    domain, hold = stretch.of.spec.domain, stretch.span
    _refuse_impossible(where, stretch.of, hold)
    for refuter in (region.span for region in refuters):
        _refuse_impossible(f"{where}: refuted_by", stretch.of, refuter)
        both = [point for point in domain.points([hold, refuter]) if point in hold and point in refuter]
        if both:
            raise ValueError(f"{where} holds and is refuted at {shown(both[0])}: expected regions that don't meet")


def _refuse_impossible(where: str, ref: FigureRef, span: Span) -> None:
    if not any(point in span for point in ref.spec.domain.points([span])):
        raise ValueError(f"{where}: {ref} is never {span}: expected a region that it can be in")


class _Conjunction(_Table):
    """Conditions that must all hold."""

    when: Annotated[list[Condition], Field(min_length=1)]
    """The conditions, each on another figure; all of them must hold."""

    @model_validator(mode="after")
    def _each_figure_once(self) -> _Conjunction:
        refs = [condition.ref for condition in self.when]
        for condition in self.when:
            if refs.count(condition.ref) > 1:
                raise ValueError(f"{condition.ref} stands in two conditions of one row: expected one region for it")
            _refuse_impossible("when", condition.ref, condition.span)
        return self


class OutcomeRow(_Conjunction):
    """A row of the table of outcomes."""

    verdict: Text
    """What is concluded when the row holds."""


class AdverseEntry(_Conjunction):
    """Something that would speak against the experiment or its treatment, reported as happened or not."""

    name: Text
    """What would have happened, in a few words."""


class StopRule(Condition):
    """A figure and a region: once it is in there, no further cell starts."""

    name: Text
    """The name it is recorded under, unique among the stop rules."""

    @model_validator(mode="after")
    def _is_there_in_time(self) -> StopRule:
        where = f"stop rule {self.name!r}: {self.ref}"
        if not self.ref.spec.interim:
            raise ValueError(f"{where} is withheld while cells are missing: expected a figure that is there by then")
        _refuse_impossible(where, self.ref, self.span)
        return self


def refs_of(
    predictions: Iterable[Prediction], rows: Iterable[OutcomeRow | AdverseEntry], stops: Iterable[StopRule]
) -> list[FigureRef]:
    """Every figure that something was registered about, each once, in order."""
    said = [ref for prediction in predictions for ref in prediction.refs]
    said += [condition.ref for row in rows for condition in row.when]
    return list(dict.fromkeys([*said, *(rule.ref for rule in stops)]))


def refuse_bad_claims(
    known: Known,
    *,
    predictions: Sequence[Prediction] = (),
    outcomes: Sequence[OutcomeRow] = (),
    adverse: Sequence[AdverseEntry] = (),
    stops: Sequence[StopRule] = (),
) -> None:
    """
    Raise `ExperimentError` for a name that is taken, a figure that the experiment has not, and a table of outcomes that
    has a gap or an overlap: then with a point that shows it.
    """
    for what, names in (
        ("prediction", [item.name for item in predictions]),
        ("outcome", [item.verdict for item in outcomes]),
        ("adverse outcome", [item.name for item in adverse]),
        ("stop rule", [item.name for item in stops]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise ExperimentError(f"{what} {name!r} stands {names.count(name)} times: expected each once")
    for ref in refs_of(predictions, [*outcomes, *adverse], stops):
        refuse_unknown(ref, known)
    if outcomes:
        _refuse_no_partition(outcomes)


def _refuse_no_partition(outcomes: Sequence[OutcomeRow]) -> None:
    rows = [{condition.ref: condition.span for condition in row.when} for row in outcomes]
    domains: dict[FigureRef, Domain] = {ref: ref.spec.domain for row in rows for ref in row}
    fault = fault_of_table(rows, domains)
    if fault is None:
        return
    point = ", ".join(f"{ref} = {shown(value)}" for ref, value in fault.point.items())
    if not fault.rows:
        raise ExperimentError(f"outcomes: no row holds at {point}: expected a row for every result")
    first, second = (f"row {at + 1} ({outcomes[at].verdict!r})" for at in fault.rows)
    raise ExperimentError(f"outcomes: {first} and {second} both hold at {point}: expected one row for every result")
