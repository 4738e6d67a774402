"""Several tests of one family, adjusted together."""

from __future__ import annotations

from collections.abc import Sequence

from cells.stats.arguments import probability

__all__ = ["holm"]


def holm(p_values: Sequence[float], *, names: Sequence[str] | None = None) -> list[float]:
    """
    Holm's step-down adjustment of a family's p-values, in the order they came in.

    The smallest is multiplied by the family's size, the next by one less, and so on; no adjusted value is below the one
    before it (the running maximum), and none exceeds 1. `names` are used in messages only. Raises `ValueError` for an
    empty family and for a p-value that is NaN or outside 0 to 1, naming it.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
    (1979), 65-70.
    """
    given = list(p_values)
    if not given:
        raise ValueError("the family is empty: expected at least one p-value")
    if names is not None and len(names) != len(given):
        raise ValueError(f"{len(names)} names for {len(given)} p-values: expected one name each")
    labels = [f"p-value {at} of {len(given)}" for at in range(1, len(given) + 1)]
    if names is not None:
        labels = [f"{label} ({name})" for label, name in zip(labels, names, strict=True)]
    checked = [probability(label, value) for label, value in zip(labels, given, strict=True)]

    adjusted = [0.0] * len(checked)
    running = 0.0
    for rank, at in enumerate(sorted(range(len(checked)), key=checked.__getitem__)):
        running = max(running, min(1.0, (len(checked) - rank) * checked[at]))
        adjusted[at] = running
    return adjusted
