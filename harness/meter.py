"""
Meters and budgets: spend is charged when a call returns or fails, and a limit ends the seat by cancelling its scope.

A limit never raises into the seat, since an agent that catches every exception would swallow it and go on spending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal

from harness.admission import Bounds, Ledger, Place, Scope
from harness.clock import Clock
from harness.messages import Request
from harness.models.checks import prompt_ceiling
from harness.money import ZERO, in_figures, sum_of
from harness.outcome import Spend
from harness.pricing import NO_RATES, PriceList, PriceSum
from harness.values import Halt, Limit, Price, Usage, Void, VoidPrice

__all__ = ["Bounds", "Ledger", "Meter", "Scope", "upper_estimate"]


def upper_estimate(request: Request) -> int:
    """At most so many tokens can one call have used: those of the whole prompt, and the whole of `num_predict`."""
    return prompt_ceiling(request) + request.decoding.num_predict


class Meter:
    """
    The meter of one try of one cell, over the cell's, the arm's and the run's ledgers.

    As soon as a limit is reached or something of ours is to blame, the seat is stopped: what `attach` was given is
    called, which cancels it. The first of the two decides what the end is.

    Each call is priced by the rates of the model that served it, and the try's price is the sum, rounded once.
    """

    def __init__(self, scopes: Sequence[Scope], *, clock: Clock, rates: PriceList | None) -> None:
        self.scopes = tuple(scopes)
        self.halted: Halt | None = None
        self.blamed: Void | None = None
        self._clock = clock
        self._rates = rates
        self._stop: Callable[[], None] | None = None
        self._start: float | None = None
        self._wall = 0.0
        self._usage = Usage.zero()
        self._priced = PriceSum()
        self._dollars = ZERO
        self._charged = self._calls = self._admitted = self._output = 0
        self._estimated = False

    @property
    def stopped(self) -> bool:
        """Whether the seat is to end."""
        return self.halted is not None or self.blamed is not None

    @property
    def calls(self) -> int:
        """Calls that reached the model."""
        return self._calls

    def attach(self, stop: Callable[[], None]) -> None:
        """Say how the seat is cancelled; at once, if it is stopped already."""
        self._stop = stop
        if self.stopped:
            stop()

    def _cancel(self) -> None:
        if self._stop is not None:
            self._stop()

    def start(self) -> None:
        """The seat begins: its time counts from here."""
        self._start = self._clock.monotonic()
        for scope in self.scopes:
            scope.ledger.running[id(self)] = self._start

    def finish(self) -> None:
        """The seat has ended: its time is fixed, and a call that it was abandoned in holds nothing any more."""
        for place in [place for scope in self.scopes for place in (*scope.ledger.waiting, *scope.ledger.in_flight)]:
            if place.meter is self:
                place.leave()
        if self._start is None:
            return
        seconds = self._clock.monotonic() - self._start
        self._wall += seconds
        self._start = None
        for scope in self.scopes:
            scope.ledger.running.pop(id(self), None)
            scope.ledger.wall_ended += seconds

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The seat waits for another cell's: its own time stands still."""
        self.finish()
        try:
            yield
        finally:
            self.start()

    def admits_call(self) -> bool:
        """Whether another call may be made; if not, the seat is stopped by the limit that is used up."""
        for scope in self.scopes:
            spent, bounds = scope.ledger, scope.bounds
            self._hold(scope, "calls", spent.calls, bounds.calls, used_up=True)
            self._hold(scope, "tokens", spent.tokens, bounds.tokens, used_up=True)
            self._hold(scope, "usd", spent.usd, bounds.usd, used_up=True)
        return not self.stopped

    def call(self, estimate: int) -> Place:
        """
        A place for one call, which may use up to `estimate` tokens: an async context, in which the call is made and
        charged. Where a limit is used up, entering it never returns: by then the seat's scope is cancelled, and this is
        where the cancellation is delivered.
        """
        dollars = ZERO if self._rates is None else self._rates.upper(Usage(), estimate)
        return Place(meter=self, tokens=estimate, usd=dollars)

    def next_call(self) -> int:
        """The number of a call that is admitted now: they count from 0."""
        self._admitted += 1
        return self._admitted - 1

    def charge_call(self, usage: Usage, *, estimate: int, output_bytes: int, served: str | None = None) -> None:
        """
        One call returned or failed; `served` is the model that answered it, None if none did. Where its usage is
        unknown the token budget is charged `estimate`, an upper bound, and the price of the try is no longer exact.
        """
        known = usage.total
        tokens = estimate if known is None else known
        dollars = self._price_call(usage, estimate, served)
        self._usage += usage
        self._charged += tokens
        self._estimated |= known is None
        self._calls += 1
        self._output += output_bytes
        for scope in self.scopes:
            scope.ledger.calls += 1
            scope.ledger.tokens += tokens
            scope.ledger.usd = sum_of((scope.ledger.usd, dollars))
            scope.ledger.output += output_bytes
        self.check()

    def _price_call(self, usage: Usage, estimate: int, served: str | None) -> Decimal:
        """Price a call; return what the dollar budgets are charged for it."""
        if self._rates is None:
            return ZERO
        self._priced.add(self._rates.price(usage, served))
        dollars = self._rates.upper(usage, estimate, served)
        self._dollars = sum_of((self._dollars, dollars))
        return dollars

    def charge_output(self, n_bytes: int) -> None:
        """A tool showed the seat `n_bytes` bytes."""
        self._output += n_bytes
        for scope in self.scopes:
            scope.ledger.output += n_bytes
        self.check()

    def check(self) -> None:
        """Stop the seat if any limit is exceeded now; called after each charge, and from time to time for the wall."""
        now = self._clock.monotonic()
        for scope in self.scopes:
            spent, bounds = scope.ledger, scope.bounds
            self._hold(scope, "tokens", spent.tokens, bounds.tokens)
            self._hold(scope, "usd", spent.usd, bounds.usd)
            self._hold(scope, "output", spent.output, bounds.output)
            self._hold(scope, "wall", spent.wall(now), bounds.wall)

    def _hold(
        self,
        scope: Scope,
        limit: Limit,
        spent: Decimal | float,
        bound: Decimal | float | None,
        *,
        used_up: bool = False,
    ) -> None:
        if bound is None or spent < bound or (spent == bound and not used_up) or self.stopped:
            return
        self.halted = Halt(limit=limit, scope=scope.name, bound=float(bound), spent=float(spent))
        self._cancel()

    def blame(self, cause: str, detail: str) -> None:
        """Something of ours failed, at the boundary that calls this: the try is VOID, whatever the seat makes of it."""
        if not self.stopped:
            self.blamed = Void(cause=cause, detail=detail)
            self._cancel()

    def spend(self) -> Spend:
        """What the try has cost up to now."""
        wall = self._wall + (0.0 if self._start is None else self._clock.monotonic() - self._start)
        return Spend(
            usage=self._usage,
            charged_tokens=self._charged,
            estimated=self._estimated,
            calls=self._calls,
            output_bytes=self._output,
            wall_s=round(wall, 3),
            price=self._price(),
            charged_usd=None if self._rates is None else in_figures(self._dollars),
        )

    def _price(self) -> Price:
        if self._rates is None:
            return VoidPrice(reason=NO_RATES)
        return self._priced.price(self._rates.rounding)
