"""A run priced by a card, and again by another: nothing of the run changes, and what can't be told is not told."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from cells.cell import transcript_path
from cells.cli import app
from cells.freeze import Frozen, freeze, reopen
from cells.parts import SourceOrigin
from cells.reprice import reprice, reprice_run
from cells.run import run
from harness.clock import SystemClock
from harness.errors import DriftError, ExperimentError, IntegrityError, RateCardError, UsageError
from harness.experiment import load_experiment
from harness.pricing import PriceList, RateTable, Tariff, Tier
from harness.rate_cards import RateCard, read_rate_card
from harness.values import ExactPrice, LowerBoundPrice, Price, Usage, VoidPrice
from tests.cells.houses import Quiet, fake_backend, fakes, outcomes, write_experiment
from tests.cells.scoring_cases import key, outcome


def card(model: str = "script", *, rate: float = 1.0, tier: str = "", date: str = "2026-09-15") -> str:
    """A card of one model with the same rate in every direction."""
    rates = "".join(
        f"{name} = {rate}\n" for name in ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output")
    )
    head = f'schema = "proctor-rates/1"\ndate = {date}\ncurrency = "usd"\nsource = "invented"\n'
    return f'{head}[models."{model}"]\n{rates}' + (f'[[models."{model}".tiers]]\n{tier}\n{rates}' if tier else "")


def read(text: str) -> RateCard:
    """A card of a text."""
    return read_rate_card(text.encode(), "card")


def priced(folder: Path, *, text: str = "", play: bool = True, **changes: Any) -> Path:
    """An experiment on fakes whose model is priced by a card, frozen and played to its end; its run folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rates.toml").write_text(text or card(), "utf-8")
    options = '[models.options]\nreplies = ["```python\\nx = 1\\n```"]'
    path = write_experiment(folder, model=f'rate_card = "rates.toml"\n{options}', **changes)

    async def work() -> Path:
        frozen = await freeze(path, folder / "runs", clock=SystemClock())
        if play:
            await run(frozen.folder, watcher=Quiet())
        return frozen.folder

    with pytest.MonkeyPatch.context() as patch, fakes(patch, fake_backend(folder)):
        return anyio.run(work)


def opened(folder: Path) -> Frozen:
    """A run looked at again."""
    with pytest.MonkeyPatch.context() as patch, fakes(patch, fake_backend(folder)):
        return anyio.run(lambda: reopen(folder, clock=SystemClock()))


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """One run, for the tests that do not touch it."""
    return priced(tmp_path_factory.mktemp("once"))


@pytest.fixture
def played(once, tmp_path):
    """A copy of its run folder."""
    return Path(shutil.copytree(once, tmp_path / once.name))


def exact(price: Price) -> float:
    """The figure of an exact price."""
    assert isinstance(price, ExactPrice)
    return price.usd


def test_a_run_is_priced_by_its_card_and_again_by_another(played):
    """At a dollar a million tokens a try costs its tokens; at two, twice that; the run folder stays what it was."""
    for found in outcomes(played):
        assert found.spend.usage.total
        assert exact(found.spend.price) == pytest.approx(found.spend.usage.total / 1e6, abs=0)
        assert found.spend.charged_usd == exact(found.spend.price)
    before = {path: path.read_bytes() for path in played.rglob("*") if path.is_file()}
    again = reprice_run(played, read(card(rate=2.0)))
    assert [exact(row.now) for row in again.tries] == [2 * exact(row.recorded) for row in again.tries]
    assert {row.by for row in again.tries} == {"calls"}
    assert set(again.totals) == {("B", "ARM"), ("P", "ARM")}
    for recorded, now in again.totals.values():
        assert (now.usd, now.exact, now.void) == (pytest.approx(2 * recorded.usd), 3, 0)
    assert before == {path: path.read_bytes() for path in played.rglob("*") if path.is_file()}


def test_the_card_is_pinned(tmp_path):
    """Its bytes are in the run's blobs and its digest and date in the registration; another day's prices are drift."""
    folder = priced(tmp_path, play=False)
    found = opened(folder)
    pin = found.registration.pins["rate card rates.toml"]
    assert pin == {"sha256": read(card()).digest, "date": "2026-09-15"}
    assert found.parts.cards["rates.toml"].content == card().encode()
    (tmp_path / "rates.toml").write_text(card(rate=3.0), "utf-8")
    with pytest.raises(DriftError, match=r"rate card rates\.toml: frozen as sha256"):
        opened(folder)
    (tmp_path / "experiment.toml").unlink()
    assert opened(folder).parts.cards["rates.toml"].digest == pin["sha256"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (card("other"), "model 'm' is served as 'script', and rates.toml has no rates for it: unknown model 'script'"),
        (card(date="2999-01-01"), "is dated 2999-01-01, and today is"),
        (card().replace("output", "outputs"), "outputs: unknown key 'outputs'. Did you mean 'output'"),
    ],
)
def test_a_card_that_can_not_price_is_refused_at_freeze(tmp_path, text, message):
    """Before anything is played: the model as it is served must be in it, and its day be past."""
    with pytest.raises(RateCardError, match=message):
        priced(tmp_path, text=text, play=False)
    assert not list((tmp_path / "runs").glob("*"))


def test_rates_and_a_card_are_one_too_many(tmp_path):
    """And a card that is not there is said."""
    rates = 'rates = { input = 1.0, output = 1.0 }\nrate_card = "rates.toml"'
    with pytest.raises(ExperimentError, match="give either `rates` or `rate_card`"):
        load_experiment(write_experiment(tmp_path, model=rates))
    with pytest.raises(RateCardError, match=r"rates\.toml can't be read: No such file"):
        SourceOrigin(tmp_path).rate_card("rates.toml")


def test_prices_in_cents(tmp_path):
    """The record has whole cents where the experiment says so, and a new price is rounded alike."""
    folder = priced(tmp_path, text=card(rate=1000.0), more='cost = { rounding = "cents" }')
    for found in outcomes(folder):
        assert exact(found.spend.price) == round(found.spend.usage.total / 1000, 2)
        assert found.spend.charged_usd == found.spend.usage.total / 1000
    again = reprice_run(folder, read(card(rate=1000.0)))
    assert [row.now for row in again.tries] == [row.recorded for row in again.tries]


def test_a_transcript_that_is_gone_or_changed(played):
    """Without it the totals are priced; a changed one is refused."""
    first, second, *_rest = outcomes(played)
    path = transcript_path(played, first.cell, first.attempt)
    path.unlink()
    again = reprice_run(played, read(card(rate=2.0)))
    assert [row.by for row in again.tries] == ["totals", *["calls"] * 5]
    assert exact(again.tries[0].now) == 2 * exact(again.tries[0].recorded)
    path = transcript_path(played, second.cell, second.attempt)
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(IntegrityError, match="is not the transcript of the record"):
        reprice_run(played, read(card()))


def totals(prices: PriceList, **changes: Any) -> Price:
    """A try of two calls and 100 tokens of input of which nothing but the totals is left."""
    recorded = outcome(key(1, "A"), "PASS")
    served = changes.pop("served_models", ("m",))
    return reprice(prices, replace(recorded, served_models=served, spend=replace(recorded.spend, **changes)), None)


def test_totals_can_not_tell_tiers():
    """Exact where every call was too short for any tier or there was one call; else by the cheapest rates, a bound."""
    low, high = RateTable.of(input=1, output=1), RateTable.of(input=2, output=0.5)

    def prices(above: int) -> PriceList:
        return PriceList(expected="m", tariffs={"m": Tariff(base=low, tiers=(Tier(above=above, rates=high),))})

    assert totals(prices(100)) == ExactPrice(usd=0.0001)
    assert totals(prices(99), calls=1) == ExactPrice(usd=0.0002)
    found = totals(prices(99))
    assert found == LowerBoundPrice(usd=0.0001, reason=found.reason)
    assert "totals do not tell which call was in which tier (1 of 1 calls)" in found.reason
    both = replace(Usage.zero(), input=100, output=100)
    assert totals(prices(99), usage=both).usd == 0.00015
    assert isinstance(totals(prices(99), usage=Usage()), VoidPrice)
    assert totals(prices(99), calls=0) == ExactPrice(usd=0.0)


def test_totals_of_several_models():
    """Whose call was whose is not known: by the cheapest rates of all, and void if one has none."""
    tariffs = {name: Tariff(base=RateTable.of(input=rate, output=1)) for name, rate in (("m", 1), ("n", 3))}
    prices = PriceList(expected="m", tariffs=tariffs)
    found = totals(prices, served_models=("m", "n"))
    assert found == LowerBoundPrice(usd=0.0001, reason=found.reason)
    assert totals(prices, served_models=("n",)) == ExactPrice(usd=0.0003)
    assert isinstance(totals(prices, served_models=("m", "other")), VoidPrice)
    assert isinstance(totals(prices, served_models=("other",)), VoidPrice)


def test_the_command_prints_both_side_by_side(played):
    """A line a try and a line an arm, and the same in the JSON."""
    newer = played.parent / "newer.toml"
    newer.write_text(card(rate=2.0, date="2026-10-01"), "utf-8")
    ask = ["reprice", str(played), "--card", str(newer)]
    shown = CliRunner().invoke(app, ask, catch_exceptions=False).stdout
    assert "by the card of 2026-10-01, sha256" in shown
    assert "model m was frozen with rates.toml of 2026-09-15, sha256" in shown
    assert shown.count("(try 1, DECLARED, ARM): ") == 6
    assert "B, ARM: " in shown
    assert "(3 exact, 0 lower bounds, 0 void)" in shown
    told = json.loads(CliRunner().invoke(app, [*ask, "--json"], catch_exceptions=False).stdout)
    assert set(told) == {"run", "card", "recorded_by", "totals", "tries"}
    assert [row["now"]["usd"] for row in told["tries"]] == [2 * row["recorded"]["usd"] for row in told["tries"]]


def test_a_run_without_tries_is_refused(tmp_path):
    """There is nothing to price."""
    folder = priced(tmp_path, play=False)
    with pytest.raises(UsageError, match="has no try to price"):
        reprice_run(folder, read(card()))
