"""What a person reads when an experiment is frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cells.fire_rates import fire_lines
from cells.freeze import Frozen
from cells.population import flow_lines
from cells.rulings import RULINGS
from harness.repository import dirt_text

__all__ = ["freeze_lines"]

MOST_NAMED = 20
"""A person is told so many conditions that a gate refuses for one reason; the registration names all cells."""


def freeze_lines(frozen: Frozen) -> Iterator[str]:
    """The registration's id and digest, what can be built and what can't and why, and what each test can reach."""
    registration = frozen.registration
    outlook = registration.outlook
    counts = outlook["cells"]
    yield f"registration {registration.id}"
    yield f"  sha256 {registration.digest}"
    yield f"  folder {frozen.folder}"
    yield f"  {counts['buildable']} of {counts['declared']} declared cells can be built"
    for gate in sorted(counts["refused_by_gate"]):
        yield from _refused_by(gate, [row for row in registration.refused if row["gate"] == gate])
    yield from (f"  {line}" for line in flow_lines(outlook.get("population")))
    yield from (f"  {line}" for line in fire_lines(outlook.get("controllers", ())))
    if said := RULINGS[frozen.parts.experiment.referee.judges].says:
        yield f"  {said}"
    for test in outlook["tests"]:
        yield from _test_lines(test)
    for halt in outlook["predicted_halts"]:
        yield f"  {halt['sentence']}"
    for line in dirt_text(registration.repository):
        yield f"  {line}"
    yield from _pin_lines(registration.pins)
    for name, identity in frozen.identities.items():
        if identity.digest is None:
            yield f"  model {name}: no digest from its provider; only the served name {identity.served!r} is checked"


def _pin_lines(pins: Mapping[str, Any]) -> Iterator[str]:
    """What prices are of, and how prompts are counted that are bounded."""
    for name, pin in pins.items():
        if name.startswith("rate card "):
            yield f"  prices: {name.removeprefix('rate card ')} of {pin['date']}, sha256 {pin['sha256']}"
        if name.startswith("promotion "):
            yield f"  confirms an effect of {pin['discovery']}, promoted by line {pin['line']} of its record"
        if name.startswith("prompt count "):
            most = pins["seat options"]["max_prompt_tokens"]
            yield f"  prompts of {name.removeprefix('prompt count ')}: at most {most} tokens, by {pin['by']}"


def _refused_by(gate: str, rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The cells that a gate refuses, its reason once for all cells that have it, replicates counted."""
    yield f"  {len(rows)} refused by gate {gate!r}:"
    why: dict[str, Counter[str]] = {}
    for row in rows:
        why.setdefault(row["detail"], Counter())[row["cell"].rpartition("|")[0]] += 1
    for detail, conditions in why.items():
        yield f"    {detail}:"
        for condition, replicates in list(conditions.items())[:MOST_NAMED]:
            yield f"      {condition}" + (f" ({replicates} replicates)" if replicates > 1 else "")
        if len(conditions) > MOST_NAMED:
            yield f"      ... and {len(conditions) - MOST_NAMED} more conditions, in registration.json"


def _test_lines(test: Mapping[str, Any]) -> Iterator[str]:
    """What a test can reach at best, and a line of its own if that is not enough."""
    best, holm = test["best_attainable_p"], test.get("best_attainable_holm")
    nothing = "it has no p-value" if test["n"] else "there is nothing to compare"
    reach = nothing if best is None else f"the best attainable p is {best:.4g}"
    if holm is not None and holm != best:
        reach += f", {holm:.4g} adjusted in family {test['family']!r}"
    yield f"  {test['name']}: {test['test']}, {test['alternative']}, n = {test['n']}: {reach}"
    if test.get("power") is not None:
        power = test["power"]
        yield (
            f"    power {power['power']:.4g}: {power['pairs']} discordant pairs, "
            f"{power['share']:g} of them for the treatment, at {power['alpha']:g}"
        )
    if test["in_reach"] is False:
        yield f"    it can't reach {test['alpha']:g}, whatever comes out: it takes more pairs, tasks, or another family"
