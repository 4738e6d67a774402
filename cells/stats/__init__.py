"""
The statistics of a registered comparison: pure functions of counts, without I/O, without a clock or chance.

Each is named as its field names it, and says where it is from. What it can't answer for (a count that is no count, an
empty family) it refuses with a `ValueError` that shows the value; what has no answer is `None`, never 0 or NaN.

Importing this package is cheap: scipy is imported by the functions that need it.
"""

from cells.stats.exact import (
    McNemarTest,
    SignTest,
    best_attainable_p,
    mcnemar_exact,
    sign_test,
    smoothed_odds_ratio,
)
from cells.stats.family import holm
from cells.stats.intervals import Interval, clopper_pearson
from cells.stats.spread import resolvable_ratio, spread_probability

__all__ = [
    "Interval",
    "McNemarTest",
    "SignTest",
    "best_attainable_p",
    "clopper_pearson",
    "holm",
    "mcnemar_exact",
    "resolvable_ratio",
    "sign_test",
    "smoothed_odds_ratio",
    "spread_probability",
]
