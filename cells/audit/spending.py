"""Invariants of spend: what an outcome says it cost is what its calls used, at the registered prices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from cells.audit.findings import AuditedRun, Finding, Invariant, line_of
from cells.price_lists import price_list, read_cards
from cells.recorded_calls import RecordedCall, recorded_calls
from harness.errors import ProctorError
from harness.pricing import NO_RATES, PriceList, PriceSum
from harness.record import Entry
from harness.values import Price, Refused, Usage, VoidPrice

__all__ = ["Prices", "SpendAddsUp"]


class SpendAddsUp(Invariant):
    """The tokens and calls of an outcome are those of its transcript."""

    name = "spend-adds-up"
    says = "calls, usage and charged tokens of each outcome are the sums over the calls of its transcript"

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        if outcome is None:
            return
        events = self.run.events(entry, outcome)
        if events is None:
            self.counts["outcomes without a transcript to add up"] += outcome.end.kind != "REFUSED"
            return
        calls = list(recorded_calls(events))
        usage = sum((call.usage for call in calls), Usage.zero())
        charged = sum(call.estimate if call.usage.total is None else call.usage.total for call in calls)
        spend, where = outcome.spend, line_of(entry)
        if spend.calls != len(calls):
            yield self.found(where, f"{outcome.cell}: {spend.calls} calls: its transcript has {len(calls)}")
        for name, used in asdict(usage).items():
            if getattr(spend.usage, name) != used:
                said = getattr(spend.usage, name)
                yield self.found(where, f"{outcome.cell}: {said} tokens {name}: its transcript adds up to {used}")
        if spend.charged_tokens != charged:
            said = f"{spend.charged_tokens} tokens were charged"
            yield self.found(where, f"{outcome.cell}: {said}: its transcript adds up to {charged}")


class Prices(Invariant):
    """A price is what the registered rates make of the calls."""

    name = "prices"
    says = "each price is that of the try's calls by the rates or the rate card that the registration pins"

    def __init__(self, run: AuditedRun) -> None:
        super().__init__(run)
        self._lists: dict[str, PriceList | None] | None = None
        self._why = ""
        try:
            self._lists = self._read()
        except (ProctorError, KeyError, TypeError, ValueError) as error:
            self._why = f"{type(error).__name__}: {error}"

    def _read(self) -> dict[str, PriceList | None]:
        experiment, pins = self.run.experiment, self.run.registration.pins
        cards = read_cards(experiment, lambda file: self.run.store.get(pins[f"rate card {file}"]["sha256"]))
        rounding = experiment.cost.rounding
        return {
            entry.name: price_list(entry, cards, served=pins[f"model {entry.name}"]["served"], rounding=rounding)
            for entry in experiment.models
        }

    def saw(self, entry: Entry) -> Iterable[Finding]:
        """One entry; see `Invariant`."""
        outcome = self.run.outcome(entry)
        if outcome is None or self._lists is None:
            return
        price = outcome.spend.price
        # A gate refuses a cell before it is begun, or a round of it for its prompt's length: then calls were paid.
        if isinstance(outcome.end, Refused) and outcome.transcript is None:
            if not isinstance(price, VoidPrice):
                yield self.found(line_of(entry), f"{outcome.cell} was not built, and has the price {_told(price)}")
            return
        events = self.run.events(entry, outcome)
        if events is None:
            return
        expected = _priced(recorded_calls(events), self._lists.get(outcome.cell.model))
        if not _same(price, expected):
            what = f"{outcome.cell} has the price {_told(price)}: its calls cost {_told(expected)}"
            yield self.found(line_of(entry), what)

    def ended(self) -> Iterable[Finding]:
        """The whole; see `Invariant`."""
        if self._lists is None:
            yield self.found("registration", f"its rates can't be read: {self._why}")


def _priced(calls: Iterable[RecordedCall], rates: PriceList | None) -> Price:
    if rates is None:
        return VoidPrice(reason=NO_RATES)
    total = PriceSum()
    for call in calls:
        total.add(rates.price(call.usage, call.served))
    return total.price(rates.rounding)


def _same(one: Price, other: Price) -> bool:
    """Whether two prices say the same figure in the same way; in what words a reason is given does not count."""
    return one.kind == other.kind and getattr(one, "usd", None) == getattr(other, "usd", None)


def _told(price: Price) -> str:
    return "void" if isinstance(price, VoidPrice) else f"{price.kind} {price.usd}"
