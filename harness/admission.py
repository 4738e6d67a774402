"""
Who may call the model now. Several calls may be in flight at once, of one agent and of cells that share a budget, and
none knows what it will have used; so each holds a reservation of its upper estimate until it is charged.

A call that is alone is admitted as long as the limit isn't reached, however large its estimate: a budget's last call
may go over it. Beside others a call waits until all of them fit. So no budget is overshot by more than one call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from types import TracebackType
from typing import Literal, Protocol, Self

import anyio

from harness.money import ZERO, sum_of

__all__ = ["Admitting", "Bounds", "Ledger", "Place", "Scope", "ScopeName", "admit"]

ScopeName = Literal["cell", "arm", "run"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """The limits of one scope, each in its own unit; None does not bind."""

    tokens: int | None = None
    usd: Decimal | None = None
    calls: int | None = None
    wall: float | None = None
    output: int | None = None


class Admitting(Protocol):
    """What a place asks of its meter."""

    scopes: tuple[Scope, ...]

    def admits_call(self) -> bool:
        """Whether no limit is used up, and the seat goes on."""
        ...

    def next_call(self) -> int:
        """The number of a call that is admitted now."""
        ...


@dataclass(eq=False, kw_only=True, slots=True)
class Place:
    """
    One call's place, to be used by `async with`: entering it waits until it is `admitted`, and it holds `tokens` and
    `usd` reserved until it is left. `number` counts the calls of its meter from 0.

    A class, and no generator: a seat may be abandoned inside, and a generator that is left half-way can't be ended.
    """

    meter: Admitting
    tokens: int
    usd: Decimal
    number: int = -1
    admitted: anyio.Event = field(default_factory=anyio.Event)

    async def __aenter__(self) -> Self:
        for scope in self.meter.scopes:
            scope.ledger.waiting[self] = None
        admit(self.meter.scopes)
        try:
            await self.admitted.wait()
        except BaseException:
            self.leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def enter(self) -> None:
        """Reserve in every scope."""
        for scope in self.meter.scopes:
            scope.ledger.waiting.pop(self)
            scope.ledger.in_flight[self] = None
        self.number = self.meter.next_call()
        self.admitted.set()

    def leave(self) -> None:
        """Neither wait nor hold anything, and let others go."""
        for scope in self.meter.scopes:
            scope.ledger.waiting.pop(self, None)
            scope.ledger.in_flight.pop(self, None)
        admit(self.meter.scopes)


@dataclass(kw_only=True, slots=True)
class Ledger:
    """
    What a scope has spent so far, and the calls of it that wait and that are in flight, in the order they came.

    `wall` sums the time of seats that ended, and `running` holds the start of each that still runs, so that a limit on
    seconds binds while they do.
    """

    tokens: int = 0
    usd: Decimal = ZERO
    calls: int = 0
    output: int = 0
    wall_ended: float = 0.0
    running: dict[int, float] = field(default_factory=dict)
    waiting: dict[Place, None] = field(default_factory=dict)
    in_flight: dict[Place, None] = field(default_factory=dict)

    def wall(self, now: float) -> float:
        """Seconds of seats' time up to `now` on the monotonic clock."""
        return self.wall_ended + sum(now - start for start in self.running.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """A ledger, its bounds, and what it is called."""

    name: ScopeName
    bounds: Bounds
    ledger: Ledger

    def has_room(self, place: Place) -> bool:
        """Whether the call may be made beside those that are in flight."""
        ledger, bounds = self.ledger, self.bounds
        flying = ledger.in_flight
        if bounds.calls is not None and ledger.calls + len(flying) >= bounds.calls:
            return False
        if not flying:
            return True
        tokens = ledger.tokens + sum(other.tokens for other in flying) + place.tokens
        usd = sum_of((ledger.usd, place.usd, *(other.usd for other in flying)))
        return (bounds.tokens is None or tokens <= bounds.tokens) and (bounds.usd is None or usd <= bounds.usd)


def admit(scopes: Iterable[Scope]) -> None:
    """
    Admit whoever may go of all that wait in `scopes`, which are given from the narrowest to the widest.

    Nobody passes another in a scope that has no room for the other; one that waits for its own arm's budget keeps
    nobody of another arm. A seat whose limit is used up is stopped here, and waits for its cancellation.
    """
    line = {place: None for scope in reversed(tuple(scopes)) for place in scope.ledger.waiting}
    full: set[int] = set()
    for place in line:
        if not place.meter.admits_call():
            continue
        without_room = {id(scope.ledger) for scope in place.meter.scopes if not scope.has_room(place)}
        if without_room:
            full |= without_room
        elif not any(id(scope.ledger) in full for scope in place.meter.scopes):
            place.enter()
