"""The figures of a scoreboard that may be registered, by what they are of, and what each of them can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from harness.regions import Domain

__all__ = ["FIGURES", "Figure", "Kind"]

Kind: TypeAlias = Literal[
    "a contrast", "a stratum", "a guard", "a ratio", "a task of a ratio", "an arm", "a condition", "the whole set"
]
"""What a figure is of."""

Figures: TypeAlias = "dict[str, Figure]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """
    `meaning` is for people. `domain` is what the figure can be once every cell has its outcome. An `interim` figure is
    there while cells are still missing, so that a stop rule may look at it. `quantity` is the limit of a budget, a
    cell's or for a total the run's, that bounds it. `tests` are the tests that give the figure; empty is all.
    """

    meaning: str
    domain: Domain
    interim: bool = True
    quantity: str = ""
    tests: frozenset[str] = frozenset()

    def exists_for(self, test: str) -> bool:
        """Whether a contrast with this test has the figure."""
        return not self.tests or test in self.tests


_P = Domain(low=0, high=1)
_RATE = Domain(low=0, high=1, undefined=True)
_COUNT = Domain(low=0, whole=True)
_POSITIVE = Domain(low=0, undefined=True)
_PAIRED = frozenset({"mcnemar", "mcnemar-clustered", "count-rule"})
_WITH_P = frozenset({"mcnemar", "mcnemar-clustered", "fisher"})


def _of(domain: Domain, /, *, interim: bool = True, tests: frozenset[str] = frozenset(), **meanings: str) -> Figures:
    """Figures that can be the same things, from their names and meanings."""
    return {
        name: Figure(meaning=meaning, domain=domain, interim=interim, tests=tests) for name, meaning in meanings.items()
    }


def _medians(before: str, of: str) -> Figures:
    units = {"tokens": "tokens", "usd": "US dollars", "calls": "calls of the model", "wall_s": "seconds of the seat"}
    return {
        f"{before}{name}": Figure(meaning=f"median {unit} {of}", domain=_POSITIVE, quantity=name)
        for name, unit in units.items()
    }


_PAIRS: Figures = {
    **_of(
        _COUNT,
        tests=_PAIRED,
        declared="declared pairs",
        judged="pairs with a verdict on both sides",
        both="judged pairs where both pass",
        neither="judged pairs where none passes",
        b01="judged pairs where the treatment alone passes",
        b10="judged pairs where the control alone passes",
        discordant="b01 + b10",
        halted="pairs with a halted side, and nothing else in the way of a verdict",
    ),
    **_of(_COUNT, interim=False, tests=_PAIRED, without_verdict="pairs with a side that has no number, or is missing"),
    **_of(Domain(whole=True), tests=_PAIRED, net="b01 - b10"),
    **_of(
        _RATE,
        tests=_PAIRED,
        treatment_rate="the treatment's passes over judged pairs",
        control_rate="the control's passes over judged pairs",
    ),
    **_of(Domain(low=-1, high=1, undefined=True), tests=_PAIRED, rate_difference="the net over judged pairs"),
    **_of(
        _RATE,
        interim=False,
        tests=_PAIRED,
        share="b01 over discordant pairs",
        share_low="the low end of its exact interval",
        share_high="the high end of its exact interval",
    ),
    **_of(_POSITIVE, interim=False, tests=_PAIRED, odds_ratio="the smoothed odds ratio of the discordant pairs"),
}

_CONTRAST: Figures = {
    **_of(
        _P, interim=False, tests=_WITH_P, p_value="its p-value as it is", p_holm="the p-value adjusted in its family"
    ),
    **_of(
        _P,
        interim=False,
        tests=frozenset({"mcnemar"}),
        p_low="the least p-value over every reading of the halts",
        p_high="the greatest p-value over every reading of the halts",
    ),
    **_PAIRS,
}

_STRATUM: Figures = {
    **_of(_P, interim=False, tests=frozenset({"mcnemar"}), p_value="its exact p-value, adjusted with nothing"),
    **_PAIRS,
}

_GUARD: Figures = {
    **_of(Domain(low=0, high=1, whole=True, undefined=True), interim=False, passes="1 where it passes, 0 where not"),
    **_of(Domain(undefined=True), interim=False, value="the figure that decided"),
}

_RATIO: Figures = {
    **_of(_RATE, interim=False, p_value="of the sign test over tasks; undefined without a win or loss"),
    **_of(
        _COUNT,
        wins="tasks where the treatment costs more",
        losses="tasks where it costs less",
        ties="tasks with a ratio of exactly 1",
    ),
    **_of(_COUNT, interim=False, undefined="tasks without a ratio"),
}

_TASK_OF_RATIO: Figures = _of(
    _POSITIVE,
    ratio="the treatment's median over the control's",
    treatment_median="the treatment's median of the ratio's quantity",
    control_median="the control's median of the ratio's quantity",
)

_CENSUS: Figures = _of(
    _COUNT,
    planned="declared cells",
    judged="cells that passed or failed",
    passed="cells that passed",
    failed="cells that were judged and did not pass",
    halted="cells that a limit stopped",
    void="cells that are VOID",
    failed_boot="cells that did not boot",
    refused="cells that a gate refused",
    unscorable="cells that the referee could not decide",
)

_OF_ARM: Figures = {
    **_CENSUS,
    **_of(
        _RATE,
        pass_rate="passed over judged cells",  # noqa: S106
        rate_low="the same with every halt as a failure",
        rate_high="the same with every halt as a pass",
    ),
    **_medians("median_", "over the cells that ended by themselves or at a limit"),
}

_WHOLE_SET: Figures = {
    **_CENSUS,
    **_of(_COUNT, done="cells that have an outcome, VOID too"),
    **{
        f"{quantity}_total": Figure(meaning=meaning, domain=_POSITIVE, quantity=quantity)
        for quantity, meaning in {
            "usd": "US dollars of every try together; undefined if one has no price",
            "tokens": "tokens of every try together; undefined if those of one are not known",
            "calls": "calls of the model of every try together",
            "wall_s": "seconds of the seats of every try together",
        }.items()
    },
}

FIGURES: Mapping[Kind, Figures] = MappingProxyType(
    {
        "a contrast": _CONTRAST,
        "a stratum": _STRATUM,
        "a guard": _GUARD,
        "a ratio": _RATIO,
        "a task of a ratio": _TASK_OF_RATIO,
        "an arm": _OF_ARM,
        "a condition": _OF_ARM,
        "the whole set": _WHOLE_SET,
    }
)
"""By what a figure is of, the figures that there are."""
