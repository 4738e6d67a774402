"""Exact tests on two counts: the sign test and McNemar's, both a binomial with one half."""

from __future__ import annotations

from dataclasses import dataclass

from cells.stats.arguments import Alternative, count, direction

__all__ = ["McNemarTest", "SignTest", "best_attainable_p", "mcnemar_exact", "sign_test", "smoothed_odds_ratio"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SignTest:
    """A sign test: `n` is `wins + losses`; ties are not in it."""

    wins: int
    losses: int
    n: int
    alternative: Alternative
    p_value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class McNemarTest:
    """
    An exact McNemar test. `b01` counts pairs where the control fails and the treatment passes, `b10` those where the
    control passes and the treatment fails; `n` is their sum, the discordant pairs.
    """

    b01: int
    b10: int
    n: int
    alternative: Alternative
    p_value: float


def _binomial_half(more: int, n: int, alternative: Alternative) -> float:
    """The p-value of `more` successes of `n` under a probability of one half, which makes two-sided twice the tail."""
    from scipy.special import betainc

    def at_least(k: int) -> float:
        # The upper tail of the binomial is the regularised incomplete beta function; k = 0 is outside its domain.
        return 1.0 if k == 0 else float(betainc(k, n - k + 1, 0.5))

    match alternative:
        case "greater":
            return at_least(more)
        case "less":
            return at_least(n - more)
        case "two-sided":
            return min(1.0, 2 * at_least(max(more, n - more)))


def sign_test(wins: int, losses: int, *, alternative: Alternative) -> SignTest:
    """
    The exact sign test of `wins` against `losses`; `greater` claims that wins are the likelier.

    Ties say nothing of direction: the caller leaves them out and reports how many there were. Without wins and losses
    the p-value is 1. Raises `ValueError` for a count that is no whole number of 0 or more.

    Source: W. J. Dixon and A. M. Mood, "The statistical sign test", JASA 41 (1946), 557-566; W. J. Conover, Practical
    Nonparametric Statistics, 3rd edition (1999), section 3.4, for the treatment of ties.
    """
    wins, losses, alternative = count("wins", wins), count("losses", losses), direction(alternative)
    n = wins + losses
    return SignTest(
        wins=wins, losses=losses, n=n, alternative=alternative, p_value=_binomial_half(wins, n, alternative)
    )


def mcnemar_exact(b01: int, b10: int, *, alternative: Alternative) -> McNemarTest:
    """
    The exact (conditional) McNemar test on the two counts of discordant pairs.

    `b01`: the control fails and the treatment passes. `b10`: the control passes and the treatment fails. `greater`
    claims that the treatment passes more, which is b01 > b10. Without a discordant pair the p-value is 1. Raises
    `ValueError` for a count that is no whole number of 0 or more.

    Source: Q. McNemar, Psychometrika 12 (1947), 153-157; in its exact conditional form M. W. Fagerland, S. Lydersen and
    P. Laake, BMC Medical Research Methodology 13:91 (2013), "The exact conditional test".
    """
    b01, b10, alternative = count("b01", b01), count("b10", b10), direction(alternative)
    n = b01 + b10
    return McNemarTest(b01=b01, b10=b10, n=n, alternative=alternative, p_value=_binomial_half(b01, n, alternative))


def best_attainable_p(n: int, *, alternative: Alternative) -> float:
    """
    The smallest p-value that a sign test or an exact McNemar test on `n` untied pairs can give: all in one direction.

    One-sided it is 0.5 ** n, so 4 pairs can never reach 0.05. Raises `ValueError` for an `n` that is no count.

    Source: the support of the binomial; Conover, Practical Nonparametric Statistics, 3rd edition (1999), section 3.4.
    """
    n, alternative = count("n", n), direction(alternative)
    return _binomial_half(0 if alternative == "less" else n, n, alternative)


def smoothed_odds_ratio(b01: int, b10: int) -> float:
    """
    The discordant odds ratio with a half added to each count, (b01 + 0.5) / (b10 + 0.5): finite even with a zero.

    Raises `ValueError` for a count that is no whole number of 0 or more.

    Source: J. B. S. Haldane, Annals of Human Genetics 20 (1956), 309-311, and F. J. Anscombe, Biometrika 43 (1956),
    461-464, for the added half; A. Agresti, Categorical Data Analysis, 3rd edition (2013), section 11.1, for the ratio.
    """
    return (count("b01", b01) + 0.5) / (count("b10", b10) + 0.5)
