"""
The registered analysis: which arms are compared, by which test, in which family.

It is frozen with the registration. Nothing here computes; `cells` reads it, and refuses what it does not name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from harness.errors import ExperimentError, unknown_name

__all__ = ["Alternative", "Analysis", "Contrast", "Quantity", "Ratio"]

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]
"""The direction that a test was registered with, always of the treatment against the control."""

Quantity: TypeAlias = Literal["tokens", "usd", "wall_s", "calls"]
"""What a ratio of medians is taken of: tokens, US dollars, seconds of the seat, calls of the model."""

Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A name or sentence: neither empty nor blank, without outer spaces."""


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

    test: Literal["mcnemar"] = "mcnemar"
    """The exact McNemar test on discordant pairs."""

    alternative: Alternative = "greater"
    """The direction of the claim: the treatment passes more (`greater`), fewer (`less`), or either (`two-sided`)."""


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

    @field_validator("contrasts", "ratios")
    @classmethod
    def _names_differ(cls, items: tuple[_Comparison, ...]) -> tuple[_Comparison, ...]:
        names = [item.name for item in items]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"the name {doubled[0]!r} is used more than once: expected each name once")
        return items

    def validate_against(self, arms: Collection[str], models: Collection[str], extras: Collection[str]) -> None:
        """
        Check that every arm, model and extras named here is one of the experiment's.

        Raises `ExperimentError` with one line for each bad reference, naming the known ones.
        """
        bad = [line for item in (*self.contrasts, *self.ratios) for line in _strangers(item, arms, models, extras)]
        if bad:
            raise ExperimentError("\n".join(bad))


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
