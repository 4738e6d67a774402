"""The tables of who paid for what, and of what an outcome cost: each names its denominator; no money stands alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cells.charges import Charge, Charges, Per
from cells.figures import UNDEFINED, figure, whole_text
from cells.readings import Scoreboard
from cells.score_tables import Labels, Sheet
from cells.spent import Spent, Total

__all__ = ["charge_sheet", "cost_sheets", "share_sheet"]

DENOMINATORS = (
    ("per_declared", "declared end"),
    ("per_attempt", "attempt"),
    ("per_pass", "pass"),
)
"""What the ARM charge is shared out over, and what that is called."""


def cost_sheets(board: Scoreboard) -> list[Sheet]:
    """What was paid by arm and charge, and what an outcome cost; none for a board without an arm."""
    return [charge_sheet(board), share_sheet(board)] if board.charges.arms else []


def charge_sheet(board: Scoreboard) -> Sheet:
    """What each arm's tries cost, who is charged for it, and beside that how they ended."""
    label = Labels((charge.group for charge in board.charges.arms), ["arm"])
    rows = [row for charge in board.charges.arms for row in _charge_rows(label(charge.group), charge)]
    return Sheet(
        title="What was paid, by arm and charge: sums over tries",
        header=(label.head, "charge", "ended as", "tries", "usd", "exact/bound/void", "calls", "wall s", "tokens"),
        rows=(*rows, *_whole_rows(board.charges)),
        left=3,
        notes=(
            *label.notes,
            "ARM: tries that declared or halted, whatever their class.",
            "SUNK: tries that were voided, refused or never booted: paid, and charged to no arm.",
            "exact/bound/void: how many prices, of tries that had a call, are which.",
        ),
    )


def _charge_rows(name: str, charge: Charge) -> Iterable[tuple[str, ...]]:
    ours, lost = sum(charge.arm_classes.values()), sum(charge.sunk_classes.values())
    yield name, "ARM", _classes(charge.arm_classes), figure(ours), *_paid(charge.arm)
    yield name, "SUNK", _classes(charge.sunk_classes), figure(lost), *_paid(charge.sunk)
    yield name, "both", "", figure(charge.tries), *_paid(charge.total)


def _whole_rows(charges: Charges) -> Iterable[tuple[str, ...]]:
    ours = sum(sum(charge.arm_classes.values()) for charge in charges.arms)
    lost = sum(sum(charge.sunk_classes.values()) for charge in charges.arms)
    yield "all arms", "ARM", "", figure(ours), *_paid(charges.arm)
    yield "all arms", "SUNK", "", figure(lost), *_paid(charges.sunk)
    yield "all arms", "both", "", figure(ours + lost), *_paid(charges.total)


def _classes(classes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in classes.items()) or "none"


def _paid(paid: Spent) -> tuple[str, ...]:
    usd = paid.usd
    kinds = f"{usd.exact}/{usd.lower_bounds}/{usd.unknown}"
    return _sum(usd, 4), kinds, _sum(paid.calls, 0), _sum(paid.wall_s, 2), _sum(paid.tokens, 0)


def _sum(total: Total, digits: int) -> str:
    """A sum; of figures that are partly unknown or bounds, what is known, and that it is more."""
    if total.n and total.unknown == total.n:
        return UNDEFINED
    more = "at least " if total.unknown or total.lower_bounds else ""
    return more + figure(total.known, digits)


def share_sheet(board: Scoreboard) -> Sheet:
    """The ARM charge by denominator: a declared end, an attempt, a pass."""
    label = Labels((charge.group for charge in board.charges.arms), ["arm"])
    return Sheet(
        title="What an outcome cost, by arm: the ARM charge over its denominator",
        header=(label.head, "per", "n", "usd", "calls", "wall s", "tokens"),
        rows=tuple(
            (label(charge.group), called, figure(per["usd"].n), *_shares(per))
            for charge in board.charges.arms
            for name, called in DENOMINATORS
            for per in [getattr(charge, name)]
        ),
        left=2,
        notes=(
            *label.notes,
            "Per declared end: what those ends cost, over them. Per attempt: what all that declared or halted cost.",
            "Per pass: what all attempts cost, over those that passed; undefined where none did. SUNK is in none.",
            *board.confounds,
        ),
    )


def _shares(per: Mapping[str, Per]) -> Iterable[str]:
    yield _share(per["usd"], 4)
    yield _share(per["calls"], 2)
    yield _share(per["wall_s"], 2)
    yield _whole(per["tokens"])


def _share(per: Per, digits: int) -> str:
    return UNDEFINED if per.value is None else _more(per) + figure(per.value, digits)


def _whole(per: Per) -> str:
    return UNDEFINED if per.value is None else _more(per) + whole_text(per.value)


def _more(per: Per) -> str:
    return "at least " if per.bound == "at_least" else ""
