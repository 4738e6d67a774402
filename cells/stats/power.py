"""What a registered test could show before it is run: exact power, and the separation that the count rule asks for."""

from __future__ import annotations

from cells.stats.arguments import Alternative, count, direction, inside_unit, probability
from cells.stats.exact import mcnemar_exact

__all__ = ["count_rule", "exact_power", "null_separation"]


def exact_power(n: int, share: float, *, alpha: float, alternative: Alternative) -> float:
    """
    The probability that an exact McNemar (or sign) test on `n` discordant pairs gives p <= `alpha`.

    `share` is the true share of discordant pairs that favour the treatment; at one half the result is the test's true
    size, which is at most `alpha`. Conditional on `n`: how many pairs are discordant is not drawn. Raises `ValueError`
    for an argument outside its range.

    Source: the exact conditional distribution, a binomial (n, share); S. W. Duffy, "Asymptotic and exact power for the
    McNemar test and its analogue with R controls per case", Biometrics 40 (1984), 1005-1015, section 3.
    """
    from scipy.special import bdtr, bdtrc

    n, share = count("n", n), probability("share", share)
    alpha, alternative = inside_unit("alpha", alpha), direction(alternative)

    def rejects(more: int, way: Alternative) -> bool:
        # For a two-sided test each tail is looked at alone: both ends reject together only where p is 1.
        return mcnemar_exact(more, n - more, alternative=way).p_value <= alpha

    total = 0.0
    if alternative != "less":
        enough = next((more for more in range((n + 1) // 2, n + 1) if rejects(more, alternative)), None)
        total += 0.0 if enough is None else float(bdtrc(enough - 1, n, share))
    if alternative != "greater":
        few = next((more for more in range(n // 2, -1, -1) if rejects(more, alternative)), None)
        total += 0.0 if few is None else float(bdtr(few, n, share))
    return min(1.0, total)


def null_separation(n: int, *, alpha: float) -> int:
    """
    The smallest d with P(|b - c| >= d) <= `alpha` when `n` discordant pairs fall to either side alike; n + 1 where none
    is: then no counts separate.

    Raises `ValueError` for an argument outside its range. Source: the exact binomial under the null of McNemar's test.
    """
    n, alpha = count("n", n), inside_unit("alpha", alpha)
    for d in range(n % 2, n + 1, 2):
        if d and mcnemar_exact((n + d) // 2, (n - d) // 2, alternative="two-sided").p_value <= alpha:
            return d
    return n + 1


def count_rule(b01: int, b10: int, *, separation: int) -> bool:
    """
    Whether two counts of discordant pairs differ by at least `separation`: below it they are said not to differ.

    `separation` is registered beforehand, as a number or by `null_separation`. Raises `ValueError` for what is no
    count, and for a separation below 1, which everything would reach.
    """
    return abs(count("b01", b01) - count("b10", b10)) >= count("separation", separation, least=1)
