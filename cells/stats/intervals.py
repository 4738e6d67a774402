"""Confidence intervals of a share."""

from __future__ import annotations

from typing import NamedTuple

from cells.stats.arguments import count, inside_unit

__all__ = ["Interval", "clopper_pearson"]


class Interval(NamedTuple):
    """Both ends of an interval, included."""

    low: float
    high: float


def clopper_pearson(k: int, n: int, *, level: float = 0.95) -> Interval:
    """
    The exact two-sided confidence interval of a share of which `k` of `n` were seen.

    Raises `ValueError` if `k` or `n` is no count, `n` is 0 (the share of nothing is undefined), `k` is above `n`, or
    `level` is not between 0 and 1.

    Source: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934), 404-413; as quantiles of the beta distribution, A. Agresti, Categorical Data
    Analysis, 3rd edition (2013), section 16.6.
    """
    k, n, level = count("k", k), count("n", n, least=1), inside_unit("level", level)
    if k > n:
        raise ValueError(f"k is {k}: expected at most n, which is {n}")
    tail = (1 - level) / 2
    if k == 0:  # in closed form, without scipy: (1 - high) ** n is the tail
        return Interval(0.0, 1 - tail ** (1 / n))
    if k == n:
        return Interval(tail ** (1 / n), 1.0)
    from scipy.special import betaincinv

    return Interval(float(betaincinv(k, n - k + 1, tail)), float(betaincinv(k + 1, n - k, 1 - tail)))
