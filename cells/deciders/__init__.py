"""
The registered tests of a contrast, one class each: what it says of the judged pairs, and how far unjudged ones reach.

Each works on the same comparison; the functions of `cells.stats` behind them are pure.
"""

from cells.deciders.clustered import ClusteredMcNemarDecider
from cells.deciders.comparison import Comparison, Decider, Figures
from cells.deciders.counted import CountRuleDecider
from cells.deciders.exact import McNemarDecider
from cells.deciders.unpaired import FisherDecider

__all__ = [
    "ClusteredMcNemarDecider",
    "Comparison",
    "CountRuleDecider",
    "Decider",
    "Figures",
    "FisherDecider",
    "McNemarDecider",
    "decider",
]

_DECIDERS: dict[str, type[Decider]] = {
    "mcnemar": McNemarDecider,
    "mcnemar-clustered": ClusteredMcNemarDecider,
    "fisher": FisherDecider,
    "count-rule": CountRuleDecider,
}


def decider(comparison: Comparison) -> Decider:
    """What decides on a comparison, by the test that was registered for it."""
    return _DECIDERS[comparison.item.test](comparison)
