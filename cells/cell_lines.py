"""A line for each declared cell: what exports, queries and the figure of cost against class are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from cells.readable import Cell, Outcome
from cells.settled import Settled
from harness.outcome import CellOutcome
from harness.values import ExactPrice, Halt, LowerBoundPrice, Price, Refused, Void

__all__ = ["CellLine", "cell_lines", "try_lines"]


SPENT = (
    *("tokens", "tokens_input", "tokens_cache_write_5m", "tokens_cache_write_1h", "tokens_cache_read", "tokens_output"),
    *("calls", "output_bytes", "wall_s", "usd", "price"),
)
"""What a line says of spend."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CellLine:
    """
    One cell, or one try of one. What is missing or unknown is None: a cell without an outcome has its key and its
    class MISSING and nothing else, and one with several that disagree is DOUBLED.

    The line of a VOID cell has no figure of what it spent, since a VOID has no number of any kind: the lines of its
    tries keep it. `id` is what another harness calls the cell, and None for one of ours. `outcome_class` is the class
    alone; its `halt_limit`, `void_cause` or `gate` stand beside it. `passed` is None for whatever has no number.
    `tokens` are of all directions; `usd` is the least it cost where `price` is `lower_bound`. `load_1m` and
    `cells_under_way` are the machine's at the try's start.
    """

    run: str
    id: str | None
    benchmark: str
    task: str
    arm: str
    extras: str
    model: str
    replicate: int | None
    attempt: int | None
    tries: int
    outcome_class: str
    halt_limit: str | None = None
    void_cause: str | None = None
    gate: str | None = None
    passed: bool | None = None
    would_be: str | None = None
    tokens: int | None = None
    tokens_input: int | None = None
    tokens_cache_write_5m: int | None = None
    tokens_cache_write_1h: int | None = None
    tokens_cache_read: int | None = None
    tokens_output: int | None = None
    calls: int | None = None
    output_bytes: int | None = None
    wall_s: float | None = None
    usd: float | None = None
    price: str | None = None
    served_models: str | None = None
    load_1m: float | None = None
    cells_under_way: int | None = None
    exhibit: str | None = None
    transcript: str | None = None


def cell_lines(run: str, settled: Settled) -> Iterator[CellLine]:
    """
    A line for each declared cell, in the order declared, with the outcome that counts.

    `run` is the registration's id; a foreign cell names its run itself.
    """
    nothing: dict[str, Any] = dict.fromkeys(SPENT)
    for cell in settled.declared:
        tries = len(settled.tries.get(cell, ()))
        outcome = settled.outcomes.get(cell)
        if outcome is None:
            yield CellLine(**_key(run, cell), attempt=None, tries=tries, outcome_class=settled.label(cell))
        elif isinstance(outcome.end, Void):
            yield replace(_line(run, outcome, tries), **nothing)
        else:
            yield _line(run, outcome, tries)


def try_lines(run: str, settled: Settled) -> Iterator[CellLine]:
    """A line for each try of each declared cell, in order."""
    for cell in settled.declared:
        tries = settled.tries.get(cell, ())
        yield from (_line(run, outcome, len(tries)) for outcome in tries)


def _key(run: str, cell: Cell) -> dict[str, Any]:
    names = ("benchmark", "task", "arm", "extras", "model", "replicate")
    whose = {"run": getattr(cell, "run", run), "id": getattr(cell, "id", None)}
    return whose | {name: getattr(cell, name) for name in names}


def _line(run: str, outcome: Outcome, tries: int) -> CellLine:
    end, spend = outcome.end, outcome.spend
    return CellLine(
        **_key(run, outcome.cell),
        attempt=outcome.attempt,
        tries=tries,
        outcome_class=outcome.outcome_class,
        halt_limit=end.limit if isinstance(end, Halt) else None,
        void_cause=end.cause if isinstance(end, Void) else None,
        gate=end.gate if isinstance(end, Refused) else None,
        passed=outcome.passed,
        would_be=None if outcome.would_be is None else outcome.would_be.reading,
        tokens=spend.tokens,
        calls=spend.calls,
        wall_s=spend.wall_s,
        usd=_usd(spend.price),
        price=spend.price.kind,
        **(_recorded(outcome) if isinstance(outcome, CellOutcome) else {}),
    )


def _recorded(outcome: CellOutcome) -> dict[str, Any]:
    """What a record of ours says beyond what any harness does."""
    load = (outcome.room.get("load") or {}).get("start") or {}
    usage = outcome.spend.usage
    return {
        **{f"tokens_{item.name}": getattr(usage, item.name) for item in fields(usage)},
        "output_bytes": outcome.spend.output_bytes,
        "served_models": ", ".join(outcome.served_models) or None,
        "load_1m": None if load.get("load_1m") is None else float(load["load_1m"]),
        "cells_under_way": load.get("cells"),
        "exhibit": outcome.exhibit,
        "transcript": outcome.transcript,
    }


def _usd(price: Price) -> float | None:
    return price.usd if isinstance(price, ExactPrice | LowerBoundPrice) else None
