"""What a freeze asks of an experiment that confirms an effect: its promotion is there, is to this one, and fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cells.parts import Origin, SourceOrigin, StoreOrigin
from cells.promotion.effect import seen_in
from cells.promotion.fitting import Discovered, unfit
from cells.promotion.links import PIN, stands_in
from cells.promotion.promoted import Promoted, experiment_digest, read_promotion
from harness.canonical import digest_bytes
from harness.confirmation import ConfirmsEntry
from harness.errors import ExperimentError, GateRefused
from harness.experiment import Experiment
from harness.registration import Registration

__all__ = ["GATE", "confirms_of", "link_faults", "promotion_bytes", "promotion_pins", "refuse_unpromoted"]

GATE = "promotion"


def promotion_bytes(experiment: Experiment, origin: Origin) -> dict[str, bytes]:
    """The promotions that an experiment names, by file. Raises `ExperimentError` for one that can't be read."""
    return {entry.promotion: _bytes(entry, origin) for entry in experiment.confirms}


def _bytes(entry: ConfirmsEntry, origin: Origin) -> bytes:
    if isinstance(origin, StoreOrigin):
        return origin.store.get(origin.pins[f"{PIN}{entry.promotion}"]["sha256"])
    assert isinstance(origin, SourceOrigin)
    path = origin.folder / entry.promotion
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExperimentError(
            f"confirms: {path} can't be read ({error.strerror}): `proctor promote {entry.discovery} {entry.effect!r} "
            "--to FILE` writes it, with this experiment file as FILE"
        ) from None


def promotion_pins(experiment: Experiment, promotions: Mapping[str, bytes]) -> dict[str, Any]:
    """
    A pin for each promotion: its bytes, and the run and the line of its record that they are.

    Raises `IntegrityError` for bytes that are no promotion.
    """
    pins = {}
    for entry in experiment.confirms if promotions else ():
        data = promotions[entry.promotion]
        found = read_promotion(data, entry.promotion)
        pins[f"{PIN}{entry.promotion}"] = {
            "sha256": digest_bytes(data),
            "discovery": found.content.discovery,
            "line": found.line,
        }
    return pins


def confirms_of(registration: Registration) -> list[ConfirmsEntry]:
    """What a registration confirms; nothing for one that was frozen before there were promotions."""
    return [ConfirmsEntry.model_validate(row) for row in registration.experiment.get("confirms", ())]


def refuse_unpromoted(registration: Registration, promotions: Mapping[str, bytes], runs: Path) -> None:
    """
    Raise `GateRefused` (gate `promotion`) unless each effect that is confirmed was promoted to this very experiment and
    fits it; where the discovery is below `runs`, its record must have the line.
    """
    lines = []
    for entry in confirms_of(registration):
        found = read_promotion(promotions[entry.promotion], entry.promotion)
        faults = [*link_faults(entry, found, registration), *stands_in(runs / found.content.discovery, found.entry)]
        lines += [f"{entry.promotion}: {fault}" for fault in faults]
    if lines:
        raise GateRefused(GATE, f"{registration.name} can't be frozen as a confirmation:\n  " + "\n  ".join(lines))


def link_faults(entry: ConfirmsEntry, found: Promoted, confirmation: Registration) -> Iterator[str]:
    """What does not fit between a promotion and the registration that confirms by it, from the two alone."""
    said = found.content
    if (said.discovery, said.effect.contrast) != (entry.discovery, entry.effect):
        yield (
            f"it promotes {said.effect.contrast!r} of {said.discovery}: the experiment confirms {entry.effect!r} of "
            f"{entry.discovery}"
        )
    if said.confirmation.experiment != experiment_digest(confirmation.experiment):
        yield (
            f"it is to another experiment than this one ({said.confirmation.name}, content "
            f"{said.confirmation.experiment[:12]}): put the experiment file back as it was promoted to"
        )
    if confirmation.frozen_at < found.entry.at:
        yield f"it is of {found.entry.at}: the confirmation was frozen before, at {confirmation.frozen_at}"
    seen = seen_in(said.figures.reading)
    where = Discovered(effect=said.effect, seen=seen, seed_namespace=said.seed_namespace)
    yield from unfit(where, entry, confirmation)
