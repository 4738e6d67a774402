"""Whether an experiment may confirm an effect: what both must have in common, and what they must not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cells.promotion.effect import Effect, Seen, contrast_of, effect_of
from harness.analysis import DESCRIPTIVE, Alternative
from harness.confirmation import ConfirmsEntry
from harness.registration import Registration
from harness.seeds import spaces_clash

__all__ = ["Discovered", "confirmed_effect", "declares_disjoint", "shared_units", "unfit"]

_WORDS = {"greater": "the treatment passes more", "less": "the treatment passes less", "two-sided": "the arms differ"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Discovered:
    """An effect of a discovery, the side that its figures lean to, and the namespace that its seeds are drawn from."""

    effect: Effect
    seen: Seen
    seed_namespace: str


def confirmed_effect(entry: ConfirmsEntry, confirmation: Registration) -> Effect:
    """The effect as the confirmation registers it."""
    return effect_of(confirmation, entry.contrast)


def shared_units(found: Discovered, again: Effect) -> list[str]:
    """The units of the confirmation that the effect was seen on."""
    return sorted({*found.effect.units} & {*again.units})


def declares_disjoint(entry: ConfirmsEntry, confirmation: Registration) -> bool:
    """Whether the experiment says that it plays other units: in the table itself, or by its population's sample."""
    population = confirmation.experiment["population"]
    return entry.disjoint or (population is not None and population["sample"] == "disjoint")


def unfit(found: Discovered, entry: ConfirmsEntry, confirmation: Registration) -> list[str]:
    """A sentence for each reason why this registration can't confirm this effect; none where it can."""
    again = confirmed_effect(entry, confirmation)
    return [
        *_seeds(found, confirmation),
        *_unlike(found, again),
        *_unread(again),
        *_units(found, entry, again, confirmation),
        *_direction(found, entry, contrast_of(confirmation, entry.contrast).alternative),
    ]


def _seeds(found: Discovered, confirmation: Registration) -> Iterator[str]:
    theirs, ours = found.seed_namespace, confirmation.experiment["seat"]["seed_namespace"]
    if spaces_clash(ours, theirs):
        how = (
            "the discovery's own"
            if ours == theirs
            else f"too like the discovery's {theirs!r} (one begins with the other)"
        )
        yield f"seat.seed_namespace {ours!r} is {how}: expected one of its own, so that no output is drawn twice"


def _unlike(found: Discovered, again: Effect) -> Iterator[str]:
    """What makes another effect of it: other arms, by their bytes and each on its side, or another test."""
    was = found.effect
    for side in ("treatment", "control"):
        if getattr(was, f"{side}_sha256") != getattr(again, f"{side}_sha256"):
            yield (
                f"{side} {getattr(again, side)!r} is not the discovery's {getattr(was, side)!r}, byte for byte: "
                "expected the same arm on the same side"
            )
    for name in ("test", "cluster", "separation", "extras"):
        if getattr(was, name) != getattr(again, name):
            yield f"{name} is {getattr(again, name)!r}: the discovery's is {getattr(was, name)!r}, expected the same"


def _unread(again: Effect) -> Iterator[str]:
    if again.family == DESCRIPTIVE:
        yield f"contrast {again.contrast!r} is descriptive and gets no verdict: expected one in a family"
    if not again.units:
        yield f"contrast {again.contrast!r} has no cell: expected units to confirm the effect on"


def _units(found: Discovered, entry: ConfirmsEntry, again: Effect, confirmation: Registration) -> Iterator[str]:
    shared = shared_units(found, again)
    if shared and declares_disjoint(entry, confirmation):
        named = ", ".join(shared[:5]) + (", ..." if len(shared) > 5 else "")
        yield f"its units are declared disjoint, and {len(shared)} are the discovery's: {named}"


def _direction(found: Discovered, entry: ConfirmsEntry, claimed: Alternative) -> Iterator[str]:
    """
    Fresh data may test any claim, but which claim was chosen after a look at the discovery has to be seen: the one that
    was registered and is not against what was seen needs no word, one that follows the data or goes against it does,
    and one that was neither registered nor seen confirms nothing.
    """
    registered, seen = found.effect.alternative, found.seen
    against = claimed != "two-sided" and seen not in {claimed, "none"}
    told = f"registered {_WORDS[registered]!r} and saw {_seen(seen)}"
    if claimed == registered and not against:
        if entry.direction is not None:
            yield f"direction is {entry.direction!r}, and nothing turns: the discovery {told}, expected no `direction`"
    elif claimed not in {registered, seen, "two-sided"}:
        yield f"it claims that {_WORDS[claimed]}: the discovery {told}, so there is nothing of it to confirm"
    elif entry.direction is None:
        yield (
            f"it claims that {_WORDS[claimed]}: the discovery {told}; to confirm another direction, say why in "
            "`direction` of its [[confirms]]"
        )


def _seen(seen: Seen) -> str:
    return "neither side ahead" if seen == "none" else f"that {_WORDS[seen]}"
