"""A round's prompt is held against its bound before it is sent, by the tokeniser where there is one."""

from __future__ import annotations

import pytest

from harness.errors import GateRefused
from harness.seats.oneshot import OneShotSeat
from tests.seats.desks import FakeModel

pytestmark = pytest.mark.anyio


class Counting(FakeModel):
    """A model with a tokeniser that counts as it is told, and notes what it was asked."""

    def __init__(self, size: int) -> None:
        super().__init__("")
        self.size = size
        self.counted: list[str] = []

    async def prompt_tokens(self, request) -> int:
        """The count that was given."""
        self.counted.append("|".join(message.role for message in request.messages))
        return self.size


async def test_the_tokeniser_decides_where_bytes_can_t(bench):
    """Its count is the prompt's: at the bound it is sent, over it nothing is. The system message is part of it."""
    model = Counting(100)
    seat = OneShotSeat(rounds=1, max_prompt_tokens=100, system="Be brief.")
    await seat.sit(bench(model).desk)
    assert (model.counted, len(model.requests)) == (["system|user"], 1)
    over = Counting(101)
    with pytest.raises(GateRefused, match="round 1: the prompt of arm 'plain' counts 101 tokens: expected 100 at most"):
        await seat.sit(bench(over).desk)
    assert over.requests == []


async def test_a_prompt_that_fits_by_its_bytes_needs_no_count(bench):
    """The tokeniser would say that it doesn't fit, and isn't asked; without a bound nobody is."""
    for most in (5_000, None):
        model = Counting(10_000)
        await OneShotSeat(rounds=1, max_prompt_tokens=most).sit(bench(model).desk)
        assert (model.counted, len(model.requests)) == ([], 1)


async def test_without_a_tokeniser_bytes_decide(bench):
    """A prompt whose bytes may be over the bound is refused, since nobody can say that it isn't."""
    model = FakeModel("")
    with pytest.raises(GateRefused, match="counts 292 tokens: expected 100 at most"):
        await OneShotSeat(rounds=1, max_prompt_tokens=100).sit(bench(model).desk)
    assert model.requests == []
