"""What became of the results that were registered before the run: the row of the table of outcomes, adverse ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["AdverseReading", "OutcomeReading", "StopReading", "registered_lines"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OutcomeReading:
    """
    The registered row that holds: its number from 1, its `verdict`, and the figures that it was chosen by. All three
    are empty while none is known to hold, and `why` says why: cells are missing, or a figure is a bound only.
    """

    row: int | None
    verdict: str | None
    figures: tuple[str, ...]
    why: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class AdverseReading:
    """Whether a registered adverse outcome happened, None while it is not known, and the figures that say so."""

    name: str
    happened: bool | None
    figures: tuple[str, ...]
    why: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StopReading:
    """
    The registered stop rule that ended a run: its name, its condition and the figure that met it, as text; and the
    declared cells that it kept from being fired, which are no failures and no VOIDs.
    """

    rule: str
    condition: str
    figure: str
    unfired: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What a reader of any figure must have seen."""
        return (
            f"Stopped by its registered rule {self.rule!r} ({self.condition}; it was {self.figure}): "
            f"{len(self.unfired)} declared cells were not fired."
        )


def registered_lines(outcome: OutcomeReading | None, adverse: Iterable[AdverseReading]) -> Iterator[str]:
    """The registered row that holds and the adverse outcomes, a line each with its figures; none for none."""
    if outcome is not None and outcome.row is None:
        yield f"registered outcome: none is known to hold: {outcome.why}"
    elif outcome is not None:
        yield f"registered outcome {outcome.row}: {outcome.verdict} ({'; '.join(outcome.figures)})"
    for item in adverse:
        said = {True: "happened", False: "did not happen", None: f"not known: {item.why}"}[item.happened]
        figures = f" ({'; '.join(item.figures)})" if item.figures else ""
        yield f"adverse outcome, {item.name}: {said}{figures}"
