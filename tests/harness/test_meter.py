"""Meters: what is charged, when a limit stops a seat, and what a try cost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import SystemClock
from harness.messages import Decoding, Message, Request, ToolCall, ToolSpec
from harness.meter import Bounds, Ledger, Meter, Scope, upper_estimate
from harness.pricing import PriceList, RateTable
from harness.values import Halt, LowerBoundPrice, Usage, Void


class Hands(SystemClock):
    """A clock that a test turns."""

    def __init__(self) -> None:
        object.__setattr__(self, "seconds", 0.0)

    def monotonic(self) -> float:
        """What the test says."""
        return float(self.seconds)  # type: ignore[attr-defined]

    def turn(self, seconds: float) -> None:
        """Go forward."""
        object.__setattr__(self, "seconds", self.seconds + seconds)  # type: ignore[attr-defined]


def used(tokens: int) -> Usage:
    """A known usage of so many input tokens."""
    return Usage(input=tokens, output=0, cache_read=0, cache_write_5m=0, cache_write_1h=0)


def flat(**rates: float) -> PriceList:
    """The price list of one model by the same rates for every prompt."""
    return PriceList.flat("m", RateTable.of(**rates))


def meter(
    bounds: Bounds, *, rates: PriceList | None = None, clock: Hands | None = None, ledger: Ledger | None = None
) -> Meter:
    """A meter with one scope."""
    scope = Scope(name="cell", bounds=bounds, ledger=ledger or Ledger())
    return Meter([scope], clock=clock or Hands(), rates=rates)


def test_exactly_the_budget_is_no_halt_until_more_is_asked_for() -> None:
    """A seat that spends all it has and declares itself done was not stopped by anything."""
    tokens = meter(Bounds(tokens=100))
    tokens.charge_call(used(100), estimate=0, output_bytes=0)
    assert tokens.halted is None
    assert not tokens.admits_call()
    assert tokens.halted == Halt(limit="tokens", scope="cell", bound=100.0, spent=100.0)


def test_over_the_budget_halts_at_once() -> None:
    """The call that crosses it is the last."""
    stopped = []
    tokens = meter(Bounds(tokens=100))
    tokens.attach(lambda: stopped.append(True))
    tokens.charge_call(used(60), estimate=0, output_bytes=0)
    assert stopped == []
    tokens.charge_call(used(60), estimate=0, output_bytes=0)
    assert stopped == [True]
    assert tokens.halted == Halt(limit="tokens", scope="cell", bound=100.0, spent=120.0)


def test_calls_are_counted_before_they_are_made() -> None:
    """Two calls of two are admitted, the third is not."""
    calls = meter(Bounds(calls=2))
    for _ in range(2):
        assert calls.admits_call()
        calls.charge_call(used(1), estimate=0, output_bytes=0)
    assert not calls.admits_call()
    assert calls.halted == Halt(limit="calls", scope="cell", bound=2.0, spent=2.0)


def test_output_and_wall_halt_while_they_grow() -> None:
    """Bytes shown and seconds gone by stop a seat that calls nobody."""
    output = meter(Bounds(output=10))
    output.charge_output(11)
    assert output.halted == Halt(limit="output", scope="cell", bound=10.0, spent=11.0)
    clock = Hands()
    wall = meter(Bounds(wall=5.0), clock=clock)
    wall.start()
    clock.turn(5.0)
    wall.check()
    assert wall.halted is None
    clock.turn(0.5)
    wall.check()
    assert wall.halted == Halt(limit="wall", scope="cell", bound=5.0, spent=5.5)


def test_the_wall_of_a_shared_scope_counts_seats_that_still_run() -> None:
    """Two seats of three seconds each are six seconds of a run, before either has ended."""
    clock, ledger = Hands(), Ledger()
    first = meter(Bounds(wall=5.0), clock=clock, ledger=ledger)
    second = meter(Bounds(wall=5.0), clock=clock, ledger=ledger)
    first.start()
    second.start()
    clock.turn(3.0)
    second.check()
    assert second.halted == Halt(limit="wall", scope="cell", bound=5.0, spent=6.0)
    first.finish()
    second.finish()
    assert ledger.wall(clock.monotonic()) == 6.0


def test_unknown_usage_is_charged_by_its_estimate_and_stays_unknown() -> None:
    """Missing is not zero: the budget is charged an upper bound, the sum is unknown, and the price is a lower bound."""
    rates = flat(input=1.0, output=2.0)
    unknown = meter(Bounds(tokens=10_000), rates=rates)
    unknown.charge_call(used(1_000_000), estimate=5, output_bytes=0)
    unknown.charge_call(Usage(input=7), estimate=900, output_bytes=0)
    spend = unknown.spend()
    assert (spend.charged_tokens, spend.estimated, spend.usage.total) == (1_000_900, True, None)
    assert spend.usage.input == 1_000_007
    assert spend.price == LowerBoundPrice(usd=1.000007, reason="unknown tokens: output (1 of 2 calls)")


def test_a_broken_attempt_and_a_good_one_are_both_charged() -> None:
    """Attempt one breaks after 120 tokens and attempt two succeeds with 130: 250."""
    tokens = meter(Bounds())
    tokens.charge_call(used(120), estimate=0, output_bytes=0)
    tokens.charge_call(used(130), estimate=0, output_bytes=0)
    assert (tokens.spend().charged_tokens, tokens.spend().calls) == (250, 2)


def test_usd_budgets_use_the_dearest_direction_for_what_is_unknown() -> None:
    """An unknown usage can't slip under a budget in dollars."""
    dollars = meter(Bounds(usd=Decimal(1)), rates=flat(input=1.0, output=10.0))
    dollars.charge_call(Usage(), estimate=200_000, output_bytes=0)
    assert dollars.halted == Halt(limit="usd", scope="cell", bound=1.0, spent=2.0)


def test_the_first_of_blame_and_limit_decides() -> None:
    """A server that fails after the budget was used up does not undo the HALT, nor the other way round."""
    first_halt = meter(Bounds(tokens=1))
    first_halt.charge_call(used(5), estimate=0, output_bytes=0)
    first_halt.blame("model-server", "gone")
    assert first_halt.blamed is None
    first_blame = meter(Bounds(tokens=1))
    first_blame.blame("model-server", "gone")
    first_blame.charge_call(used(5), estimate=0, output_bytes=0)
    assert (first_blame.halted, first_blame.blamed) == (None, Void(cause="model-server", detail="gone"))


@given(texts=st.lists(st.text(max_size=50), min_size=1, max_size=4), predict=st.integers(1, 1000))
def test_the_upper_estimate_is_over_the_bytes_of_the_prompt(texts: list[str], predict: int) -> None:
    """No byte-level tokeniser makes more tokens than bytes."""
    messages = tuple(Message(role="user", content=text) for text in texts)
    request = Request(messages=messages, decoding=Decoding(num_predict=predict), seed=1)
    assert upper_estimate(request) >= sum(len(text.encode("utf-8", "replace")) for text in texts) + predict


counts = st.none() | st.integers(0, 10**9)
usages = st.builds(Usage, input=counts, output=counts, cache_read=counts, cache_write_5m=counts, cache_write_1h=counts)


@given(left=usages, right=usages)
def test_a_sum_with_an_unknown_is_unknown(left: Usage, right: Usage) -> None:
    """Field by field, and in the total."""
    both = left + right
    assert (both.output is None) == (left.output is None or right.output is None)
    totals = (left.total, right.total)
    assert both.total == (None if None in totals else sum(total for total in totals if total is not None))


def test_the_upper_estimate_counts_whatever_a_template_may_write() -> None:
    """Names, ids, results, arguments in escapes, and tools: a prompt is more than what its messages say."""
    plain = Request(messages=(Message(role="user", content="x"),), decoding=Decoding(num_predict=1), seed=1)
    call = ToolCall(id="i" * 100, name="n" * 200, arguments={"a": "\u00e9" * 300}, raw="r" * 10)
    said = Message(role="assistant", content="", tool_calls=(call,))
    result = Message(role="tool", content="c" * 400, tool_call_id="i" * 100, tool_name="n" * 200)
    tool = ToolSpec(name="t" * 500, description="d" * 600, parameters={"type": "p" * 700})
    whole = replace(plain, messages=(*plain.messages, said, result), tools=(tool,))
    assert upper_estimate(whole) - upper_estimate(plain) >= 100 + 200 + 6 * 300 + 400 + 100 + 200 + 500 + 600 + 700


@pytest.mark.parametrize("arguments", [{"a": b"x"}, {"a": float("nan")}, {"\ud800": "\ud800"}, {1: {2: 3}}, None])
def test_the_upper_estimate_exists_for_whatever_a_model_wrote(arguments: Any) -> None:
    """Nothing in a call can make it fail."""
    call = ToolCall(id="\ud800", name="\ud800", arguments=arguments, raw="\ud800")
    messages = (Message(role="assistant", content="\ud800", tool_calls=(call,)),)
    assert upper_estimate(Request(messages=messages, decoding=Decoding(num_predict=1), seed=1)) > 1


def test_time_spent_waiting_for_another_cell_is_not_the_seats() -> None:
    """While it is paused no wall limit runs; before and after it does, and the sum is what the try is said to take."""
    clock = Hands()
    scope = Scope(name="cell", bounds=Bounds(wall=5.0), ledger=Ledger())
    one = Meter([scope], clock=clock, rates=None)
    one.start()
    clock.turn(2.0)
    with one.paused():
        clock.turn(100.0)
        one.check()
    clock.turn(2.0)
    one.check()
    assert one.halted is None
    clock.turn(2.0)
    one.check()
    one.finish()
    assert one.halted == Halt(limit="wall", scope="cell", bound=5.0, spent=6.0)
    assert one.spend().wall_s == scope.ledger.wall_ended == 6.0
