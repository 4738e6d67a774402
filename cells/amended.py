"""What a registration and its amendments declare together: the cells to be played, and the analysis that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.amendment import Amendment
from harness.analysis import Analysis, Contrast, Ratio
from harness.registration import Registration
from harness.values import CellKey

__all__ = ["Amended", "AmendedPlan", "added_contrasts", "amended_analysis", "amended_plan", "amendments_in"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Amended:
    """One amendment of a record: its `number` from 1, when it was made, and how many outcomes stood before it."""

    number: int
    dated: str
    outcomes: int
    content: Amendment
    checks: Sequence[Mapping[str, Any]]
    repository: Mapping[str, Any] | None

    @property
    def label(self) -> str:
        """What it is called in a sentence."""
        return f"amendment {self.number} of {self.dated}"


@dataclass(frozen=True, kw_only=True, slots=True)
class AmendedPlan:
    """
    The cells in force: the frozen ones with those `added` by later replicates, without those of `withdrawn` tasks
    (`benchmark/task`, with why). `void_retries` is how often a VOID is tried again.
    """

    cells: tuple[CellKey, ...]
    added: tuple[CellKey, ...]
    withdrawn: Mapping[str, str]
    void_retries: int


def amendments_in(bodies: Sequence[Mapping[str, Any]]) -> tuple[Amended, ...]:
    """The amendments that a record's entries hold, in order."""
    return tuple(
        Amended(
            number=body["number"],
            dated=body["dated"],
            outcomes=body["outcomes"],
            content=Amendment.model_validate(body["content"]),
            checks=body["checks"],
            repository=body["repository"],
        )
        for body in bodies
    )


def amended_plan(registration: Registration, amendments: Sequence[Amended]) -> AmendedPlan:
    """The plan in force. Added replicates repeat the frozen conditions; a withdrawn task leaves in all arms alike."""
    frozen = registration.experiment
    replicates, retries = frozen["replicates"], frozen["retries"]["void"]
    withdrawn: dict[str, str] = {}
    for item in amendments:
        replicates = item.content.replicates or replicates
        retries = retries if item.content.void_retries is None else item.content.void_retries
        withdrawn |= {row.task: f"{row.reason} ({item.label})" for row in item.content.withdrawn}
    first = [cell for cell in registration.cells if cell.replicate == 1]
    added = [
        replace(cell, replicate=number) for number in range(frozen["replicates"] + 1, replicates + 1) for cell in first
    ]
    return AmendedPlan(
        cells=tuple(cell for cell in (*registration.cells, *added) if f"{cell.benchmark}/{cell.task}" not in withdrawn),
        added=tuple(added),
        withdrawn=withdrawn,
        void_retries=retries,
    )


def amended_analysis(analysis: Analysis, amendments: Sequence[Amended]) -> Analysis:
    """The registered analysis with every notice at the number it is about, and the ratios that were added."""
    contrasts: tuple[Contrast, ...] = analysis.contrasts
    ratios: tuple[Ratio, ...] = analysis.ratios
    for item in amendments:
        late = f"added after the registration, by {item.label}"
        ratios += tuple(
            ratio.model_copy(update={"qualifiers": (*ratio.qualifiers, late)}) for ratio in item.content.ratios
        )
        for notice in item.content.notices:
            words = f"{notice.text} ({item.label})"
            contrasts = _noticed(contrasts, notice.contrast, words)
            ratios = _noticed(ratios, notice.ratio, words)
    return analysis.model_copy(update={"contrasts": contrasts, "ratios": ratios})


def _noticed(tests: tuple[Any, ...], name: str | None, words: str) -> tuple[Any, ...]:
    return tuple(
        test.model_copy(update={"qualifiers": (*test.qualifiers, words)}) if test.name == name else test
        for test in tests
    )


def added_contrasts(amendments: Sequence[Amended]) -> tuple[Contrast, ...]:
    """The comparisons of verdicts that amendments added, each saying which one did, with the notices about them."""
    contrasts: tuple[Contrast, ...] = ()
    for item in amendments:
        late = f"by {item.label}"
        contrasts += tuple(
            test.model_copy(update={"qualifiers": (*test.qualifiers, late)}) for test in item.content.contrasts
        )
        for notice in item.content.notices:
            contrasts = _noticed(contrasts, notice.contrast, f"{notice.text} ({item.label})")
    return contrasts
