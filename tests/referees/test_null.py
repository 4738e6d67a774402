"""The null referee: it says yes and no, and opens nothing."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import pytest

from harness.errors import ExperimentError
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from referees.null import NullReferee

OPEN = OpenHalf(benchmark="own", name="one", instruction="do")
SEALED = SealedHalf(solution=Tree.of({"solution.py": "x = 1\n"}))


@asynccontextmanager
async def no_room() -> Any:
    """Nobody may come in."""
    raise AssertionError("the null referee opened a room")
    yield


@pytest.mark.anyio
async def test_something_is_a_pass_and_nothing_is_not() -> None:
    """An exhibit with content is PASS, an empty one FAIL, both at once."""
    referee = NullReferee()
    for tree, reading, standing in (
        (referee.reference(SEALED), "PASS", "accepted"),
        (referee.reference(SealedHalf()), "PASS", "accepted"),
        *((tree, "FAIL", "rejected") for tree in referee.battery(OPEN, SEALED).values()),
    ):
        verdict = await referee.judge(Exhibit(tree=tree), OPEN, SEALED, no_room)
        assert (reading, standing) == (verdict.reading, verdict.standing)
        assert verdict.evidence.code == tree.digest
        assert verdict.evidence.suite == referee.suite(SEALED)["digest"]
        assert "nothing was run" in verdict.detail


@pytest.mark.anyio
async def test_it_has_no_public_tier() -> None:
    """A seat that works in rounds gets no check."""
    async with NullReferee().public_check(OPEN, SEALED, no_room) as check:
        assert check is None


@pytest.mark.parametrize("make", [lambda: NullReferee({"strict": True}), lambda: NullReferee(strict=True)])
def test_it_takes_no_option(make: Any) -> None:
    """An option is refused by name."""
    with pytest.raises(ExperimentError, match="'strict': it takes none"):
        make()
