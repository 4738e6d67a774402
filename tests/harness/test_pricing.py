"""Prices of calls and of their sums: exact, lower bound or void, by served model and tier, without drift."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import SystemClock
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.money import checked_rate, dollars, sum_of, to_cents
from harness.pricing import NO_RATES, CallPrice, PriceList, PriceSum, RateTable, Rounding, Tariff, Tier
from harness.values import ExactPrice, LowerBoundPrice, Usage, VoidPrice

SHORT = RateTable.of(input=3, cache_write_5m=3.75, cache_write_1h=6, cache_read=0.3, output=15)
LONG = RateTable.of(input=6, cache_write_5m=7.5, cache_write_1h=12, cache_read=0.6, output=22.5)
TIERED = Tariff(base=SHORT, tiers=(Tier(above=200_000, rates=LONG),))
"""Invented rates."""

CARD = PriceList(expected="big", tariffs={"big": TIERED, "small": Tariff(base=RateTable.of(input=1, output=2))})

tokens = st.integers(min_value=0, max_value=10**7)
usages = st.builds(Usage, **{item.name: tokens for item in fields(Usage)})
rates = st.decimals(min_value=0, max_value=1000, places=6)
tables = st.builds(RateTable, **{item.name: rates for item in fields(RateTable)})


def used(**tokens: int | None) -> Usage:
    """A known usage: what is not named is 0."""
    return replace(Usage.zero(), **tokens)


def meter(prices: PriceList | None, bounds: Bounds | None = None) -> Meter:
    """A meter with one scope."""
    scope = Scope(name="cell", bounds=bounds or Bounds(), ledger=Ledger())
    return Meter([scope], clock=SystemClock(), rates=prices)


def test_each_direction_has_its_own_rate() -> None:
    """A million tokens of each cost the five rates together."""
    million = Usage(**{item.name: 10**6 for item in fields(Usage)})
    assert Tariff(base=SHORT).price(million) == CallPrice(usd=Decimal("28.05"))


def test_the_prompt_picks_the_tier_of_the_whole_call() -> None:
    """Exactly at the bound is below it; one token more, fresh or cached, and all of the call is dearer, its output too."""
    at = used(input=150_000, cache_read=50_000, output=1000)
    assert TIERED.price(at).usd == Decimal("0.480")
    for name in ("input", "cache_read", "cache_write_5m", "cache_write_1h"):
        above = replace(at, **{name: getattr(at, name) + 1})
        assert TIERED.price(above).usd == LONG.known(above)
    assert TIERED.price(replace(at, output=10**6)).usd == SHORT.known(replace(at, output=10**6))


def test_two_short_calls_are_not_one_long_one() -> None:
    """Prices are of calls and not of a total."""
    both = meter(CARD)
    for _ in range(2):
        both.charge_call(used(input=150_000), estimate=0, output_bytes=0, served="big")
    assert both.spend().price == ExactPrice(usd=0.9)
    assert TIERED.price(both.spend().usage).usd == Decimal("1.8")


def test_three_tiers() -> None:
    """The longest tier that the prompt is above counts."""
    flat = [RateTable.of(input=rate, output=0) for rate in (1, 2, 3)]
    tariff = Tariff(base=flat[0], tiers=(Tier(above=10, rates=flat[1]), Tier(above=20, rates=flat[2])))
    prices = [tariff.price(used(input=n)).usd for n in (10, 11, 20, 21)]
    assert prices == [Decimal(n) / 10**6 for n in (10, 22, 40, 63)]


def test_an_unknown_prompt_may_be_in_any_longer_tier() -> None:
    """The cheapest tier that is possible bounds the price from below, and the message says what is missing."""
    unknown = used(input=200_001, output=100, cache_read=None)
    assert TIERED.price(unknown) == CallPrice(usd=LONG.known(unknown), why="unknown tokens: cache_read")
    less = used(input=100, output=100, cache_read=None)
    assert TIERED.price(less) == CallPrice(usd=SHORT.known(less), why="unknown tokens: cache_read")
    free = Tariff(
        base=replace(SHORT, cache_read=Decimal(0)), tiers=(Tier(above=9, rates=replace(LONG, cache_read=Decimal(0))),)
    )
    price = free.price(used(input=5, output=5, cache_read=None))
    assert price.usd == SHORT.known(used(input=5, output=5))
    assert "length of the prompt" in price.why


def test_only_directions_that_cost_something_make_a_price_inexact() -> None:
    """What is free need not be known; of what is not, a part is a lower bound and nothing is void."""
    table = Tariff(base=RateTable.of(input=3, output=15))
    assert table.price(Usage(input=10**6, output=10**6)) == CallPrice(usd=Decimal(18))
    assert table.price(Usage(input=10**6)) == CallPrice(usd=Decimal(3), why="unknown tokens: output")
    assert table.price(Usage()) == CallPrice(usd=None, why="unknown tokens: input, output")
    assert table.price(Usage(input=0)) == CallPrice(usd=None, why="unknown tokens: output")
    assert Tariff(base=RateTable.of(input=0, output=0)).price(Usage()) == CallPrice(usd=Decimal(0))


def test_each_served_model_has_its_own_rates() -> None:
    """A stranger that is in the card is priced by its own rates, and one that isn't has no price."""
    call = used(input=10**5, output=10**5)
    assert CARD.price(call, "small").usd == Decimal("0.3")
    assert CARD.price(call, "big").usd == CARD.price(call).usd == Decimal("1.8")
    assert CARD.price(call, "other") == CallPrice(usd=None, why="no rates for 'other'")
    assert CARD.price(call, "Big").usd is None
    assert CARD.price(Usage.zero(), "other").usd == 0


def test_a_try_with_a_stranger_is_a_lower_bound() -> None:
    """The known part stands, with how many calls are missing; with strangers alone there is no figure."""
    some = meter(CARD)
    some.charge_call(used(input=10**6), estimate=0, output_bytes=0, served="small")
    some.charge_call(used(input=10**6), estimate=0, output_bytes=0, served="other")
    assert some.spend().price == LowerBoundPrice(usd=1.0, reason="no rates for 'other' (1 of 2 calls)")
    none = meter(CARD)
    none.charge_call(used(input=10**6), estimate=0, output_bytes=0, served="other")
    assert none.spend().price == VoidPrice(reason="no rates for 'other' (1 of 1 calls)")


def test_a_void_has_no_figure() -> None:
    """Not even 0.00: without rates, and where nothing is known beside what cost nothing."""
    assert meter(None).spend().price == VoidPrice(reason=NO_RATES)
    assert not hasattr(VoidPrice(reason="x"), "usd")
    refused = meter(CARD)
    refused.charge_call(Usage.zero(), estimate=9, output_bytes=0)
    assert refused.spend().price == ExactPrice(usd=0.0)
    refused.charge_call(Usage(), estimate=9, output_bytes=0)
    assert isinstance(refused.spend().price, VoidPrice)
    assert meter(CARD).spend().price == ExactPrice(usd=0.0)


def test_budgets_are_charged_the_dearest_tier() -> None:
    """What is reserved before a call, and charged for one that is not exact, is at the dearest rate there is for it."""
    assert CARD.upper(Usage(), 10**6) == Decimal("22.5")
    assert CARD.upper(Usage(), 10**6, "small") == Decimal(2)
    assert CARD.upper(used(input=10), 10**6, "other") == Decimal("0.000225")
    assert CARD.upper(used(input=10), 10**6) == Decimal("0.00003")
    held = meter(CARD).call(10**6)
    assert held.usd == Decimal("22.5")
    charged = meter(CARD, Bounds(usd=Decimal(22)))
    charged.charge_call(Usage(input=5), estimate=10**6, output_bytes=0)
    assert charged.halted is not None
    assert (charged.halted.limit, charged.halted.spent) == ("usd", 22.5)
    assert charged.spend().charged_usd == 22.5
    assert charged.spend().price == LowerBoundPrice(
        usd=0.000015, reason="unknown tokens: cache_read, cache_write_1h, cache_write_5m, output (1 of 1 calls)"
    )


def test_a_budget_in_dollars_is_reached_exactly() -> None:
    """Three times ten cents are thirty, and no halt: in floats they would be more."""
    prices = PriceList.flat("m", RateTable.of(input=0.1, output=0))
    dime = meter(prices, Bounds(usd=dollars(0.3)))
    for _ in range(3):
        assert dime.halted is None
        dime.charge_call(used(input=10**6), estimate=0, output_bytes=0)
    assert dime.halted is None
    assert not dime.admits_call()


def test_a_hundred_thousand_small_calls_do_not_drift() -> None:
    """A ten-millionth of a dollar a hundred thousand times is a cent, to the last digit, which a sum of floats is not."""
    total = PriceSum()
    call = PriceList.flat("m", RateTable.of(input=0.1, output=0)).price(used(input=1))
    for _ in range(100_000):
        total.add(call)
    assert sum([1e-7] * 100_000) != 0.01
    assert total.usd == Decimal("0.01")
    assert total.price() == ExactPrice(usd=0.01)
    assert total.price("cents") == ExactPrice(usd=0.01)


@pytest.mark.parametrize(
    ("amount", "cents", "down"),
    [("0.005", "0.00", "0.00"), ("0.015", "0.02", "0.01"), ("0.025", "0.02", "0.02"), ("1.0151", "1.02", "1.01")],
)
def test_cents(amount: str, cents: str, down: str) -> None:
    """A half goes to the even cent; a lower bound is cut, or it would be none."""
    assert to_cents(Decimal(amount)) == Decimal(cents)
    assert to_cents(Decimal(amount), down=True) == Decimal(down)


@pytest.mark.parametrize(("rounding", "exact", "bound"), [("raw", 0.03, 0.018), ("cents", 0.03, 0.01)])
def test_a_try_is_rounded_once(rounding: Rounding, exact: float, bound: float) -> None:
    """Two calls of a cent and a half are three cents and not four, and the budgets are charged what is not rounded."""
    prices = PriceList.flat("m", RateTable.of(input=1.5, output=0), rounding=rounding)
    tried = meter(prices)
    for _ in range(2):
        tried.charge_call(used(input=10_000), estimate=0, output_bytes=0)
    assert tried.spend().price == ExactPrice(usd=exact)
    lower = meter(prices)
    lower.charge_call(used(input=12_000), estimate=0, output_bytes=0)
    lower.charge_call(used(input=5), estimate=1000, output_bytes=0, served="other")
    price = lower.spend().price
    assert isinstance(price, LowerBoundPrice)
    assert price.usd == bound
    assert lower.spend().charged_usd == 0.0180075


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf"), 1e10, Decimal("1e-13"), Decimal("NaN")])
def test_rates_that_are_none(rate: float | Decimal) -> None:
    """Negative, no number, or beyond what adds up exactly."""
    with pytest.raises(ValueError, match="a rate of"):
        checked_rate(rate)
    assert checked_rate(1e9) == 10**9
    assert checked_rate(1e-12) == Decimal("1e-12")


@given(st.lists(usages, min_size=1, max_size=20), tables)
def test_without_tiers_the_calls_add_up_to_the_cell(calls: list[Usage], table: RateTable) -> None:
    """Priced one by one or all at once, the same figure, to the last digit."""
    tariff = Tariff(base=table)
    one_by_one = sum_of(price.usd for call in calls if (price := tariff.price(call)).usd is not None)
    together = Usage.zero()
    for call in calls:
        together += call
    assert one_by_one == tariff.price(together).usd


@given(usages, st.sampled_from([item.name for item in fields(Usage)]), tokens)
def test_more_tokens_never_cost_less(usage: Usage, direction: str, more: int) -> None:
    """Where the rates of longer prompts are not lower."""
    longer = replace(usage, **{direction: getattr(usage, direction) + more})
    before, after = TIERED.price(usage).usd, TIERED.price(longer).usd
    assert before is not None
    assert after is not None
    assert before <= after


@given(usages, st.sets(st.sampled_from([item.name for item in fields(Usage)])))
def test_what_is_unknown_never_makes_a_price_higher(usage: Usage, hidden: set[str]) -> None:
    """A lower bound is one, and what budgets are charged is at least the truth."""
    told = replace(usage, **dict.fromkeys(hidden))
    truth, price = TIERED.price(usage).usd, TIERED.price(told)
    assert truth is not None
    assert price.usd is None or price.usd <= truth
    assert price.why or price.usd == truth
    assert CARD.upper(told, usage.total or 0) >= truth


@given(st.decimals(min_value=0, max_value=10**6, places=8))
def test_rounding_moves_by_half_a_cent_at_most(amount: Decimal) -> None:
    """And a lower bound never up."""
    assert abs(to_cents(amount) - amount) <= Decimal("0.005")
    assert Decimal(0) <= amount - to_cents(amount, down=True) < Decimal("0.01")
