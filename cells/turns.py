"""Whose turn it is to judge: many at once, or one that needs the machine's judging to itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

__all__ = ["Turns"]


class Turns:
    """A turn is shared, or alone: who asks for one alone waits for those under way and holds up those to come."""

    def __init__(self) -> None:
        self._changed = anyio.Condition()
        self._sharing = 0
        self._claimed = False

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """A turn beside others."""
        async with self._changed:
            while self._claimed:
                await self._changed.wait()
            self._sharing += 1
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._changed:
                    self._sharing -= 1
                    self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """A turn beside nobody. Asking for it within a shared one would wait for ever."""
        async with self._changed:
            while self._claimed:
                await self._changed.wait()
            self._claimed = True
        try:
            async with self._changed:
                while self._sharing:
                    await self._changed.wait()
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._changed:
                    self._claimed = False
                    self._changed.notify_all()
