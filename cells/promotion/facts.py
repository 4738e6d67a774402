"""What a report says of promotions, as data: those that a run confirms, and those of its own effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cells.promotion.confirming import confirms_of
from cells.promotion.effect import effect_of
from cells.promotion.links import PIN
from cells.promotion.promoted import promotions_in, read_promotion
from harness.blobs import BlobStore
from harness.registration import Registration

__all__ = ["confirmed_facts", "promoted_facts"]

_FACTS = ("discovery", "line", "effect", "figures", "audit", "confirmation", "seed_namespace")


def confirmed_facts(folder: Path, registration: Registration) -> list[dict[str, Any]]:
    """
    What a run confirms, by the promotions that it pins, each with what of this run's `setting` is not the discovery's.

    Raises `IntegrityError` where one is not in the run's blobs.
    """
    store, rows = BlobStore(folder / "blobs"), []
    for entry in confirms_of(registration):
        pin = registration.pins[f"{PIN}{entry.promotion}"]
        said = read_promotion(store.get(pin["sha256"]), entry.promotion).to_json()
        now = effect_of(registration, entry.contrast).setting
        differs = {name: [was, now[name]] for name, was in said["effect"]["setting"].items() if now.get(name) != was}
        rows.append({**{name: said[name] for name in _FACTS}, "setting_differs": differs})
    return rows


def promoted_facts(folder: Path) -> list[dict[str, Any]]:
    """The promotions of a discovery's record, a row each."""
    return [
        {
            "number": one.content.number,
            "dated": one.content.dated,
            "effect": one.content.effect.contrast,
            "to": one.content.confirmation.name,
            "seed namespace": one.content.confirmation.seed_namespace,
            "line": one.line,
        }
        for one in promotions_in(folder)
    ]
