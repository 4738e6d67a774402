"""
The registered analysis: which arms are compared, by which test, in which family.

It is frozen with the registration. Nothing here computes; `cells` reads it, and refuses what it does not name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harness.errors import ExperimentError, unknown_name
from harness.grouping import Expected, Grouping, Resampling, Text, unknown_splits
from harness.guarding import GuardEntry, MaterialRescue, StratumGate

__all__ = ["DESCRIPTIVE", "Alternative", "Analysis", "Contrast", "Quantity", "Ratio", "TestName"]

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
"""The direction that a test was registered with, always of the treatment against the control."""

Quantity: TypeAlias = Literal["tokens", "usd", "wall_s", "calls"]
"""What a ratio of medians is taken of: tokens, US dollars, seconds of the seat, calls of the model."""

TestName: TypeAlias = Literal["mcnemar", "mcnemar-clustered", "fisher", "count-rule"]
"""What decides on a contrast."""

DESCRIPTIVE = "descriptive"
"""The family that is none: a contrast in it has its figures, no adjusted p-value, and no verdict."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _Comparison(BaseModel):
    """What a contrast and a ratio have in common."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    name: Text
    """The name it is reported under, unique in the analysis."""

    treatment: Text
    """The arm that the claim is about."""

    control: Text
    """The arm that it is compared with."""

    extras: Text = "none"
    """The extras that both sides carry."""

    model: Text | None = None
    """The one model compared on; without it, every model of the experiment."""

    qualifiers: tuple[Text, ...] = ()
    """Sentences that are printed beside the p-value wherever it is printed."""

    @model_validator(mode="after")
    def _two_arms(self) -> _Comparison:
        if self.treatment == self.control:
            raise ValueError(f"{self.name!r} compares arm {self.control!r} with itself: expected two different arms")
        return self


class Contrast(_Comparison):
    """A comparison of verdicts, paired by unit, extras and replicate. `greater` claims the treatment passes more."""

    test: TestName = "mcnemar"
    """`mcnemar` (exact), `mcnemar-clustered` (Durkalski), `fisher` (arms not paired), or `count-rule` (no p-value)."""

    alternative: Alternative = "greater"
    """The direction of the claim: the treatment passes more (`greater`), fewer (`less`), or either (`two-sided`)."""

    family: Text | None = None
    """The family it is adjusted in; the analysis's own unless given. `descriptive` is none: no Holm p, no verdict."""

    strata: tuple[Text, ...] = ()
    """What the pool is split by: `benchmark`, `model`, or groupings' names, crossed in this order."""

    cluster: Text | None = None
    """For `mcnemar-clustered`: what pairs depend within, `task`, `unit`, or a grouping's name."""

    separation: Annotated[int, Field(ge=1)] | Literal["null"] | None = None
    """For `count-rule`: the difference of counts that tells; `null` is the least that chance seldom gives."""

    bootstrap: Resampling | None = None
    """An interval of the paired risk difference by resampling whole clusters, beside the test."""

    power: Expected | None = None
    """What the test is expected to meet: its exact power is told before the run."""

    @model_validator(mode="after")
    def _belongs(self) -> Contrast:
        for setting, test in (("cluster", "mcnemar-clustered"), ("separation", "count-rule")):
            given = getattr(self, setting) is not None
            if given and self.test != test:
                raise ValueError(
                    f"{self.name!r} has `{setting}` with test {self.test!r}: expected it with {test!r} only"
                )
            if self.test == test and not given:
                raise ValueError(f"{self.name!r} has test {test!r} without `{setting}`: expected one, registered")
        if self.power is not None and self.test != "mcnemar":
            raise ValueError(f"{self.name!r} has `power` with test {self.test!r}: it is known for 'mcnemar' only")
        if self.test == "fisher" and (self.strata or self.bootstrap is not None):
            raise ValueError(f"{self.name!r} has test 'fisher', which has no pairs: expected no strata, no bootstrap")
        return self


class Ratio(_Comparison):
    """A comparison of cost: treatment median over control median a task, then a sign test over tasks."""

    quantity: Quantity
    """What is compared: `tokens`, `usd`, `wall_s` (seconds) or `calls`."""

    alternative: Alternative
    """The direction of the claim: the treatment costs more (`greater`), less (`less`), or either (`two-sided`)."""

    sd_ln: Annotated[float, Field(gt=0)] | None = None
    """The registered standard deviation of the natural log of the quantity; with it, the resolvable ratio is shown."""

    min_n: Annotated[int, Field(ge=1)] = 1
    """The fewest cells with a figure that a median is taken of; with fewer, the task's ratio is undefined."""

    wide: Annotated[float, Field(gt=1)] | None = None
    """A condition looks wide when its largest figure is over so many times its smallest; needs `sd_ln`."""

    @model_validator(mode="after")
    def _wide_of_what(self) -> Ratio:
        if self.wide is not None and self.sd_ln is None:
            raise ValueError(f"{self.name!r} has `wide` without `sd_ln`: expected the spread that it is held against")
        return self


class Analysis(BaseModel):
    """What was registered to be computed. An experiment without a contrast or ratio reports its census and costs."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    family: Text = "primary"
    """The name of the family of contrasts that Holm's procedure adjusts together."""

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """The level that the family's adjusted p-values are held against."""

    contrasts: tuple[Contrast, ...] = ()
    """The comparisons of verdicts; together they are the family."""

    ratios: tuple[Ratio, ...] = ()
    """The comparisons of cost; each stands by itself, outside the family."""

    guards: tuple[GuardEntry, ...] = ()
    """Predicates beside the tests, read from the contrasts that they name."""

    groupings: tuple[Grouping, ...] = ()
    """Named maps from strata to tasks or units, for `strata` and `cluster`."""

    @field_validator("contrasts", "ratios", "guards", "groupings")
    @classmethod
    def _names_differ(cls, items: tuple[_Named, ...]) -> tuple[_Named, ...]:
        names = [item.name for item in items]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"the name {doubled[0]!r} is used more than once: expected each name once")
        return items

    @field_validator("family")
    @classmethod
    def _a_family(cls, name: str) -> str:
        if name == DESCRIPTIVE:
            raise ValueError(f"the family is called {name!r}, which means none: expected another name")
        return name

    @model_validator(mode="after")
    def _refers_to_itself(self) -> Analysis:
        groupings = [grouping.name for grouping in self.groupings]
        bad = [f"{item.name!r}: {line}" for item in self.contrasts for line in _unknown_splits(item, groupings)]
        bad += [line for guard in self.guards for line in _unknown_contrasts(guard, self.contrasts)]
        if bad:
            raise ValueError("; ".join(bad))
        return self

    def family_of(self, contrast: Contrast) -> str:
        """The family that a contrast is adjusted in."""
        return self.family if contrast.family is None else contrast.family

    def family_size(self, contrast: Contrast) -> int:
        """How many tests Holm's procedure adjusts together with this one; 1 where it adjusts none."""
        family = self.family_of(contrast)
        if family == DESCRIPTIVE:
            return 1
        return max(1, sum(self.family_of(item) == family and item.test != "count-rule" for item in self.contrasts))

    def validate_against(self, arms: Collection[str], models: Collection[str], extras: Collection[str]) -> None:
        """
        Check that every arm, model and extras named here is one of the experiment's.

        Raises `ExperimentError` with one line for each bad reference, naming the known ones.
        """
        bad = [line for item in (*self.contrasts, *self.ratios) for line in _strangers(item, arms, models, extras)]
        if bad:
            raise ExperimentError("\n".join(bad))


def _unknown_splits(item: Contrast, groupings: Collection[str]) -> Iterable[str]:
    yield from unknown_splits("strata", item.strata, groupings)
    yield from unknown_splits("cluster", () if item.cluster is None else (item.cluster,), groupings)
    if item.bootstrap is not None:
        yield from unknown_splits("strata", item.bootstrap.strata, groupings)
        yield from unknown_splits("cluster", (item.bootstrap.cluster,), groupings)


def _unknown_contrasts(guard: GuardEntry, contrasts: Collection[Contrast]) -> Iterable[str]:
    known = {item.name: item for item in contrasts}
    for name in guard.contrasts:
        if name not in known:
            yield f"guard {guard.name!r}: {unknown_name('contrast', name, known)}"
        elif known[name].test == "fisher":
            yield f"guard {guard.name!r}: contrast {name!r} has test 'fisher', and no pairs: expected one of pairs"
    if isinstance(guard, StratumGate) and guard.contrast in known and not known[guard.contrast].strata:
        yield f"guard {guard.name!r}: contrast {guard.contrast!r} has no `strata`: expected some to look at"
    if isinstance(guard, MaterialRescue) and {guard.placebo, guard.treatment} <= known.keys():
        controls = {known[name].control for name in guard.contrasts}
        if len(controls) > 1:
            yield f"guard {guard.name!r}: controls {', '.join(sorted(controls))} of its two contrasts: expected one"


def _strangers(
    item: _Comparison, arms: Collection[str], models: Collection[str], extras: Collection[str]
) -> Iterable[str]:
    where = f"analysis, {type(item).__name__.lower()} {item.name!r}:"
    for label, arm in (("treatment", item.treatment), ("control", item.control)):
        if arm not in arms:
            yield f"{where} {label}: {unknown_name('arm', arm, arms)}"
    if item.model is not None and item.model not in models:
        yield f"{where} {unknown_name('model', item.model, models)}"
    if item.extras not in extras:
        yield f"{where} {unknown_name('extras', item.extras, extras)}"
