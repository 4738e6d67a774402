"""What a person reads when an experiment is frozen."""

from __future__ import annotations

from collections.abc import Iterator

from cells.freeze import Frozen
from harness.repository import dirt_text

__all__ = ["freeze_lines"]


def freeze_lines(frozen: Frozen) -> Iterator[str]:
    """The registration's id and digest, what can be built and what can't and why, and what each test can reach."""
    registration = frozen.registration
    outlook = registration.outlook
    counts = outlook["cells"]
    yield f"registration {registration.id}"
    yield f"  sha256 {registration.digest}"
    yield f"  folder {frozen.folder}"
    yield f"  {counts['buildable']} of {counts['declared']} declared cells can be built"
    for gate, number in sorted(counts["refused_by_gate"].items()):
        yield f"  {number} refused by gate {gate!r}:"
        for row in [row for row in registration.refused if row["gate"] == gate][:5]:
            yield f"    {row['cell']}: {row['detail']}"
        if number > 5:
            yield f"    ... and {number - 5} more, in registration.json"
    for test in outlook["tests"]:
        what = f"{test['test']}, {test['alternative']}, n = {test['n']}"
        yield f"  {test['name']}: {what}: {_best(test['best_attainable_p'])}"
    for line in dirt_text(registration.repository):
        yield f"  {line}"
    for name, identity in frozen.identities.items():
        if identity.digest is None:
            yield f"  model {name}: no digest from its provider; only the served name {identity.served!r} is checked"


def _best(p_value: float | None) -> str:
    return "the best attainable p is undefined" if p_value is None else f"the best attainable p is {p_value:.4g}"
