"""The commands on prices: is a rate card valid, and what would a run have cost by another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cells.cli.door import print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.rate_cards import RateCard

__all__ = ["add_to"]

File = Annotated[Path, typer.Argument(help="A rate card.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

DIRECTIONS = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output")


def add_to(app: typer.Typer) -> None:
    """Add the group to the command line."""
    group = typer.Typer(help="Look at rate cards.", no_args_is_help=True, rich_markup_mode=None)
    group.callback()(_rates)
    group.command()(check)
    app.add_typer(group, name="rates")


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
