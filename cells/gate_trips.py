"""
Screens, measured too: which gates refused what, by arm, and which of those refusals look false.

A gate that refuses what one arm encourages moves a result without a word of the statistics. So each refusal is kept
with its exhibit, and with the reading that the exhibit would have had without the gate: one that would have been
accepted is either a cheat that works or a false positive, and somebody has to look at it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cells.plan import read_run
from harness.blobs import BlobStore
from harness.errors import IntegrityError, UsageError
from harness.outcome import CellOutcome
from harness.registration import Registration, load_registration
from harness.values import Refused, Standing, Verdict

__all__ = ["GateCount", "GateTrips", "Refusal", "audit_gates", "read_trips"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """
    One exhibit that a gate of the referee's refused. `gate` is the reading that it got, `why` what the gate said;
    `would_be` is the reading without the gate, and `accepted` whether that one would have been accepted (None where the
    referee does not know the reading). `kept` is whether the exhibit is whole in the run's blobs.
    """

    cell: str
    arm: str
    attempt: int
    gate: str
    why: str
    would_be: str
    accepted: bool | None
    exhibit: str | None
    kept: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class GateCount:
    """
    How often a gate refused, in one arm: `trips` of `of`. For a gate of the referee's these are judged tries, those
    that ended in a HALT among them; for a gate that builds no cell, registered cells.
    """

    gate: str
    arm: str
    trips: int
    of: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GateTrips:
    """The gates of a run. `unequal` has a sentence for each gate that does not refuse all arms alike."""

    counts: tuple[GateCount, ...]
    refusals: tuple[Refusal, ...]
    unequal: tuple[str, ...]

    @property
    def doubtful(self) -> tuple[Refusal, ...]:
        """Refusals of what would have been accepted: to be read by somebody."""
        return tuple(refusal for refusal in self.refusals if refusal.accepted)


def audit_gates(folder: Path, classes: Mapping[str, Standing]) -> GateTrips:
    """
    The gates of the run in `folder`; `classes` is its referee's class table.

    Raises `UsageError` when nothing of it was ended or refused yet, `IntegrityError` when the record is damaged.
    """
    registration = load_registration(folder)
    outcomes = read_run(folder)[0].outcomes()
    if not outcomes and not registration.refused:
        raise UsageError(f"{folder} has no outcome in its record: run it first, or see `proctor verify {folder}`")
    return read_trips(registration, outcomes, classes, BlobStore(folder / "blobs"))


def read_trips(
    registration: Registration, outcomes: Sequence[CellOutcome], classes: Mapping[str, Standing], store: BlobStore
) -> GateTrips:
    """The gates by a registration and its outcomes, every try of which is counted."""
    refusals = tuple(
        _refusal(outcome, verdict, classes, store)
        for outcome in outcomes
        if (verdict := outcome.verdict or outcome.would_be) is not None and verdict.would_be is not None
    )
    arms = sorted({cell.arm for cell in registration.cells} | {_arm(row["cell"]) for row in registration.refused})
    judged = Counter(outcome.cell.arm for outcome in outcomes if outcome.verdict or outcome.would_be)
    counts = _counts(Counter((refusal.gate, refusal.arm) for refusal in refusals), arms, judged)
    planned = Counter(
        [*(cell.arm for cell in registration.cells), *(_arm(row["cell"]) for row in registration.refused)]
    )
    built = Counter([*_never_built(registration, outcomes)])
    counts += _counts(built, arms, planned)
    return GateTrips(counts=counts, refusals=refusals, unequal=tuple(_unequal(counts)))


def _never_built(registration: Registration, outcomes: Iterable[CellOutcome]) -> Iterable[tuple[str, str]]:
    """The gate and the arm of each cell that was refused, at the freeze or by a run."""
    for row in registration.refused:
        yield row["gate"], _arm(row["cell"])
    for outcome in outcomes:
        if isinstance(outcome.end, Refused):
            yield outcome.end.gate, outcome.cell.arm


def _arm(cell: str) -> str:
    """The arm in a cell's text, `benchmark|task|arm|extras|model|replicate`."""
    return cell.split("|")[2]


def _counts(trips: Mapping[tuple[str, str], int], arms: Sequence[str], of: Mapping[str, int]) -> tuple[GateCount, ...]:
    """A count for each gate that refused anything, in every arm: at zero too."""
    gates = sorted({gate for gate, _arm in trips})
    return tuple(
        GateCount(gate=gate, arm=arm, trips=trips.get((gate, arm), 0), of=of.get(arm, 0))
        for gate in gates
        for arm in arms
    )


def _unequal(counts: Sequence[GateCount]) -> Iterable[str]:
    for gate in dict.fromkeys(count.gate for count in counts):
        rows = [count for count in counts if count.gate == gate]
        if any(row.trips * other.of != other.trips * row.of for row in rows for other in rows):
            shares = ", ".join(f"{row.arm} {row.trips} of {row.of}" for row in rows)
            yield f"{gate} does not refuse all arms alike: {shares}"


def _refusal(outcome: CellOutcome, verdict: Verdict, classes: Mapping[str, Standing], store: BlobStore) -> Refusal:
    assert verdict.would_be is not None  # that is what makes it a refusal
    standing = classes.get(verdict.would_be)
    return Refusal(
        cell=str(outcome.cell),
        arm=outcome.cell.arm,
        attempt=outcome.attempt,
        gate=verdict.reading,
        why=verdict.detail,
        would_be=verdict.would_be,
        accepted=None if standing is None else standing == "accepted",
        exhibit=outcome.exhibit,
        kept=_kept(store, outcome.exhibit),
    )


def _kept(store: BlobStore, exhibit: str | None) -> bool:
    if exhibit is None:
        return False
    try:
        store.get_tree(exhibit)
    except (IntegrityError, OSError):
        return False
    return True
