"""
Rate cards: dated TOML files of what served models cost, in five directions and in tiers of the prompt's length.

A card is strict: every direction of every model is written out, a free one as 0, and nothing else may stand in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from harness.canonical import digest_bytes
from harness.clock import Clock
from harness.errors import RateCardError
from harness.money import checked_rate
from harness.pricing import PriceList, RateTable, Rounding, Tariff, Tier
from harness.table_faults import explain
from harness.written import toml_of

__all__ = ["RateCard", "card_bytes", "load_rate_card", "read_rate_card", "refuse_future"]

DIRECTIONS = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output")


def _rate(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("expected US dollars per million tokens, a number")  # noqa: TRY004 - pydantic's
    return checked_rate(value)


def _day(value: Any) -> date:
    if type(value) is not date:
        raise ValueError("expected a date of TOML's, without quotes and without a time, such as 2026-09-15")
    return value


Day = Annotated[date, BeforeValidator(_day)]
Rate = Annotated[Decimal, BeforeValidator(_rate)]
Text = Annotated[str, StringConstraints(pattern=r"^\S(.*\S)?$")]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)


class _Rates(_Table):
    """US dollars per million tokens, by direction."""

    input: Rate
    """Fresh input tokens."""
    cache_write_5m: Rate
    """Input tokens written to a five-minute cache."""
    cache_write_1h: Rate
    """Input tokens written to a one-hour cache."""
    cache_read: Rate
    """Input tokens read from a cache."""
    output: Rate
    """Output tokens."""

    def table(self) -> RateTable:
        return RateTable(**{direction: getattr(self, direction) for direction in DIRECTIONS})


class _TierTable(_Rates):
    """The rates of every token of a call whose prompt is longer."""

    above: Annotated[int, Field(ge=1)]
    """Prompt tokens, fresh and cached: a call with more of them is in this tier, or in a longer one."""


class _ModelTable(_Rates):
    """A served model: the rates of its ordinary calls, and its tiers."""

    tiers: list[_TierTable] = []
    """Other rates for long prompts, by rising `above`."""

    @model_validator(mode="after")
    def _rising(self) -> _ModelTable:
        for before, after in zip(self.tiers, self.tiers[1:], strict=False):
            if after.above == before.above:
                raise ValueError(f"two tiers are above {after.above}: expected each once")
            if after.above < before.above:
                raise ValueError(f"a tier above {after.above} stands after one above {before.above}: expected rising")
        return self

    def tariff(self) -> Tariff:
        tiers = tuple(Tier(above=tier.above, rates=tier.table()) for tier in self.tiers)
        return Tariff(base=self.table(), tiers=tiers)


class _CardFile(_Table):
    """The whole file."""

    form: Annotated[Literal["proctor-rates/1"], Field(alias="schema")]
    """The form of the file."""
    date: Day
    """The day on which these were the prices."""
    currency: Literal["usd"]
    """US dollars; nothing is converted."""
    source: Text
    """Where the prices were read, for people."""
    models: Annotated[dict[Text, _ModelTable], Field(min_length=1)]
    """The rates by the name that a model is served under, as the server says it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateCard:
    """A card that was read: `digest` is the SHA-256 of its bytes, `tariffs` are by served model."""

    content: bytes
    digest: str
    date: date
    source: str
    tariffs: Mapping[str, Tariff]

    def price_list(self, served: str, rounding: Rounding) -> PriceList:
        """What a model that is served as `served` is priced by, whoever answers in its place."""
        return PriceList(expected=served, tariffs=self.tariffs, rounding=rounding)


def load_rate_card(path: Path, clock: Clock) -> RateCard:
    """Read a card. Raises `RateCardError` for one that is not there, not valid, or of a day that is yet to come."""
    card = read_rate_card(card_bytes(path), str(path))
    refuse_future(card, clock, str(path))
    return card


def card_bytes(path: Path) -> bytes:
    """The bytes of a card's file. Raises `RateCardError` when it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise RateCardError(f"{path} can't be read: {error.strerror or error}: expected a rate card in TOML") from None


def read_rate_card(content: bytes, origin: str) -> RateCard:
    """Validate the bytes of a card; `origin` is how messages call it. Raises `RateCardError`."""
    try:
        data = toml_of(content.decode("utf-8"), parse_float=Decimal)
        card = _CardFile.model_validate(data)
    except UnicodeDecodeError as error:
        raise RateCardError(f"{origin} is not UTF-8: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise RateCardError(f"{origin} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise RateCardError(explain(error, origin, _CardFile)) from None
    return RateCard(
        content=content,
        digest=digest_bytes(content),
        date=card.date,
        source=card.source,
        tariffs={name: table.tariff() for name, table in card.models.items()},
    )


def refuse_future(card: RateCard, clock: Clock, origin: str) -> None:
    """Raise `RateCardError` for a card of a day after today, which nobody can have read anywhere."""
    today = clock.now().astimezone(UTC).date()
    if card.date > today:
        raise RateCardError(
            f"{origin} is dated {card.date}, and today is {today} (UTC): expected the day of its source"
        )
