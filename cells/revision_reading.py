"""
What revisions did, by arm: correct now and ever, work lost, harm and repair, sound completions, escalations.

A pure function of a run's record and transcripts. A state is correct if the public tests accepted it, since a seat can
be told of no others; a completion is sound if the referee agrees. A cell without its recorded transcript is counted as
unseen and is in no other figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cells.revision_contrasts import RevisionContrast, Seen, contrast_arms
from cells.revision_trail import Trail, read_trail
from cells.settled import Settled
from cells.strata import Placer
from harness.outcome import CellOutcome
from harness.values import Declared

__all__ = ["ArmRevisions", "AtRevision", "RevisionReading", "read_revisions"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AtRevision:
    """
    The cells whose state after `revision` (0 is the start) is `known`: how many are `correct`; and of those `traced`,
    whose states are all known up to here, how many `ever` were.
    """

    revision: int
    known: int
    correct: int
    traced: int
    ever: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmRevisions:
    """
    One arm with its extras and model: counts of cells, each beside the number that it is of.

    `seen` of the `declared` cells have their recorded transcript. Of those that ended by themselves with every state
    known (`traced`) `held` had a correct state at some time and `lost` of them do not have it at last. `harmed` of
    `correct_starts` shipped what the certificate does not accept, `repaired` of `wrong_starts` what it does. `sound` of
    the `judged` have an accepted certificate and an accepting verdict; `unsound` have the one without the other.
    """

    arm: str
    extras: str
    model: str
    declared: int
    seen: int
    by_revision: tuple[AtRevision, ...]
    traced: int
    held: int
    lost: int
    restored: int
    correct_starts: int
    harmed: int
    wrong_starts: int
    repaired: int
    judged: int
    sound: int
    unsound: int
    escalated: int
    patches: int
    admitted: int
    stale_shown: int
    notes: Mapping[str, int]
    handlings: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class RevisionReading:
    """What every arm's revisions came to, and what tells arms apart; both empty where no transcript tells of any."""

    arms: tuple[ArmRevisions, ...]
    contrasts: tuple[RevisionContrast, ...]


def read_revisions(folder: Path, settled: Settled, *, place: Placer) -> RevisionReading:
    """
    The revisions of the run in `folder`, over the declared set and the outcomes that count. `place` tells the cluster
    of a unit; pairs of a unit that it does not place are in no contrast.
    """
    arms: dict[tuple[str, str, str], int] = {}
    seen: list[Seen] = []
    for cell in settled.declared:
        arms[cell.arm, cell.extras, cell.model] = arms.get((cell.arm, cell.extras, cell.model), 0) + 1
        outcome = settled.outcomes.get(cell)
        trail = read_trail(folder, outcome) if isinstance(outcome, CellOutcome) and outcome.is_final else None
        if trail is not None and isinstance(outcome, CellOutcome):
            seen.append(Seen(outcome=outcome, trail=trail))
    if not seen:
        return RevisionReading(arms=(), contrasts=())
    by_arm = {
        key: [one for one in seen if (one.outcome.cell.arm, one.outcome.cell.extras, one.outcome.cell.model) == key]
        for key in arms
    }
    return RevisionReading(
        arms=tuple(_read(key, arms[key], cells) for key, cells in by_arm.items()),
        contrasts=contrast_arms(seen, place),
    )


def _read(key: tuple[str, str, str], declared: int, cells: Sequence[Seen]) -> ArmRevisions:
    arm, extras, model = key
    ended = [one for one in cells if isinstance(one.outcome.end, Declared)]
    traced = [one.trail for one in ended if one.trail.lost is not None]
    held = [trail for trail in traced if any(trail.states)]
    kept, repaired = [one.kept for one in cells], [one.repaired for one in cells]
    sound = [one.sound for one in cells]
    return ArmRevisions(
        arm=arm,
        extras=extras,
        model=model,
        declared=declared,
        seen=len(cells),
        by_revision=_by_revision(cells),
        traced=len(traced),
        held=len(held),
        lost=sum(trail.lost is True for trail in held),
        restored=sum(one.trail.restored for one in ended),
        correct_starts=_known(kept),
        harmed=sum(value is False for value in kept),
        wrong_starts=_known(repaired),
        repaired=sum(value is True for value in repaired),
        judged=_known(sound),
        sound=sum(value is True for value in sound),
        unsound=sum(one.unsound for one in cells),
        escalated=sum(one.trail.escalations > 0 for one in cells),
        patches=sum(one.trail.patches for one in cells),
        admitted=sum(one.trail.admitted for one in cells),
        stale_shown=sum(one.trail.stale_shown for one in cells),
        notes=_sum(one.trail.notes for one in cells),
        handlings=_sum(one.trail.handlings for one in cells),
    )


def _by_revision(cells: Sequence[Seen]) -> tuple[AtRevision, ...]:
    """Each revision that could be asked. A cell that ended by itself before it has its last state then."""
    most = max((one.trail.revisions for one in cells), default=-1)
    made = []
    for number in range(most + 1):
        until = [states for one in cells if (states := _until(one, number)) is not None]
        known = [states[-1] for states in until if states[-1] is not None]
        traced = [states for states in until if None not in states]
        made.append(
            AtRevision(
                revision=number,
                known=len(known),
                correct=sum(known),
                traced=len(traced),
                ever=sum(any(states) for states in traced),
            )
        )
    return tuple(made)


def _until(one: Seen, number: int) -> tuple[bool | None, ...] | None:
    """The states up to revision `number`; None where the cell was stopped before that was over."""
    trail: Trail = one.trail
    if number < len(trail.states):
        return trail.states[: number + 1]
    return trail.states if isinstance(one.outcome.end, Declared) else None


def _known(values: Iterable[bool | None]) -> int:
    return sum(value is not None for value in values)


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))
