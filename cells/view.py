"""
What a person sees while a run goes on: a live table on a terminal, plain lines elsewhere.

A view is a fold of the record's entries: it knows nothing that the record doesn't say.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from cells.figures import duration, printable
from cells.plan import Progress, declared, remaining
from cells.stopping import stop_line
from harness.clock import Clock, SystemClock
from harness.money import dollars, in_figures, sum_of
from harness.outcome import CellOutcome, outcome_from_json
from harness.registration import Registration
from harness.values import ExactPrice, Void

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

__all__ = [
    "LiveWatcher",
    "PlainWatcher",
    "QuietWatcher",
    "Tally",
    "budget_lines",
    "outcome_line",
    "status_lines",
    "status_table",
    "tally",
    "watching",
]

_log = structlog.get_logger("proctor.run")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """Where a run stands. `left_s` is None until a cell of this session has ended."""

    total: int
    done: int
    running: int
    classes: dict[str, int]
    void_tries: int
    tokens: int
    tokens_estimated: bool
    usd: float | None
    calls: int
    left_s: float | None = None


def tally(registration: Registration, progress: Progress, *, left_s: float | None = None) -> Tally:
    """Count what a record says of a registration's cells. `usd` is None unless every try has an exact price."""
    outcomes = progress.outcomes()
    cells = declared(registration, progress).cells
    final = [outcome for cell in cells if (outcome := progress.final(cell)) is not None]
    prices = [outcome.spend.price for outcome in outcomes]
    exact = [dollars(price.usd) for price in prices if isinstance(price, ExactPrice)]
    return Tally(
        total=len(cells),
        done=len(final),
        running=len(progress.started),
        classes=dict(sorted(Counter(outcome.outcome_class for outcome in final).items())),
        void_tries=sum(isinstance(outcome.end, Void) for outcome in outcomes),
        tokens=sum(outcome.spend.charged_tokens for outcome in outcomes),
        tokens_estimated=any(outcome.spend.estimated for outcome in outcomes),
        usd=in_figures(sum_of(exact)) if prices and len(exact) == len(prices) else None,
        calls=sum(outcome.spend.calls for outcome in outcomes),
        left_s=left_s,
    )


def budget_lines(registration: Registration, now: Tally) -> list[str]:
    """Spend against the run's budget, a line for each limit that is set; then what has none."""
    budget = registration.experiment["budgets"]["run"]
    spent = {"tokens": now.tokens, "usd": now.usd, "calls": now.calls}
    lines = []
    for name, value in spent.items():
        bound = budget[name]
        shown = "unknown" if value is None else f"{value:,.4f}" if name == "usd" else f"{value:,}"
        mark = " (estimated)" if name == "tokens" and now.tokens_estimated else ""
        if value is not None or bound is not None:
            lines.append(f"{name} {shown}{mark}" + ("" if bound is None else f" of {bound:,}"))
    return lines


class QuietWatcher:
    """Sees everything, shows nothing, and writes the log."""

    def __init__(self, registration: Registration, *, clock: Clock | None = None) -> None:
        self.registration = registration
        self.progress = Progress()
        self._clock = clock or SystemClock()
        self._start: float | None = None
        self._ended = 0

    def saw(self, kind: str, body: Any, progress: Progress) -> None:
        """An entry is on the disk."""
        self.progress = progress
        if kind == "cell.started" and self._start is None:
            self._start = self._clock.monotonic()
        if kind == "cell.ended":
            self._ended += 1
            self.ended(outcome_from_json(body))
        _log.info(kind, **_brief(kind, body))

    def note(self, text: str) -> None:
        """Something worth a line."""
        _log.info("note", text=text)

    def ended(self, outcome: CellOutcome) -> None:
        """A try has its outcome."""

    def now(self) -> Tally:
        """Where the run stands, with the time left by the pace of this session."""
        left = None
        if self._start is not None and self._ended:
            rest = len(remaining(self.registration, self.progress))
            left = (self._clock.monotonic() - self._start) / self._ended * rest
        return tally(self.registration, self.progress, left_s=left)


def _brief(kind: str, body: Any) -> dict[str, Any]:
    """What the log keeps of an entry: the record has all of it."""
    if kind in {"cell.started", "cell.ended"}:
        end = body.get("end", {})
        detail = {"detail": end["detail"]} if "detail" in end else {}
        return {"cell": body["cell"], "attempt": body["attempt"], "end": end.get("kind"), **detail}
    return {"how": body["how"]} if kind == "session.closed" else {}


class PlainWatcher(QuietWatcher):
    """A line on standard error for each thing that happens."""

    def note(self, text: str) -> None:
        """Print a line."""
        super().note(text)
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()

    def ended(self, outcome: CellOutcome) -> None:
        """Print what became of a try, and where the run stands."""
        self.note(outcome_line(outcome, self.now()))


def outcome_line(outcome: CellOutcome, now: Tally) -> str:
    """One try in a line: progress, cell, class, cost, time left."""
    end = outcome.end
    why = f" ({end.detail})" if isinstance(end, Void) else ""
    spend = outcome.spend
    return (
        f"[{now.done}/{now.total}] {outcome.cell}: {outcome.outcome_class}{why}, {spend.calls} calls, "
        f"{spend.charged_tokens} tokens, {spend.wall_s:.1f} s; left: {duration(now.left_s)}"
    )


class LiveWatcher(QuietWatcher):
    """A table on a terminal that is redrawn as things happen; notes scroll by above it."""

    def __init__(self, registration: Registration, console: Console, *, clock: Clock | None = None) -> None:
        super().__init__(registration, clock=clock)
        self._console = console

    def note(self, text: str) -> None:
        """Print a line above the table."""
        super().note(text)
        self._console.print(printable(text), highlight=False, markup=False)

    def ended(self, outcome: CellOutcome) -> None:
        """Print what became of a try above the table."""
        self._console.print(printable(outcome_line(outcome, self.now())), highlight=False, markup=False)

    def __rich__(self) -> RenderableType:
        """The table."""
        return status_table(self.registration, self.now(), [str(cell) for cell in self.progress.started])


def status_table(registration: Registration, now: Tally, running: list[str]) -> RenderableType:
    """Where a run stands, as a small table."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_row("run", Text(registration.id))
    classes = ", ".join(f"{name} {count}" for name, count in now.classes.items()) or "none yet"
    table.add_row(
        "cells", Text(f"{now.done} of {now.total} done, {now.running} running; tries that were VOID: {now.void_tries}")
    )
    table.add_row("classes", Text(classes))
    table.add_row("spend", Text("; ".join(budget_lines(registration, now))))
    table.add_row("left", Text(duration(now.left_s)))
    for cell in running[:4]:
        table.add_row("running", Text(cell))
    return table


def status_lines(
    registration: Registration, progress: Progress, now: Tally, *, running: bool, head: str | None
) -> Iterator[str]:
    """Where a run stands, as plain lines."""
    state = "running" if running else "finished" if now.done == now.total else "not running, incomplete"
    if progress.stopped is not None and now.done < now.total:
        state = f"{'running its last cells, ' if running else ''}{stop_line(progress.stopped)}"
    yield f"run {registration.id}: {state}"
    yield f"  cells: {now.done} of {now.total} done, {now.running if running else 0} running"
    yield "  classes: " + (", ".join(f"{name} {count}" for name, count in now.classes.items()) or "none yet")
    yield f"  tries that were VOID: {now.void_tries}"
    yield f"  spend: {'; '.join(budget_lines(registration, now))}"
    yield f"  sessions: {progress.sessions}"
    yield f"  head: {head or 'none: nothing is recorded yet'}"
    if not running and progress.started:
        yield f"  {len(progress.started)} tries were cut off; they are recorded and run again by the next `proctor run`"


@contextmanager
def watching(registration: Registration, *, quiet: bool = False) -> Iterator[QuietWatcher]:
    """The view that fits where standard error goes."""
    if quiet:
        yield QuietWatcher(registration)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    if not console.is_terminal:
        yield PlainWatcher(registration)
        return
    watcher = LiveWatcher(registration, console)
    with Live(watcher, console=console, refresh_per_second=4, transient=True):
        yield watcher
