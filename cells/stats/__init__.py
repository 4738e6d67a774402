"""
The statistics of a registered comparison: pure functions of counts, without I/O, without a clock or chance.

Each is named as its field names it, and says where it is from. What it can't answer for (a count that is no count, an
empty family) it refuses with a `ValueError` that shows the value; what has no answer is `None`, never 0 or NaN.

Importing this package is cheap: scipy is imported by the functions that need it.
"""

from cells.stats.bootstrap import Bootstrap, Cluster, cluster_bootstrap
from cells.stats.clustered import (
    ClusteredMcNemar,
    ClusteredPair,
    FisherTest,
    fisher_exact,
    mcnemar_clustered,
)
from cells.stats.exact import (
    McNemarTest,
    SignTest,
    best_attainable_p,
    mcnemar_exact,
    sign_test,
    smoothed_odds_ratio,
)
from cells.stats.family import holm
from cells.stats.guards import Guard, harm_gate, material_rescue, stratum_gate
from cells.stats.intervals import Interval, clopper_pearson
from cells.stats.power import count_rule, exact_power, null_separation
from cells.stats.spread import resolvable_ratio, spread_probability

__all__ = [
    "Bootstrap",
    "Cluster",
    "ClusteredMcNemar",
    "ClusteredPair",
    "FisherTest",
    "Guard",
    "Interval",
    "McNemarTest",
    "SignTest",
    "best_attainable_p",
    "clopper_pearson",
    "cluster_bootstrap",
    "count_rule",
    "exact_power",
    "fisher_exact",
    "harm_gate",
    "holm",
    "material_rescue",
    "mcnemar_clustered",
    "mcnemar_exact",
    "null_separation",
    "resolvable_ratio",
    "sign_test",
    "smoothed_odds_ratio",
    "spread_probability",
    "stratum_gate",
]
