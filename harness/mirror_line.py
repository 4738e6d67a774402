"""The line between an arm and those that mirror it, in one unit: the source publishes, the others wait and copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, TypeAlias

import anyio

from harness.errors import GateRefused, MirrorLost
from harness.ports import Arm
from harness.views import MirrorState

__all__ = ["LineEnd", "MirrorEnd", "MirrorLine"]

LineEnd: TypeAlias = Literal["over", "void", "refused"]
"""How the source's try ended: with an outcome, without one, or refused before it was through."""


class MirrorLine:
    """
    The states of one try of a source, one a round, and how that try ended. `arms` are all of the line: the source's
    and those that mirror it. `source` and `cell` name where the states come from.
    """

    def __init__(self, source: str, cell: str, arms: Iterable[Arm], states: Iterable[MirrorState] = ()) -> None:
        self.source = source
        self.cell = cell
        self.arms = tuple(arms)
        self._states = {state.round: state for state in states}
        self._over: LineEnd | None = None
        self._detail = ""
        self._changed = anyio.Event()

    @property
    def over(self) -> LineEnd | None:
        """How the source's try ended, None while it is under way."""
        return self._over

    def publish(self, state: MirrorState) -> None:
        """Give out the source's state before a round. Each round has one, for good."""
        if self._over is not None or self._states.setdefault(state.round, state) is not state:
            raise MirrorLost(f"{self.cell}: the state of round {state.round} was given out already")
        self._wake()

    def end(self, how: LineEnd, detail: str = "") -> None:
        """The source's try has its outcome, which is on the disk; the first word counts."""
        if self._over is None:
            self._over, self._detail = how, detail
            self._wake()

    async def state(self, number: int) -> MirrorState | None:
        """
        The source's state before round `number`, as soon as there is one; None where the source ended before it.

        Raises `MirrorLost` when its try ended VOID, `GateRefused` when it was refused.
        """
        while self._over is None and number not in self._states:
            await self._changed.wait()
        match self._over:
            case "void":
                raise MirrorLost(f"{self.cell}, which it mirrors, ended VOID: {self._detail}")
            case "refused":
                raise GateRefused("prompt", f"{self.cell}, which it mirrors, was refused: {self._detail}")
            case _:
                return self._states.get(number)

    @property
    def last(self) -> MirrorState | None:
        """The state that was published last."""
        return self._states[max(self._states)] if self._states else None

    async def ended(self) -> LineEnd:
        """How the source's try ended, as soon as it has."""
        while self._over is None:
            await self._changed.wait()
        return self._over

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@dataclass(frozen=True, kw_only=True, slots=True)
class MirrorEnd:
    """One seat's end of a line. What it waits there is `paused`: no time of its own."""

    line: MirrorLine
    paused: Callable[[], AbstractContextManager[None]] = nullcontext

    async def state(self, number: int) -> MirrorState | None:
        """The source's state before a round; see `MirrorLine`."""
        with self.paused():
            return await self.line.state(number)
