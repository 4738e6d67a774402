"""Tries that were cut off by a kill or a Ctrl-C: each becomes a line of its own, with the spend it had by then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from cells.cell import transcript_path
from cells.house import House
from cells.journal import Journal
from cells.recorded_calls import recorded_calls
from harness.canonical import digest_bytes
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.money import ZERO, dollars, sum_of
from harness.outcome import CellOutcome, Spend, outcome_to_json
from harness.transcript import read_transcript
from harness.values import CellKey, Void

__all__ = ["charge_past_tries", "close_open_tries", "spend_of_transcript"]


async def close_open_tries(house: House, journal: Journal) -> int:
    """Write VOID(interrupted) for every try that was started and has no outcome; return how many there were."""
    open_tries = dict(journal.progress.started)
    for cell, attempt in open_tries.items():
        path = transcript_path(house.folder, cell, attempt)
        outcome = CellOutcome(
            cell=cell,
            attempt=attempt,
            end=Void(cause="interrupted", detail="the run ended before the cell did"),
            spend=spend_of_transcript(house, cell, path),
            transcript=digest_bytes(path.read_bytes()) if path.exists() else None,
        )
        await journal.add("cell.ended", outcome_to_json(outcome))
    return len(open_tries)


def spend_of_transcript(house: House, cell: CellKey, path: Path) -> Spend:
    """
    What a try had spent when it was cut off, from its transcript: each call that was sent is charged, and one without
    an answer with an unknown usage, by the estimate that was written down before it was sent.
    """
    meter = Meter(
        [Scope(name="cell", bounds=Bounds(), ledger=Ledger())], clock=house.clock, rates=house.rates(cell.model)
    )
    times: list[str] = []

    def events() -> Iterator[dict[str, Any]]:
        for event in read_transcript(path) if path.exists() else ():
            times[1:] = [event["at"]]
            yield event

    for call in recorded_calls(events()):
        meter.charge_call(call.usage, estimate=call.estimate, output_bytes=call.output_bytes, served=call.served)
    return replace(meter.spend(), wall_s=_seconds(times))


def _seconds(times: Sequence[str]) -> float:
    """Seconds from the first to the last time of a transcript; what came after its last event left no trace."""
    if not times:
        return 0.0
    return (datetime.fromisoformat(times[-1]) - datetime.fromisoformat(times[0])).total_seconds()


def charge_past_tries(house: House, journal: Journal) -> None:
    """Charge the arm's and the run's ledgers with what every earlier try spent: a resume has no fresh budget."""
    for outcome in journal.progress.outcomes():
        spend = outcome.spend
        charged = ZERO if spend.charged_usd is None else dollars(spend.charged_usd)
        for ledger in (house.run_ledger, house.arm_ledgers[outcome.cell.arm]):
            ledger.tokens += spend.charged_tokens
            ledger.usd = sum_of((ledger.usd, charged))
            ledger.calls += spend.calls
            ledger.output += spend.output_bytes
            ledger.wall_ended += spend.wall_s
