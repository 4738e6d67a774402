"""
Naming a figure of a scoreboard by its structure, never by parsed text, and what each figure can be.

A reference names a contrast, a ratio (of one task or of all), an arm (over all its tasks, or of one), or nothing: then
the figure is of the whole declared set. `Known` is what an experiment has; a reference to anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from harness.analysis import DESCRIPTIVE, Analysis, Contrast
from harness.errors import ExperimentError, unknown_name
from harness.figure_tables import FIGURES, Figure, Kind
from harness.values import CellKey

__all__ = ["FigureRef", "Known", "known_of", "refuse_unknown"]

Selector: TypeAlias = Literal["contrast", "stratum", "guard", "ratio", "arm", "extras", "model", "benchmark", "task"]

SELECTORS: tuple[Selector, ...] = get_args(Selector)
"""The fields that say of what the figure is."""

ALLOWED: Mapping[Kind, frozenset[Selector]] = {
    "a contrast": frozenset({"contrast"}),
    "a stratum": frozenset({"contrast", "stratum"}),
    "a guard": frozenset({"guard"}),
    "a ratio": frozenset({"ratio"}),
    "a task of a ratio": frozenset({"ratio", "task", "model", "benchmark"}),
    "an arm": frozenset({"arm", "extras", "model"}),
    "a condition": frozenset({"arm", "extras", "model", "benchmark", "task"}),
    "the whole set": frozenset(),
}
"""What each kind of reference may say; anything beside it is refused, for it would be ignored."""


class FigureRef(BaseModel):
    """
    One figure of a scoreboard. `extras`, `model` and `benchmark` may be left out where there is only one to choose.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    contrast: str | None = None
    """The name of a contrast of the analysis."""
    stratum: str | None = None
    """One stratum of the contrast, as the scoreboard calls it: its parts in the order of `strata`, with `|` between."""
    guard: str | None = None
    """The name of a guard of the analysis."""
    ratio: str | None = None
    """The name of a ratio of the analysis."""
    arm: str | None = None
    """An arm of the experiment."""
    extras: str | None = None
    """The extras of an arm's cells; needed where the experiment has several."""
    model: str | None = None
    """The model of an arm's cells or of a ratio's task; needed where there are several."""
    benchmark: str | None = None
    """The benchmark of the task; needed where two have a task of this name."""
    task: str | None = None
    """One task alone, of a ratio or of an arm."""
    figure: str
    """Which figure of it: see the tables of figures."""

    @model_validator(mode="after")
    def _one_kind(self) -> FigureRef:
        given = [name for name in ("contrast", "guard", "ratio", "arm") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(f'`{name}`' for name in given)} together: expected one of them, or none")
        said = {name for name in SELECTORS if getattr(self, name) is not None}
        odd = sorted(said - ALLOWED[self.kind])
        if odd:
            raise ValueError(f"`{odd[0]}` says nothing of a figure of {self.kind}: expected it left out")
        if self.figure not in FIGURES[self.kind]:
            raise ValueError(self._unknown_figure())
        return self

    def _unknown_figure(self) -> str:
        others = sorted(kind for kind, figures in FIGURES.items() if self.figure in figures)
        where = f" It is a figure of {' and of '.join(others)}." if others else ""
        return unknown_name(f"figure of {self.kind}", self.figure, FIGURES[self.kind]) + where

    @property
    def kind(self) -> Kind:
        """What the figure is of."""
        if self.contrast is not None:
            return "a contrast" if self.stratum is None else "a stratum"
        if self.guard is not None:
            return "a guard"
        if self.ratio is not None:
            return "a ratio" if self.task is None else "a task of a ratio"
        if self.arm is not None:
            return "an arm" if self.task is None else "a condition"
        return "the whole set"

    @property
    def spec(self) -> Figure:
        """What the figure is and can be."""
        return FIGURES[self.kind][self.figure]

    def __str__(self) -> str:
        said = [f"{name} {value!r}" for name in SELECTORS if (value := getattr(self, name)) is not None]
        return f"{self.figure} of {', '.join(said) or 'the whole set'}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """
    What references may name. `cells` are the declared ones, None before they are known: then tasks are not checked, nor
    whether a reference that leaves something out means one thing alone. `strata` are those of each contrast by name;
    one that is not there is not checked.
    """

    analysis: Analysis
    arms: Sequence[str]
    extras: Sequence[str]
    models: Sequence[str]
    cells: Sequence[CellKey] | None = None
    strata: Mapping[str, Sequence[str]] = field(default_factory=dict)


def known_of(
    analysis: Analysis, cells: Iterable[CellKey], strata: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> Known:
    """What a frozen experiment has, by its declared cells."""
    declared = tuple(cells)
    names = {name: sorted({getattr(cell, name) for cell in declared}) for name in ("arm", "extras", "model")}
    return Known(
        analysis=analysis,
        arms=names["arm"],
        extras=names["extras"],
        models=names["model"],
        cells=declared,
        strata=strata,
    )


def refuse_unknown(ref: FigureRef, known: Known) -> None:
    """Raise `ExperimentError` if the reference names something that the experiment has not, or more than one thing."""
    tables: Mapping[Selector, Iterable[str]] = {
        "contrast": [item.name for item in known.analysis.contrasts],
        "guard": [item.name for item in known.analysis.guards],
        "ratio": [item.name for item in known.analysis.ratios],
        "arm": known.arms,
        "extras": known.extras,
        "model": known.models,
    }
    for name, names in tables.items():
        value = getattr(ref, name)
        if value is not None and value not in set(names):
            raise ExperimentError(f"{ref}: {unknown_name(name, value, names)}")
    for contrast in [item for item in known.analysis.contrasts if item.name == ref.contrast]:
        _refuse_of_contrast(ref, contrast, known)
    if known.cells is None:
        return
    if ref.ratio is not None and ref.task is not None:
        item = next(item for item in known.analysis.ratios if item.name == ref.ratio)
        inside = [cell for cell in known.cells if cell.arm == item.treatment and cell.extras == item.extras]
        _refuse_many(ref, [cell for cell in inside if item.model in {None, cell.model}], ("benchmark", "model"))
    elif ref.arm is not None:
        inside = [cell for cell in known.cells if cell.arm == ref.arm]
        fields: tuple[Selector, ...] = ("extras", "model") if ref.task is None else ("extras", "model", "benchmark")
        _refuse_many(ref, inside, fields)


def _refuse_of_contrast(ref: FigureRef, contrast: Contrast, known: Known) -> None:
    """Refuse a figure that the contrast's test does not give, an adjusted p of none, and a stratum that it has not."""
    if not ref.spec.exists_for(contrast.test):
        raise ExperimentError(f"{ref}: test {contrast.test!r} gives no {ref.figure}")
    if ref.figure == "p_holm" and known.analysis.family_of(contrast) == DESCRIPTIVE:
        raise ExperimentError(f"{ref}: it is in the family {DESCRIPTIVE!r}, in which no p-value is adjusted")
    if ref.stratum is None:
        return
    if not contrast.strata:
        raise ExperimentError(f"{ref}: the contrast has no `strata`: expected it to name what its pool is split by")
    names = known.strata.get(contrast.name)
    if names is not None and ref.stratum not in names:
        raise ExperimentError(f"{ref}: {unknown_name('stratum', ref.stratum, names)}")


def _refuse_many(ref: FigureRef, cells: Sequence[CellKey], fields: Sequence[Selector]) -> None:
    """Refuse a task that is not among the cells, and a field left out that has several values there."""
    tasks = {cell.task for cell in cells}
    if ref.task is not None and ref.task not in tasks:
        raise ExperimentError(f"{ref}: {unknown_name('task', ref.task, tasks)}")
    found = [cell for cell in cells if ref.task in {None, cell.task}]
    for name in fields:
        value = getattr(ref, name)
        values = sorted({getattr(cell, name) for cell in found})
        if value is None and len(values) > 1:
            raise ExperimentError(f"{ref}: `{name}` could be {' or '.join(values)}: expected it named")
        found = [cell for cell in found if value in {None, getattr(cell, name)}]
    if not found:
        raise ExperimentError(f"{ref}: no declared cell is of it")
