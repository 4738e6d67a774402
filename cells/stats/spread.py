"""What a registered spread of the logarithm allows to be seen: the resolvable ratio and the spread clause."""

from __future__ import annotations

import math

from cells.stats.arguments import count, inside_unit, positive

__all__ = ["resolvable_ratio", "spread_probability"]

_REACH = 9.0
"""How far the normal density is integrated, in standard deviations: beyond, it is below 1e-18."""


def resolvable_ratio(sd_ln: float, n: int, *, alpha: float = 0.05, power: float = 0.80) -> float:
    """
    The smallest ratio of two costs that `n` cells a side can tell from 1.

    It is exp((z_{1-alpha/2} + z_{power}) * sd_ln * sqrt(2 / n)).

    `sd_ln` is the registered standard deviation of the natural log of the cost (never the run's own), `n` the smaller n
    of the comparison. The band is two-sided: a ratio is resolved above the value or below its reciprocal. Raises
    `ValueError` for an argument outside its range.

    Source: G. van Belle and D. C. Martin, "Sample size as a function of coefficient of variation and ratio of means",
    The American Statistician 47 (1993), 165-167, solved for the ratio under a known log standard deviation.
    """
    from scipy.special import ndtri

    sd_ln, n = positive("sd_ln", sd_ln), count("n", n, least=1)
    alpha, power = inside_unit("alpha", alpha), inside_unit("power", power)
    exponent = (float(ndtri(1 - alpha / 2)) + float(ndtri(power))) * sd_ln * math.sqrt(2 / n)
    try:
        return math.exp(exponent)
    except OverflowError:
        raise ValueError(f"sd_ln is {sd_ln!r}: the ratio exp({exponent:.0f}) is no number a machine holds") from None


def spread_probability(ratio: float, sd_ln: float, n: int) -> float:
    """
    The probability that the largest of `n` lognormal costs is more than `ratio` times the smallest.

    With a standard deviation of `sd_ln` in the natural log it is P(R > ln(ratio) / sd_ln), R being the range of `n`
    standard normals: how often a condition looks wide by sampling alone. Raises `ValueError` for a ratio below 1, an
    `n` below 2 (one cost has no spread), or an argument that is no number.

    Source: L. H. C. Tippett, Biometrika 17 (1925), 364-387; H. A. David and H. N. Nagaraja, Order Statistics, 3rd
    edition (2003), section 2.3, for the distribution of the range.
    """
    from scipy.integrate import quad
    from scipy.special import ndtr

    ratio, sd_ln, n = positive("ratio", ratio), positive("sd_ln", sd_ln), count("n", n, least=2)
    if ratio < 1:
        raise ValueError(f"ratio is {ratio!r}: expected 1 or more, being the largest over the smallest")
    width = math.log(ratio) / sd_ln

    def density(least: float) -> float:
        # The least of n lies here, and the other n - 1 lie within `width` above it.
        within = float(ndtr(least + width) - ndtr(least))
        return n * math.exp(-least * least / 2) / math.sqrt(2 * math.pi) * within ** (n - 1)

    narrow, _ = quad(density, -_REACH, _REACH, limit=200, epsabs=1e-12, epsrel=1e-10)
    return min(1.0, max(0.0, 1 - narrow))
