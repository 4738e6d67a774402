"""Rate cards: what is read, and what is refused in which words."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from harness.clock import Clock
from harness.errors import RateCardError
from harness.rate_cards import RateCard, load_rate_card, read_rate_card
from harness.values import Usage
from tests.pages import ROOT

RATES = "input = 3\ncache_write_5m = 3.75\ncache_write_1h = 6\ncache_read = 0.3\noutput = 15\n"
CARD = f"""
schema = "proctor-rates/1"
date = 2026-09-15
currency = "usd"
source = "invented"
[models."big-1"]
{RATES}
[[models."big-1".tiers]]
above = 200_000
{RATES}
"""


class Day(Clock):
    """A clock that stands at noon of a day."""

    def __init__(self, day: str) -> None:
        self._day = day

    def now(self) -> datetime:
        """Noon."""
        return datetime.fromisoformat(f"{self._day}T12:00:00").replace(tzinfo=UTC)


def read(text: str) -> RateCard:
    """A card of a text."""
    return read_rate_card(text.encode(), "rates.toml")


def test_a_card_is_read_to_the_last_digit() -> None:
    """Rates are decimals as they were written, and the digest is of the file's bytes."""
    card = read(CARD.replace("output = 15", "output = 0.1"))
    tariff = card.tariffs["big-1"]
    assert (card.date, card.source, len(card.digest)) == (date(2026, 9, 15), "invented", 64)
    assert tariff.base.output == Decimal("0.1")
    assert [tier.above for tier in tariff.tiers] == [200_000]
    assert card.digest != read(CARD).digest
    assert card.content.decode() == CARD.replace("output = 15", "output = 0.1")


def test_a_card_prices_whoever_serves() -> None:
    """The list of a model knows every served model of the card."""
    prices = read(CARD).price_list("big-1", "cents")
    assert (prices.expected, prices.rounding) == ("big-1", "cents")
    assert prices.price(Usage(input=10, output=0, cache_read=0, cache_write_5m=0, cache_write_1h=0)).usd == Decimal(
        "3e-5"
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("currency", "curency", r"curency: unknown key 'curency'. Did you mean 'currency'\?"),
        ("schema", "scheme", r"scheme: unknown key 'scheme'. Did you mean 'schema'\?"),
        ("input = 3", "inptu = 3", r"models.big-1.inptu: unknown key 'inptu'. Did you mean 'input'\?"),
        ("above", "abov", r"tiers.0.abov: unknown key 'abov'. Did you mean 'above'\?"),
        ("output = 15\n", "", r"models.big-1.output: missing, and required"),
        ("cache_read = 0.3\n", "", r"models.big-1.cache_read: missing, and required"),
        ("date = 2026-09-15\n", "", r"date: missing, and required"),
        ('source = "invented"\n', "", r"source: missing, and required"),
        ('schema = "proctor-rates/1"\n', "", r"schema: missing, and required"),
        ('source = "invented"', 'source = " "', r"source: .*got ' '"),
        ("2026-09-15", '"2026-09-15"', r"date: .*without quotes.*got '2026-09-15'"),
        ("2026-09-15", "2026-09-15T10:00:00", r"date: .*without a time"),
        ('"usd"', '"eur"', r"currency: .*'usd', got 'eur'"),
        ("rates/1", "rates/2", r"schema: .*'proctor-rates/1', got 'proctor-rates/2'"),
        ("input = 3", "input = -3", r"big-1.input: .*a rate of -3: expected US dollars per million tokens, from 0"),
        ("input = 3", "input = nan", r"big-1.input: .*a rate of NaN"),
        ("input = 3", "input = inf", r"big-1.input: .*a rate of Infinity"),
        ("input = 3", "input = 1e10", r"big-1.input: .*a rate of 1E\+10"),
        ("input = 3", "input = 0.0000000000001", r"big-1.input: .*at most 12 decimals"),
        ("input = 3", "input = true", r"big-1.input: .*a number, got True"),
        ("input = 3", 'input = "3"', r"big-1.input: .*a number, got '3'"),
        ("above = 200_000", "above = 0", r"tiers.0.above: .*got 0"),
        ("above = 200_000", "above = 1.5", r"tiers.0.above: .*got Decimal\('1.5'\)"),
        ('"big-1"]', '""]', r"models"),
        ("[models", "[[models", r"not valid TOML"),
        ("input = 3", "input = 3\ninput = 3", r"not valid TOML"),
    ],
)
def test_what_is_refused(old: str, new: str, message: str) -> None:
    """The place, the value, and what was expected; a good card is taken."""
    assert read(CARD)
    assert old in CARD
    with pytest.raises(RateCardError, match=message):
        read(CARD.replace(old, new, 1))


def test_tiers_rise_and_stand_once() -> None:
    """One that stands twice or that comes after a longer one is refused; a rising one is taken."""

    def with_tier(above: int) -> str:
        return f'{CARD}[[models."big-1".tiers]]\nabove = {above}\n{RATES}'

    assert [tier.above for tier in read(with_tier(300_000)).tariffs["big-1"].tiers] == [200_000, 300_000]
    with pytest.raises(RateCardError, match="two tiers are above 200000: expected each once"):
        read(with_tier(200_000))
    with pytest.raises(RateCardError, match="a tier above 100000 stands after one above 200000: expected rising"):
        read(with_tier(100_000))


def test_a_card_without_models_is_refused() -> None:
    """It could price nothing."""
    with pytest.raises(RateCardError, match="models: missing"):
        read(CARD[: CARD.index("[models")])
    with pytest.raises(RateCardError, match=r"models: .*at least 1"):
        read(CARD[: CARD.index("[models")] + "[models]\n")


def test_a_card_of_a_day_to_come_is_refused(tmp_path: Path) -> None:
    """Nobody has read its prices anywhere; today's is taken."""
    path = tmp_path / "rates.toml"
    path.write_text(CARD, "utf-8")
    assert load_rate_card(path, Day("2026-09-15")).date == date(2026, 9, 15)
    with pytest.raises(RateCardError, match=r"is dated 2026-09-15, and today is 2026-09-14 \(UTC\)"):
        load_rate_card(path, Day("2026-09-14"))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """Missing, a folder, no text."""
    with pytest.raises(RateCardError, match="can't be read: No such file"):
        load_rate_card(tmp_path / "rates.toml", Clock())
    with pytest.raises(RateCardError, match="can't be read: Is a directory"):
        load_rate_card(tmp_path, Clock())
    with pytest.raises(RateCardError, match="not UTF-8"):
        read_rate_card(b"\xff", "rates.toml")


def test_every_field_is_documented() -> None:
    """On the page of rate cards, whose own card is valid."""
    page = (ROOT / "docs/reference/rate-cards.md").read_text("utf-8")
    for name in ("schema", "date", "currency", "source", "models", "tiers", "above"):
        assert f"| `{name}` |" in page
    for name in ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output"):
        assert f"| `{name}` |" in page
    start = page.index("schema = ")
    card = read(page[start : page.index("```", start)])
    assert [tier.above for tier in card.tariffs["big-1"].tiers] == [200_000]
