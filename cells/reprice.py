"""
What a run would have cost by another rate card, from the usage that was recorded. The record is read and not changed.

Each call stands in its try's transcript, with its usage and who served it. Where a transcript is gone there are the
try's totals, which can't tell in which tier a call was: then the price is a bound, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from cells.cell import transcript_path
from cells.charges import ChargedTo, charge_of
from cells.plan import read_run
from cells.recorded_calls import recorded_calls
from harness.canonical import digest_bytes
from harness.errors import IntegrityError, UsageError
from harness.money import dollars, in_figures, sum_of
from harness.outcome import CellOutcome
from harness.pricing import CallPrice, PriceList, PriceSum, RateTable
from harness.rate_cards import RateCard
from harness.registration import Registration, load_registration
from harness.transcript import read_transcript
from harness.values import ExactPrice, LowerBoundPrice, Price, Refused, VoidPrice

__all__ = ["PriceTotal", "Repriced", "RepricedTry", "reprice", "reprice_run"]

_TOTALS = "the transcript is gone, and totals do not tell which call was in which tier"


@dataclass(frozen=True, kw_only=True, slots=True)
class RepricedTry:
    """One try: its price as it is in the record, by the card, and whether its calls or its totals were priced."""

    cell: str
    arm: str
    attempt: int
    end: str
    charge: ChargedTo
    recorded: Price
    now: Price
    by: Literal["calls", "totals"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceTotal:
    """Prices of one kind of tries added up: `usd` of those that have a figure, None if there are some and none has."""

    usd: float | None
    exact: int
    lower_bound: int
    void: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Repriced:
    """All tries of a run, and by arm and charge the recorded and the new total."""

    run: str
    frozen_with: Mapping[str, str]
    tries: tuple[RepricedTry, ...]
    totals: Mapping[tuple[str, ChargedTo], tuple[PriceTotal, PriceTotal]]


def reprice_run(folder: Path, card: RateCard) -> Repriced:
    """
    Price every recorded try by `card`, each call by the model that served it, rounded as the run was registered.

    Raises `IntegrityError` for a transcript that is not the one recorded, `UsageError` where nothing was played yet.
    """
    registration = load_registration(folder)
    tries = tuple(_tries(folder, registration, card))
    if not tries:
        raise UsageError(f"{folder} has no try to price: expected a run in which something was played")
    groups = dict.fromkeys((row.arm, row.charge) for row in tries)
    return Repriced(
        run=registration.id,
        frozen_with=_rates_of(registration),
        tries=tries,
        totals={group: _totals([row for row in tries if (row.arm, row.charge) == group]) for group in groups},
    )


def _tries(folder: Path, registration: Registration, card: RateCard) -> Iterator[RepricedTry]:
    rounding = registration.experiment["cost"]["rounding"]
    for outcome in read_run(folder)[0].outcomes():
        if isinstance(outcome.end, Refused):
            continue
        prices = card.price_list(registration.pins[f"model {outcome.cell.model}"]["served"], rounding)
        path = transcript_path(folder, outcome.cell, outcome.attempt)
        whole = path.exists()
        if whole and outcome.transcript is not None and digest_bytes(path.read_bytes()) != outcome.transcript:
            raise IntegrityError(f"{path} is not the transcript of the record: `proctor verify` says more")
        yield RepricedTry(
            cell=str(outcome.cell),
            arm=outcome.cell.arm,
            attempt=outcome.attempt,
            end=outcome.end.kind,
            charge=charge_of(outcome.end),
            recorded=outcome.spend.price,
            now=reprice(prices, outcome, path if whole else None),
            by="calls" if whole else "totals",
        )


def reprice(prices: PriceList, outcome: CellOutcome, transcript: Path | None) -> Price:
    """The price of one try: by the calls of its transcript, or by its totals where there is none."""
    total = PriceSum()
    if transcript is not None:
        for call in recorded_calls(read_transcript(transcript)):
            total.add(prices.price(call.usage, call.served))
    elif outcome.spend.calls:
        total.add(_by_totals(prices, outcome))
    return total.price(prices.rounding)


def _by_totals(prices: PriceList, outcome: CellOutcome) -> CallPrice:
    """What is certain of a try's totals: exact if one model served it all, in one call or in one tier."""
    usage, served = outcome.spend.usage, outcome.served_models or (prices.expected,)
    tariffs = [prices.tariffs.get(name) for name in served]
    tables = [table for tariff in tariffs if tariff is not None for table in tariff.reachable(usage)]
    if len(served) == 1 and (outcome.spend.calls == 1 or len(tables) <= 1):
        return prices.price(usage, served[0])
    if None in tariffs:
        return CallPrice(usd=None, why=f"{_TOTALS}; served by {', '.join(served)}")
    cheapest = RateTable(**{item.name: min(table.rate(item.name) for table in tables) for item in fields(RateTable)})
    return CallPrice(usd=cheapest.known(usage) or None, why=_TOTALS)


def _totals(rows: list[RepricedTry]) -> tuple[PriceTotal, PriceTotal]:
    return _total([row.recorded for row in rows]), _total([row.now for row in rows])


def _total(prices: list[Price]) -> PriceTotal:
    known = [dollars(price.usd) for price in prices if not isinstance(price, VoidPrice)]
    return PriceTotal(
        usd=in_figures(sum_of(known)) if known or not prices else None,
        exact=sum(isinstance(price, ExactPrice) for price in prices),
        lower_bound=sum(isinstance(price, LowerBoundPrice) for price in prices),
        void=len(prices) - len(known),
    )


def _rates_of(registration: Registration) -> dict[str, str]:
    """By model, what the run was priced by when it was frozen."""
    told = {}
    for model in registration.experiment["models"]:
        told[model["name"]] = "no rates"
        if model["rates"] is not None:
            told[model["name"]] = "the rates of the experiment file"
        if model["rate_card"] is not None:
            pin: Any = registration.pins[f"rate card {model['rate_card']}"]
            told[model["name"]] = f"{model['rate_card']} of {pin['date']}, sha256 {pin['sha256']}"
    return told
