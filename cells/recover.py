"""Tries that were cut off by a kill or a Ctrl-C: each becomes a line of its own, with the spend it had by then."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from cells.cell import transcript_path
from cells.house import House
from cells.journal import Journal
from harness.canonical import digest_bytes
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.money import ZERO, dollars, sum_of
from harness.outcome import CellOutcome, Spend, outcome_to_json
from harness.transcript import read_transcript
from harness.values import CellKey, Usage, Void

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
    waiting: dict[int, int] = {}
    first = last = None
    for event in read_transcript(path) if path.exists() else ():
        last = event["at"]
        first = first or last
        if event["event"] == "request":
            waiting[event["call"]] = event["estimate"]
        elif event["event"] in {"completion", "call_failed"} and event["call"] in waiting:
            size = len(event.get("text", "").encode())
            meter.charge_call(
                Usage(**event["usage"]),
                estimate=waiting.pop(event["call"]),
                output_bytes=size,
                served=event.get("served_model"),
            )
    for estimate in waiting.values():
        meter.charge_call(Usage(), estimate=estimate, output_bytes=0)
    return replace(meter.spend(), wall_s=_seconds(first, last))


def _seconds(first: str | None, last: str | None) -> float:
    """Seconds between two times of a transcript; what came after its last event left no trace."""
    if first is None or last is None:
        return 0.0
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


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
