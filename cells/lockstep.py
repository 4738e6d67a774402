"""
Mirrored arms of a unit in lockstep: who waits for whom, which cell may start, and what a source's end makes of the
cells that mirror it.

A mirrored cell never has its outcome before its source has: so a group that a kill broke has either no final cell that
mirrors, and is played anew whole, or a final source, whose published states are read from its transcript.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from cells.cell import transcript_path
from cells.house import House
from cells.journal import Journal
from cells.mirrors import mirror_sources
from harness.canonical import digest_bytes
from harness.errors import IntegrityError, MirrorLost
from harness.mirror_line import LineEnd, MirrorLine
from harness.outcome import CellOutcome, Spend
from harness.ports import Arm
from harness.transcript import read_transcript
from harness.values import CellKey, Refused, Void
from harness.views import MirrorState

__all__ = ["Lockstep", "never_played"]


class Lockstep:
    """The lines of a session's `cells`. A cell that mirrors none and that none mirrors has none: it is always ready."""

    def __init__(self, house: House, journal: Journal, cells: Collection[CellKey]) -> None:
        self._house = house
        self._journal = journal
        self._sources = mirror_sources(house.parts.arms)
        self._lines: dict[CellKey, MirrorLine] = {}
        sources = {source for cell in cells if (source := self.source(cell)) is not None}
        # A source that is neither to be played nor final (an amendment took it out, say) is nothing to wait for.
        self._given_up = {one for one in sources - set(cells) if journal.progress.final(one) is None}

    def source(self, cell: CellKey) -> CellKey | None:
        """The cell whose rounds `cell` copies."""
        source = self._sources.get(cell.arm)
        return None if source is None else replace(cell, arm=source)

    def take(self, queue: deque[CellKey]) -> CellKey | None:
        """Take the first cell that may start now out of the queue: its source is under way, or done with."""
        for position, cell in enumerate(queue):
            source = self.source(cell)
            if source is None or self._ready(source):
                del queue[position]
                return cell
        return None

    def _ready(self, source: CellKey) -> bool:
        line = self._lines.get(source)
        live = line is not None and line.over != "void"
        return live or source in self._given_up or self._journal.progress.final(source) is not None

    def give_up(self, cell: CellKey) -> None:
        """A cell stays VOID in this session: those that mirror it have nothing to wait for."""
        self._given_up.add(cell)

    def lost(self, cell: CellKey) -> bool:
        """Whether what `cell` mirrors stays VOID."""
        return self.source(cell) in self._given_up

    def line(self, cell: CellKey) -> MirrorLine | None:
        """The line of a cell that starts now: a fresh one for a source's try, its source's for one that mirrors it."""
        source = self.source(cell)
        if source is None:
            if cell.arm not in self._sources.values():
                return None
            self._lines[cell] = MirrorLine(cell.arm, str(cell), self._arms(cell.arm))
            return self._lines[cell]
        if source not in self._lines:
            self._lines[source] = self._recorded(source)
        return self._lines[source]

    def _arms(self, source: str) -> list[Arm]:
        names = [source, *(name for name, of in self._sources.items() if of == source)]
        return [self._house.parts.arms[name] for name in names]

    def ended(self, outcome: CellOutcome) -> None:
        """A source's outcome is on the disk: those that wait for it go on."""
        line = self._lines.get(outcome.cell)
        if line is not None:
            line.end(*_end_of(outcome))

    async def settled(self, outcome: CellOutcome) -> CellOutcome:
        """
        The outcome of a cell that mirrors another, once that one has its own: VOID(mirror) where the source ended VOID,
        and REFUSED where it was refused.
        """
        source = self.source(outcome.cell)
        if source is None or not outcome.is_final:
            return outcome
        how = await self._lines[source].ended()
        if how == "over":
            return outcome
        end: Void | Refused = Void(cause=MirrorLost.cause, detail=f"{source}, which it mirrors, ended VOID")
        if how == "refused":
            end = Refused(gate="prompt", detail=f"{source}, which it mirrors, was refused")
        return replace(outcome, end=end, verdict=None, would_be=None)

    def _recorded(self, source: CellKey) -> MirrorLine:
        """The line of a source that was final before this session, from what its transcript says it published."""
        outcome = self._journal.progress.final(source)
        assert outcome is not None  # `take` gives out no cell whose source is neither live, lost nor final
        path = transcript_path(self._house.folder, source, outcome.attempt)
        if outcome.transcript is not None and digest_bytes(path.read_bytes()) != outcome.transcript:
            raise IntegrityError(f"{path}: it is not the transcript that the record names")
        events = read_transcript(path) if outcome.transcript is not None else ()
        states = [_state(event) for event in events if event["event"] == "mirror"]
        line = MirrorLine(source.arm, str(source), self._arms(source.arm), states)
        line.end(*_end_of(outcome))
        return line


def _state(event: Mapping[str, Any]) -> MirrorState:
    return MirrorState(**{item.name: event[item.name] for item in fields(MirrorState)})


def _end_of(outcome: CellOutcome) -> tuple[LineEnd, str]:
    match outcome.end:
        case Void(cause=cause, detail=detail):
            return "void", f"{cause}: {detail}"
        case Refused(detail=detail):
            return "refused", detail
        case _:
            return "over", ""


def never_played(cell: CellKey, attempt: int) -> CellOutcome:
    """The outcome of a cell that was not begun, since what it mirrors stays VOID."""
    return CellOutcome(
        cell=cell,
        attempt=attempt,
        end=Void(cause=MirrorLost.cause, detail="the cell that it mirrors stays VOID in this session"),
        spend=Spend.nothing("the cell was not played"),
    )
