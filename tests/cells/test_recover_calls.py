"""What a try that was cut off had spent, where several calls were in flight at once."""

from __future__ import annotations

from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

from cells.recover import charge_past_tries, spend_of_transcript
from harness.clock import SystemClock
from harness.meter import Ledger
from harness.pricing import PriceList, RateTable, Tariff
from harness.transcript import Transcript
from harness.values import CellKey, LowerBoundPrice, Usage
from tests.cells.scoring_cases import outcome

CELL = CellKey(benchmark="b", task="t", arm="a", extras="none", model="m", replicate=1)


def used(tokens: int) -> dict[str, int | None]:
    """A known usage of so many tokens."""
    return asdict(replace(Usage.zero(), input=tokens))


def test_each_answer_is_of_its_own_request(tmp_path: Path) -> None:
    """The first failed with an unknown usage, the second was answered before it, and the third never was."""
    house = SimpleNamespace(clock=SystemClock(), rates=lambda _model: None)
    with Transcript(tmp_path / "t.jsonl") as transcript:
        for call, estimate in enumerate((1000, 2000, 4000)):
            transcript.add("request", call=call, estimate=estimate)
        transcript.add("completion", call=1, text="four", usage=used(7))
        transcript.add("call_failed", call=0, usage=asdict(Usage()))
    spend = spend_of_transcript(house, CELL, tmp_path / "t.jsonl")  # type: ignore[arg-type]
    assert (spend.calls, spend.charged_tokens, spend.output_bytes) == (3, 1000 + 7 + 4000, 4)
    assert spend.estimated


def test_a_resumed_run_is_charged_what_earlier_tries_were() -> None:
    """The upper figure that the budgets were charged, unrounded, and exactly: not the price, which is a lower bound."""
    price = LowerBoundPrice(usd=0.1, reason="unknown tokens")
    spend = replace(outcome(CELL, "VOID(fence)").spend, price=price, charged_usd=0.1)
    tries = [replace(outcome(CELL, "VOID(fence)", attempt=attempt), spend=spend) for attempt in (1, 2, 3)]
    house = SimpleNamespace(run_ledger=Ledger(), arm_ledgers={"a": Ledger()})
    charge_past_tries(house, SimpleNamespace(progress=SimpleNamespace(outcomes=lambda: tries)))  # type: ignore[arg-type]
    assert house.run_ledger.usd == house.arm_ledgers["a"].usd == Decimal("0.3")
    unpriced = replace(tries[0], spend=replace(spend, charged_usd=None))
    charge_past_tries(house, SimpleNamespace(progress=SimpleNamespace(outcomes=lambda: [unpriced])))  # type: ignore[arg-type]
    assert house.run_ledger.usd == Decimal("0.3")


def test_a_try_that_was_cut_off_is_priced_by_who_served(tmp_path: Path) -> None:
    """Each answered call by its model's rates; the one without an answer makes the price a bound, charged at most."""
    tariffs = {name: Tariff(base=RateTable.of(input=rate, output=rate)) for name, rate in (("m", 1), ("n", 2))}
    prices = PriceList(expected="m", tariffs=tariffs)
    house = SimpleNamespace(clock=SystemClock(), rates=lambda _model: prices)
    with Transcript(tmp_path / "t.jsonl") as transcript:
        for call in range(3):
            transcript.add("request", call=call, estimate=1000)
        for call, served in enumerate(("m", "n")):
            transcript.add("completion", call=call, text="", usage=used(100), served_model=served)
    spend = spend_of_transcript(house, CELL, tmp_path / "t.jsonl")  # type: ignore[arg-type]
    assert spend.price == LowerBoundPrice(usd=0.0003, reason="unknown tokens: input, output (1 of 3 calls)")
    assert spend.charged_usd == 0.0013
