"""The strata of the contrasts and the guards as tables of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cells.figures import WITHHELD, figure, p_text, rate_text
from cells.score_tables import Sheet
from cells.strata import Stratum

if TYPE_CHECKING:
    from cells.contrasts import ContrastReading
    from cells.guards import GuardReading
    from cells.readings import Scoreboard

__all__ = ["guard_sheets", "strata_sheets"]


def strata_sheets(board: Scoreboard) -> list[Sheet]:
    """A table for each contrast that is split: its strata, and the pool that they add up to."""
    return [_strata(item) for item in (*board.contrasts, *board.added) if item.strata]


def _strata(item: ContrastReading) -> Sheet:
    withheld = item.status != "final"
    pool = Stratum(
        name="pool",
        pairs=item.pairs,
        p_value=item.p_value,
        odds_ratio=item.odds_ratio,
        share=item.share,
        share_low=item.share_low,
        share_high=item.share_high,
    )
    return Sheet(
        title=f"Strata of {item.name}",
        header=("stratum", "pairs", "b01", "b10", "halted", "no verdict", "raw p", "odds ratio", "share", "interval"),
        rows=tuple(
            (
                part.name,
                figure(part.pairs.declared),
                figure(part.pairs.treatment_only),
                figure(part.pairs.control_only),
                figure(part.pairs.halted),
                figure(part.pairs.without_verdict),
                p_text(part.p_value, withheld=withheld),
                figure(part.odds_ratio, 2),
                rate_text(part.share),
                f"{rate_text(part.share_low)} to {rate_text(part.share_high)}",
            )
            for part in (*item.strata, pool)
        ),
        notes=("The pool's counts are the sum of its strata's. A stratum's p is adjusted with nothing: no verdict.",),
        long=True,
    )


def guard_sheets(board: Scoreboard) -> list[Sheet]:
    """What the registered guards say; nothing where none is registered."""
    if not board.guards:
        return []
    return [
        Sheet(
            title="Guards",
            header=("guard", "kind", "of", "rule", "word", "n", "value"),
            rows=tuple(
                (
                    item.name,
                    item.kind,
                    ", ".join(item.contrasts),
                    item.rule,
                    _word(item),
                    _n(item),
                    figure(item.value, 4),
                )
                for item in board.guards
            ),
            left=5,
            notes=(
                "A guard changes no verdict: it says that a result would not mean what it seems to.",
                "n: the judged pairs of each contrast that it is of.",
            ),
        )
    ]


def _n(item: GuardReading) -> str:
    return ", ".join(map(str, item.n)) or WITHHELD


def _word(item: GuardReading) -> str:
    if item.passes is None:
        return f"undefined: {item.undefined}"
    if item.passes:
        return "PASS"
    return f"FAIL: {', '.join(item.failing)}" if item.failing else "FAIL"
