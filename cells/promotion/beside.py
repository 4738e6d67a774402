"""A confirmation's report names what it confirms: two verdicts side by side, and no figure over both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from cells.comparison_tables import claim_text, verdict_text
from cells.contrast_notes import qualified
from cells.figures import UNDEFINED, figure, p_text
from cells.readings import Scoreboard, scoreboard_to_json
from cells.report_document import Part, Prose
from cells.score_tables import Sheet

if TYPE_CHECKING:
    from harness.analysis import Alternative

__all__ = ["confirmed_parts"]

TOLD = (
    "Each effect was promoted from a discovery run, once, before this experiment was frozen. The discovery's figures "
    "stand beside this run's as they stood then: they are no evidence here, and no figure is taken over both runs."
)


def confirmed_parts(
    confirms: Sequence[Mapping[str, Any]], board: Scoreboard, audits: Sequence[Mapping[str, Any]]
) -> list[Part]:
    """A table for each effect that a run confirms: what was kept of the discovery, and what this board says."""
    if not confirms:
        return []
    by_name = {reading["name"]: reading for reading in scoreboard_to_json(board)["contrasts"]}
    here = {"registration": board.registration_id, "audit": audits[-1]["verdict"] if audits else "none is kept"}
    return [Prose(text=TOLD), *(_sheet(row, by_name[row["confirmation"]["contrast"]], here) for row in confirms)]


def _sheet(row: Mapping[str, Any], now: Mapping[str, Any], here: Mapping[str, str]) -> Sheet:
    was = row["figures"]["reading"]
    told = {"registration": row["discovery"], "audit": row["audit"]["verdict"]}
    sides = [_side(was, told), _side(now, here)]
    return Sheet(
        title=f"Effect {was['name']}: discovery and confirmation",
        header=("", "discovery", "confirmation"),
        rows=tuple((name, sides[0][name], sides[1][name]) for name in sides[0]),
        left=3,
        notes=tuple(_notes(row)),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """What was kept of a reading, as far as its claim and verdict are worded by it."""

    treatment: str
    control: str
    extras: str
    model: str | None
    alternative: Alternative
    family: str
    registered: bool
    status: str
    supported: bool | None


def _side(reading: Mapping[str, Any], run: Mapping[str, str]) -> dict[str, str]:
    told = _Told(**{item.name: reading[item.name] for item in fields(_Told)})
    pairs, unpaired = reading["pairs"], reading["groups"] is not None
    withheld = reading["status"] != "final"
    return {
        "run": run["registration"],
        "claim": claim_text(told),
        "qualifiers": qualified(reading["qualifiers"]),
        "pairs": UNDEFINED if unpaired else figure(pairs["declared"]),
        "b01": UNDEFINED if unpaired else figure(pairs["treatment_only"]),
        "b10": UNDEFINED if unpaired else figure(pairs["control_only"]),
        "p": p_text(reading["p_value"], withheld=withheld),
        "Holm p": p_text(reading["p_holm"], withheld=withheld),
        "verdict": verdict_text(told),
        "audit verdict": run["audit"],
    }


def _notes(row: Mapping[str, Any]) -> Iterator[str]:
    target, effect = row["confirmation"], row["effect"]
    yield f"Promoted by line {row['line']} of the record of {row['discovery']}, on its head {row['audit']['head']}."
    yield (
        f"Of the confirmation's units {target['shared_units']} are among the discovery's {len(effect['units'])}"
        f"{', as declared disjoint' if target['disjoint'] else ''}; seeds are of {row['seed_namespace']!r} there and "
        f"of {target['seed_namespace']!r} here."
    )
    if target["direction"] is not None:
        yield f"It claims another direction than the discovery registered or saw: {target['direction']}"
    for name, (was, now) in row["setting_differs"].items():
        yield f"Not as in the discovery: {name} was {was}, is {now}."
    if row["figures"]["amended"] is not None:
        yield "The discovery was amended; its frozen reading is shown, and the one in force was kept beside it."
