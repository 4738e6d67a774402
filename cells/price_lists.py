"""What each model of an experiment is priced by: the rates in its entry, or a rate card that is pinned by its bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.clock import Clock
from harness.errors import RateCardError, unknown_name
from harness.experiment import Experiment, ModelEntry
from harness.messages import ModelIdentity
from harness.pricing import PriceList, RateTable, Rounding
from harness.rate_cards import RateCard, read_rate_card, refuse_future

__all__ = ["card_pins", "price_list", "read_cards", "refuse_cards"]


def read_cards(experiment: Experiment, read: Callable[[str], bytes]) -> dict[str, RateCard]:
    """The rate cards that the models name, by file; `read` gives a file's bytes. Raises `RateCardError`."""
    files = {entry.rate_card for entry in experiment.models} - {None}
    return {file: read_rate_card(read(file), file) for file in sorted(filter(None, files))}


def card_pins(cards: Mapping[str, RateCard]) -> dict[str, Any]:
    """What a registration keeps of each card: its digest and its date."""
    return {f"rate card {file}": {"sha256": card.digest, "date": card.date.isoformat()} for file, card in cards.items()}


def price_list(
    entry: ModelEntry, cards: Mapping[str, RateCard], *, served: str, rounding: Rounding
) -> PriceList | None:
    """The price list of a model that is served as `served`, None where it has no rates at all."""
    if entry.rate_card is not None:
        return cards[entry.rate_card].price_list(served, rounding)
    if entry.rates is not None:
        return PriceList.flat(served, RateTable.of(**entry.rates.model_dump()), rounding=rounding)
    return None


def refuse_cards(
    experiment: Experiment, cards: Mapping[str, RateCard], identities: Mapping[str, ModelIdentity], clock: Clock
) -> None:
    """Raise `RateCardError` for a card of a day to come, or without the model that the condition's is served as."""
    for file, card in cards.items():
        refuse_future(card, clock, file)
    for entry in experiment.models:
        if entry.rate_card is None:
            continue
        served, card = identities[entry.name].served, cards[entry.rate_card]
        if served not in card.tariffs:
            raise RateCardError(
                f"model {entry.name!r} is served as {served!r}, and {entry.rate_card} has no rates for it: "
                f"{unknown_name('model', served, card.tariffs)} Add [models.{served!r}], or leave rate_card out"
            )
