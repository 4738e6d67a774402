"""The registered guards read from the contrasts that they name: a word beside the tests, which changes no verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cells.stats import Guard, harm_gate, material_rescue, stratum_gate
from harness.guarding import GuardEntry, HarmGate, MaterialRescue, StratumGate

if TYPE_CHECKING:
    from cells.contrasts import ContrastReading

__all__ = ["GuardReading", "read_guards"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GuardReading:
    """
    A guard's word. `value` is the figure that decided, held against `rule`; of a gate over strata it is the worst net,
    and `failing` names the strata that fail. `passes` is None, with `undefined` saying why, where nothing can be held.
    `n` are the judged pairs of each contrast in turn; none while they are withheld.
    """

    name: str
    kind: str
    contrasts: tuple[str, ...]
    rule: str
    value: float | None
    passes: bool | None
    n: tuple[int, ...] = ()
    failing: tuple[str, ...] = ()
    undefined: str | None = None


def read_guards(entries: Sequence[GuardEntry], contrasts: Sequence[ContrastReading]) -> tuple[GuardReading, ...]:
    """Read every guard; while verdicts are withheld, guards are too."""
    known = {reading.name: reading for reading in contrasts}
    return tuple(_read(entry, known) for entry in entries)


def _read(entry: GuardEntry, known: Mapping[str, ContrastReading]) -> GuardReading:
    readings = [known[name] for name in entry.contrasts]
    if any(reading.status != "final" for reading in readings):
        return _nothing(entry, "withheld until the record is whole")
    empty = [reading.name for reading in readings if not reading.pairs.judged]
    n = tuple(reading.pairs.judged for reading in readings)
    if empty:
        return replace(_nothing(entry, f"no pair of {empty[0]} was judged"), n=n)
    return replace(_held(entry, readings), n=n)


def _held(entry: GuardEntry, readings: Sequence[ContrastReading]) -> GuardReading:
    """The word of a guard whose contrasts all have judged pairs."""
    match entry:
        case HarmGate():
            pairs = readings[0].pairs
            return _said(entry, harm_gate(pairs.control_only, pairs.judged, most=entry.most))
        case MaterialRescue():
            placebo, treatment = (reading.pairs.net for reading in readings)
            return _said(entry, material_rescue(placebo, treatment, share=entry.share))
        case StratumGate():
            return _strata(entry, readings[0])


def _strata(entry: StratumGate, reading: ContrastReading) -> GuardReading:
    words = {
        part.name: stratum_gate(
            part.pairs.treatment_only, part.pairs.control_only, worst_net=entry.worst_net, alpha=entry.alpha
        )
        for part in reading.strata
    }
    worst = min(words.values(), key=lambda word: word.value)
    failing = tuple(name for name, word in words.items() if not word.passes)
    return GuardReading(
        name=entry.name,
        kind=entry.kind,
        contrasts=entry.contrasts,
        rule=f"in every stratum: {worst.rule}",
        value=worst.value,
        passes=not failing,
        failing=failing,
    )


def _said(entry: GuardEntry, word: Guard) -> GuardReading:
    return GuardReading(
        name=entry.name,
        kind=entry.kind,
        contrasts=entry.contrasts,
        rule=word.rule,
        value=word.value,
        passes=word.passes,
    )


def _nothing(entry: GuardEntry, why: str) -> GuardReading:
    return GuardReading(
        name=entry.name,
        kind=entry.kind,
        contrasts=entry.contrasts,
        rule=_rule(entry),
        value=None,
        passes=None,
        undefined=why,
    )


def _rule(entry: GuardEntry) -> str:
    """The rule as it was registered, before there are figures to fill it in with."""
    match entry:
        case HarmGate():
            return f"b10 / n <= {entry.most:g}"
        case MaterialRescue():
            return f"placebo net < {entry.share:g} of the treatment's"
        case StratumGate():
            return f"in every stratum: net > {entry.worst_net} and one-sided p of harm >= {entry.alpha:g}"
