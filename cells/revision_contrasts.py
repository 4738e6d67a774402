"""Arms of a revision experiment against each other, cell by cell, with tests that know which cells belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

from cells.revision_trail import Trail
from cells.stats import Cluster, ClusteredPair, cluster_bootstrap, mcnemar_clustered, mcnemar_exact
from cells.strata import Placer
from harness.outcome import CellOutcome
from harness.seeds import seed
from harness.values import Declared, Unit

__all__ = ["LEVEL", "REPLICATES", "Measure", "RevisionContrast", "Seen", "contrast_arms"]

Measure: TypeAlias = Literal["kept", "repaired", "sound"]
"""
What a pair of cells is compared by; true is the good outcome of each.

- `kept`: of correct starts, what shipped is correct (its opposite is harm);
- `repaired`: of wrong starts, what shipped is correct;
- `sound`: the seat ended by itself, the certificate accepts what shipped, and so does the referee.
"""

LEVEL = 0.95
REPLICATES = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A cell's outcome, and the revisions that its transcript tells of."""

    outcome: CellOutcome
    trail: Trail

    @property
    def kept(self) -> bool | None:
        """Of a correct start, whether what shipped is correct; None for others, and where there is no certificate."""
        return self._shipped() if self.trail.started is True else None

    @property
    def repaired(self) -> bool | None:
        """Of a wrong start, whether what shipped is correct; None likewise."""
        return self._shipped() if self.trail.started is False else None

    @property
    def sound(self) -> bool | None:
        """Whether certificate and referee accept what was declared done; None for a cell that was not judged."""
        passed = self.outcome.passed
        return None if passed is None else bool(self._shipped()) and passed

    @property
    def unsound(self) -> bool:
        """Whether the certificate accepts what the referee does not."""
        return self.outcome.passed is False and self._shipped() is True

    def _shipped(self) -> bool | None:
        return self.trail.shipped if isinstance(self.outcome.end, Declared) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class RevisionContrast:
    """
    Two arms by one measure, over `pairs` of cells of one unit, extras and replicate, in so many `clusters`.

    `b01` pairs have the good outcome in the treatment alone, `b10` in the control alone. `p_exact` is McNemar's exact
    test, two-sided, over pairs as if none shared a task; `p_clustered` the test of Durkalski et al. for clustered
    pairs. `difference` is (b01 - b10) / pairs with a percentile interval over whole clusters; None where it is not
    defined. None of this was registered by itself: a verdict rests on registered contrasts alone.
    """

    measure: Measure
    treatment: str
    control: str
    extras: str
    pairs: int
    clusters: int
    b01: int
    b10: int
    p_exact: float
    p_clustered: float
    difference: float | None
    low: float | None
    high: float | None


_Key: TypeAlias = "tuple[Unit, int]"

_MEASURES: Mapping[Measure, Callable[[Seen], bool | None]] = {
    "kept": lambda one: one.kept,
    "repaired": lambda one: one.repaired,
    "sound": lambda one: one.sound,
}


def contrast_arms(seen: Sequence[Seen], place: Placer) -> tuple[RevisionContrast, ...]:
    """Every two arms by every measure that a pair of theirs has, the arm that comes first being the control."""
    arms: dict[tuple[str, str], dict[_Key, Seen]] = {}
    for one in seen:
        cell = one.outcome.cell
        arms.setdefault((cell.extras, cell.arm), {})[cell.unit, cell.replicate] = one
    made = []
    for (extras, control), (other, treatment) in combinations(arms, 2):
        if extras != other:
            continue
        for measure, value in _MEASURES.items():
            pairs = _pairs(arms[extras, treatment], arms[extras, control], value, place)
            if pairs:
                made.append(_contrast(measure, treatment, control, extras, pairs))
    return tuple(made)


def _pairs(
    treatment: Mapping[_Key, Seen],
    control: Mapping[_Key, Seen],
    value: Callable[[Seen], bool | None],
    place: Placer,
) -> dict[str, list[tuple[bool, bool]]]:
    """What both cells of each pair came to, by cluster; a pair of which one says nothing is none."""
    made: dict[str, list[tuple[bool, bool]]] = {}
    for key, one in treatment.items():
        if key not in control:
            continue
        left, right, cluster = value(one), value(control[key]), place(key[0])
        if left is not None and right is not None and cluster is not None:
            made.setdefault(cluster, []).append((left, right))
    return made


def _contrast(
    measure: Measure, treatment: str, control: str, extras: str, pairs: Mapping[str, Sequence[tuple[bool, bool]]]
) -> RevisionContrast:
    clusters = [
        ClusteredPair(
            name=name,
            n=len(of),
            b01=sum(left and not right for left, right in of),
            b10=sum(right and not left for left, right in of),
        )
        for name, of in pairs.items()
    ]
    b01, b10, n = (sum(getattr(cluster, name) for cluster in clusters) for name in ("b01", "b10", "n"))
    low, high = _interval(clusters, f"revisions|{measure}|{treatment}|{control}|{extras}")
    return RevisionContrast(
        measure=measure,
        treatment=treatment,
        control=control,
        extras=extras,
        pairs=n,
        clusters=len(clusters),
        b01=b01,
        b10=b10,
        p_exact=mcnemar_exact(b01, b10, alternative="two-sided").p_value,
        p_clustered=mcnemar_clustered(clusters, alternative="two-sided").p_value,
        difference=(b01 - b10) / n if n else None,
        low=low,
        high=high,
    )


def _interval(clusters: Sequence[ClusteredPair], payload: str) -> tuple[float | None, float | None]:
    """The interval of the difference; None of one cluster, which could not vary."""
    if len(clusters) < 2:
        return None, None
    found = cluster_bootstrap(
        [Cluster(stratum="", name=one.name, total=one.b01 - one.b10, size=one.n) for one in clusters],
        seed=seed(payload),
        replicates=REPLICATES,
        level=LEVEL,
    )
    return found.interval.low, found.interval.high
