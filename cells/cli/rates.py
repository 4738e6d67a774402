"""The commands on prices: is a rate card valid, and what would a run have cost by another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.door import print_json, run_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cells.reprice import PriceTotal, Repriced
    from harness.rate_cards import RateCard
    from harness.values import Price

__all__ = ["add_to"]

File = Annotated[Path, typer.Argument(help="A rate card.")]
Place = Annotated[Path, typer.Argument(help="A run folder, a registration's id, or an experiment file frozen once.")]
Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds run folders.")]
Card = Annotated[Path, typer.Option("--card", help="The rate card to price by.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

RUNS = Path("runs")
DIRECTIONS = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output")


def add_to(app: typer.Typer) -> None:
    """Add the group to the command line."""
    group = typer.Typer(help="Look at rate cards.", no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_rates)
    group.command()(check)
    app.add_typer(group, name="rates")
    app.command()(reprice)


def _rates() -> None:
    """Look at rate cards."""


def check(file: File, *, as_json: AsJson = False) -> None:
    """Say whether a rate card is valid, and print it with its digest."""
    from harness.clock import SystemClock
    from harness.rate_cards import load_rate_card

    card = load_rate_card(file, SystemClock())
    if as_json:
        print_json(_facts(card))
    else:
        for line in _lines(card):
            typer.echo(line)


def _rows(card: RateCard) -> Iterator[tuple[str, int | None, dict[str, str]]]:
    """Every table of the card: its model, what its prompts are above (None: ordinary calls), and its rates."""
    for name, tariff in card.tariffs.items():
        for above, table in ((None, tariff.base), *((tier.above, tier.rates) for tier in tariff.tiers)):
            yield name, above, {direction: f"{table.rate(direction):f}" for direction in DIRECTIONS}


def _facts(card: RateCard) -> dict[str, Any]:
    rows = [{"model": name, "above": above, "rates": rates} for name, above, rates in _rows(card)]
    return {
        "sha256": card.digest,
        "date": card.date.isoformat(),
        "currency": "usd",
        "source": card.source,
        "rows": rows,
    }


def _lines(card: RateCard) -> Iterator[str]:
    from cells.figures import printable

    yield f"rate card of {card.date}, US dollars per million tokens"
    yield f"  sha256 {card.digest}"
    yield f"  source {printable(card.source)}"
    for name, above, rates in _rows(card):
        which = "" if above is None else f", prompts above {above:,} tokens"
        told = ", ".join(f"{direction} {rate}" for direction, rate in rates.items())
        yield f"  {printable(name)}{which}: {told}"


def reprice(place: Place, runs: Runs = RUNS, *, card: Card, as_json: AsJson = False) -> None:
    """Say what a run would have cost by another rate card; nothing in the run is changed."""
    from cells.reprice import reprice_run
    from harness.clock import SystemClock
    from harness.rate_cards import load_rate_card

    by = load_rate_card(card, SystemClock())
    found = reprice_run(run_folder(place, runs), by)
    if as_json:
        print_json(_repriced_facts(found, by))
    else:
        for line in _repriced_lines(found, by):
            typer.echo(line)


def _repriced_facts(found: Repriced, by: RateCard) -> dict[str, Any]:
    from dataclasses import asdict

    totals = [
        {"arm": arm, "charge": charge, "recorded": asdict(recorded), "now": asdict(now)}
        for (arm, charge), (recorded, now) in found.totals.items()
    ]
    card = {"sha256": by.digest, "date": by.date.isoformat()}
    tries = [asdict(row) for row in found.tries]
    return {"run": found.run, "recorded_by": dict(found.frozen_with), "card": card, "totals": totals, "tries": tries}


def _repriced_lines(found: Repriced, by: RateCard) -> Iterator[str]:
    from cells.figures import printable

    yield f"run {found.run}, recorded | by the card of {by.date}, sha256 {by.digest}"
    for model, rates in found.frozen_with.items():
        yield f"  model {printable(model)} was frozen with {printable(rates)}"
    for row in found.tries:
        name = f"{printable(row.cell)} (try {row.attempt}, {row.end}, {row.charge})"
        totals = "" if row.by == "calls" else ", of its totals"
        yield f"  {name}: {_price(row.recorded)} | {_price(row.now)}{totals}"
    for (arm, charge), (recorded, now) in found.totals.items():
        yield f"{printable(arm)}, {charge}: {_total(recorded)} | {_total(now)}"


def _price(price: Price) -> str:
    from cells.figures import printable
    from harness.values import ExactPrice, LowerBoundPrice

    match price:
        case ExactPrice(usd=usd):
            return f"{usd:,.6f}"
        case LowerBoundPrice(usd=usd, reason=reason):
            return f"at least {usd:,.6f} ({printable(reason)})"
        case _:
            return f"void ({printable(price.reason)})"


def _total(total: PriceTotal) -> str:
    figure = "void" if total.usd is None else f"{total.usd:,.6f}"
    bound = "at least " if total.usd is not None and (total.lower_bound or total.void) else ""
    return f"{bound}{figure} ({total.exact} exact, {total.lower_bound} lower bounds, {total.void} void)"
