"""Cumulative unlocks: by which round of a seat the candidate was there that the referee accepted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cells.cell import transcript_path
from cells.settled import Settled
from harness.canonical import digest_bytes
from harness.outcome import CellOutcome
from harness.transcript import read_transcript

__all__ = ["Unlocks", "read_unlocks"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unlocks:
    """
    Of one arm, with its extras and model: how many of its `judged` cells were unlocked by the end of each round, from
    the first (`by_round`); the last figure is all that passed in rounds.

    A cell is unlocked in the round whose candidate was left for the referee, if the referee accepted it; where each one
    was judged that the public tests accepted, in the first round whose candidate passed. `unseen` cells passed, and no
    transcript says in which round: they are in no figure of `by_round`.
    """

    arm: str
    extras: str
    model: str
    judged: int
    unseen: int
    by_round: tuple[int, ...]


def read_unlocks(folder: Path, settled: Settled) -> tuple[Unlocks, ...]:
    """The unlocks of each arm of the run in `folder`; empty where no transcript of a judged cell tells of rounds."""
    arms: dict[tuple[str, str, str], list[tuple[CellOutcome, _Rounds | None]]] = {}
    for cell in settled.declared:
        outcome = settled.outcomes.get(cell)
        if isinstance(outcome, CellOutcome) and outcome.passed is not None:
            arms.setdefault((cell.arm, cell.extras, cell.model), []).append((outcome, _read(folder, outcome)))
    most = max((seen.most for cells in arms.values() for _, seen in cells if seen is not None), default=0)
    if not most:
        return ()
    return tuple(
        Unlocks(
            arm=arm,
            extras=extras,
            model=model,
            judged=len(cells),
            unseen=sum(bool(outcome.passed) and (seen is None or not seen.unlocks) for outcome, seen in cells),
            by_round=tuple(_cumulative((seen.unlocks for outcome, seen in cells if outcome.passed and seen), most)),
        )
        for (arm, extras, model), cells in arms.items()
    )


def _cumulative(rounds: Iterable[int], most: int) -> Iterator[int]:
    counts = Counter(rounds)
    total = 0
    for number in range(1, most + 1):
        total += counts[number]
        yield total


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rounds:
    """The most rounds that a try could have, and the one that unlocks its cell if it passed; 0 where there is none."""

    most: int
    unlocks: int


def _read(folder: Path, outcome: CellOutcome) -> _Rounds | None:
    """What a try's transcript says of its rounds; None if it is not the recorded one, or tells of none."""
    path = transcript_path(folder, outcome.cell, outcome.attempt)
    if outcome.transcript is None or not path.is_file() or digest_bytes(path.read_bytes()) != outcome.transcript:
        return None
    most, with_code, accepted = 0, 0, 0
    for event in read_transcript(path):
        match event:
            case {"event": "round", "rounds": int(rounds)}:
                most = rounds
            case {"event": "extraction", "round": int(number), "code": str(code)} if code:
                with_code = number
            case {"event": "public", "round": int(number), "accepted": True} if number == with_code:
                accepted = number
            case _:
                pass
    passed = [one.round for one in outcome.candidates if one.verdict.standing == "accepted"]
    return _Rounds(most=most, unlocks=min(passed, default=accepted or with_code)) if most else None
