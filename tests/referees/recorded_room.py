"""Rooms that run nothing: each call answers with what was recorded of a real one, under the nonce that it was asked with."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from harness.walls import ExecResult

__all__ = ["RecordedRooms"]


class RecordedRooms:
    """A `RoomOpener`; the `answers` are given in their order, and the last one again. `orders` keeps what was asked."""

    def __init__(self, *answers: Mapping[str, Any], status: int = 0) -> None:
        self.answers = list(answers)
        self.status = status
        self.orders: list[dict[str, Any]] = []

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Any]:
        """The room is this object: it has no state of its own."""
        yield self

    async def exec(self, argv: Sequence[str], *, stdin: bytes = b"", **_: Any) -> ExecResult:
        """The next answer."""
        assert argv
        order = json.loads(stdin)
        self.orders.append(order)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        said = json.dumps({"nonce": order["nonce"], **answer}).encode()
        return ExecResult(stdout=said, stderr=b"", status=self.status, seconds=0.1)
