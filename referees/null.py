# ruff: noqa: ARG002 - the contract hands every referee more than this one needs
"""A referee that judges nothing: for measuring what the harness costs, and for scripted runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from harness.canonical import digest_json
from harness.clock import fresh_token
from harness.errors import ExperimentError
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, Verdict

__all__ = ["NullReferee"]


class NullReferee:
    """
    Says PASS to an exhibit that holds at least one byte and FAIL to any other, without opening a room.

    It runs nothing and compares nothing: its PASS says only that something was left. Never use it to score.
    """

    name = "null"
    classes: Mapping[str, Standing] = {"PASS": "accepted", "FAIL": "rejected"}

    def __init__(self, options: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        if given := {**(options or {}), **named}:
            raise ExperimentError(f"options of referee 'null': {', '.join(map(repr, given))}: it takes none")

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """One suite for every task: an exhibit is not empty."""
        rule = {"rule": "the exhibit is not empty"}
        return {**rule, "digest": digest_json(rule)}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The task's solution, or, where it has none, a file with something in it."""
        return sealed.solution if sealed.solution.size else Tree.of({"reference.txt": "reference\n"})

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """What it can tell from a pass: nothing at all, and a file without content."""
        return {"nothing": Tree(), "empty": Tree.of({"solution.py": ""})}

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """PASS or FAIL at once; `rooms` is never called."""
        reading = "PASS" if exhibit.tree.size else "FAIL"
        return Verdict(
            reading=reading,
            standing=self.classes[reading],
            evidence=Evidence(code=exhibit.digest, suite=self.suite(sealed)["digest"], execution=fresh_token()),
            detail="judged by the null referee: nothing was run",
            seconds=0.0,
        )

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """None: there is no public tier."""
        yield None
