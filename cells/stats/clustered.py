"""McNemar's question where units share a cluster, and Fisher's where they are not paired at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cells.stats.arguments import Alternative, count, direction

__all__ = ["ClusteredMcNemar", "ClusteredPair", "FisherTest", "fisher_exact", "mcnemar_clustered"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusteredPair:
    """One cluster: its `n` pairs, `b01` where the treatment alone passes and `b10` where the control alone does."""

    name: str
    n: int
    b01: int
    b10: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusteredMcNemar:
    """
    A McNemar test for clustered pairs: `z` is positive where the treatment passes more; `clusters` is how many there
    were and `informative` how many of them do not balance out. `z` is None, and `p_value` 1, where none is.
    """

    z: float | None
    clusters: int
    informative: int
    alternative: Alternative
    p_value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FisherTest:
    """Fisher's exact test of two independent shares; `odds_ratio` is the sample's, None where it is no number."""

    odds_ratio: float | None
    alternative: Alternative
    p_value: float


def mcnemar_clustered(clusters: Sequence[ClusteredPair], *, alternative: Alternative) -> ClusteredMcNemar:
    """
    McNemar's test with the variance between clusters, each of which counts alike whatever its size.

    With d = (b01 - b10) / n of a cluster, z is sum(d) / sqrt(sum(d * d)), read as a standard normal; with one pair a
    cluster it is McNemar's own statistic without correction. `greater` claims that the treatment passes more. The
    normal approximation needs many informative clusters: below about 20 read it beside the exact test on one pair each.
    Raises `ValueError` for no cluster, one named twice, and counts that are none or exceed their cluster's pairs.

    Source: V. L. Durkalski, Y. Y. Palesch, S. R. Lipsitz and P. F. Rust, "Analysis of clustered matched-pair data",
    Statistics in Medicine 22 (2003), 2417-2428, section 2.
    """
    alternative = direction(alternative)
    if not clusters:
        raise ValueError("there are no clusters: expected at least one")
    seen: set[str] = set()
    differences = []
    for cluster in clusters:
        if cluster.name in seen:
            raise ValueError(f"cluster {cluster.name!r} is given twice: expected each once")
        seen.add(cluster.name)
        differences.append(_difference(cluster))
    spread = math.sqrt(math.fsum(d * d for d in differences))
    z = math.fsum(differences) / spread if spread else None
    return ClusteredMcNemar(
        z=z,
        clusters=len(clusters),
        informative=sum(d != 0 for d in differences),
        alternative=alternative,
        p_value=1.0 if z is None else _normal_tail(z, alternative),
    )


def _difference(cluster: ClusteredPair) -> float:
    n = count(f"n of cluster {cluster.name!r}", cluster.n, least=1)
    b01 = count(f"b01 of cluster {cluster.name!r}", cluster.b01)
    b10 = count(f"b10 of cluster {cluster.name!r}", cluster.b10)
    if b01 + b10 > n:
        raise ValueError(f"cluster {cluster.name!r} has {b01 + b10} discordant of {n} pairs: expected at most all")
    return (b01 - b10) / n


def _normal_tail(z: float, alternative: Alternative) -> float:
    def above(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2))

    match alternative:
        case "greater":
            return above(z)
        case "less":
            return above(-z)
        case "two-sided":
            return min(1.0, 2 * above(abs(z)))


def fisher_exact(
    treatment_passed: int, treatment_failed: int, control_passed: int, control_failed: int, *, alternative: Alternative
) -> FisherTest:
    """
    Fisher's exact test of two independent groups; `greater` claims that the treatment passes more often.

    For units that are not paired, such as the exhibits that a gate refused in each arm. The two-sided p-value sums all
    tables that are no likelier than the one seen. Raises `ValueError` for a count that is no whole number of 0 or more.

    Source: R. A. Fisher, "The logic of inductive inference", Journal of the Royal Statistical Society 98 (1935), 39-82;
    A. Agresti, Categorical Data Analysis, 3rd edition (2013), section 3.5.
    """
    import numpy as np
    from scipy.stats import fisher_exact as exact

    named = {
        "treatment_passed": treatment_passed,
        "treatment_failed": treatment_failed,
        "control_passed": control_passed,
        "control_failed": control_failed,
    }
    a, b, c, d = (count(label, value) for label, value in named.items())
    alternative = direction(alternative)
    p_value = min(1.0, float(exact(np.array([[a, b], [c, d]]), alternative=alternative).pvalue))
    return FisherTest(odds_ratio=a * d / (b * c) if b * c else None, alternative=alternative, p_value=p_value)
