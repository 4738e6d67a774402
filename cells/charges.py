"""
Who is charged for what was paid: an arm for what its own behaviour cost, nobody for what failed around it.

Charge is not class. A try that ended by itself or at a limit is charged to its ARM, whatever a referee says of it; the
spend of one that our side voided, that never booted or that a gate refused is SUNK: paid, and caused by no arm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Literal, TypeAlias, get_args

from cells.conditions import Group
from cells.readable import Cell, Outcome
from cells.settled import Settled, class_label
from cells.spent import Paid, Purse, Spent, Total, paid
from harness.analysis import Quantity
from harness.errors import IntegrityError
from harness.values import Declared, End, Halt

__all__ = ["Charge", "ChargedTo", "Charges", "Per", "charge_of", "read_charges", "refuse_leaks"]

ChargedTo: TypeAlias = Literal["ARM", "SUNK"]


def charge_of(end: End) -> ChargedTo:
    """Who is charged for a try, by its end alone."""
    return "ARM" if isinstance(end, (Declared, Halt)) else "SUNK"


@dataclass(frozen=True, kw_only=True, slots=True)
class Per:
    """
    A total shared out over `n` of something, None where there is none of it or where no figure of the total is known.

    It is `at_least` where part of the total is unknown or a lower bound.
    """

    value: float | None
    n: int
    bound: Literal["exact", "at_least"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """
    What an arm's tries cost. `arm` is what its own behaviour did (`declared`: of that, the tries that ended by
    themselves), `sunk` what failed around it, `total` both together, as the meter has it. `arm_classes` and
    `sunk_classes` count how those tries ended.

    The rest shares out the ARM charge, by quantity: of the declared ends over them (`per_declared`), of all over all
    that declared or halted (`per_attempt`), and of all over those that passed (`per_pass`, undefined if none did).
    """

    group: Group
    arm: Spent
    declared: Spent
    sunk: Spent
    total: Spent
    tries: int
    arm_classes: Mapping[str, int]
    sunk_classes: Mapping[str, int]
    per_declared: Mapping[str, Per]
    per_attempt: Mapping[str, Per]
    per_pass: Mapping[str, Per]


@dataclass(frozen=True, kw_only=True, slots=True)
class Charges:
    """The charges of each arm, and over all of them what was charged to arms, what is sunk, and the meter's total."""

    arms: tuple[Charge, ...]
    arm: Spent
    sunk: Spent
    total: Spent


def read_charges(settled: Settled) -> Charges:
    """
    Share out what all tries of the declared cells cost. Linear in the tries.

    Raises `IntegrityError` if what arms are charged and what is sunk do not add up to what was paid.
    """
    arms = {key: _Purses() for key in dict.fromkeys(map(_key, settled.declared))}
    meter, ours, lost = Purse(), Purse(), Purse()
    for cell, tries in settled.tries.items():
        purses = arms[_key(cell)]
        for outcome in tries:
            one = paid(outcome)
            meter.add(one)
            purses.add(outcome, one)
    for purses in arms.values():
        ours.pour(purses.declared, purses.halted)
        lost.pour(purses.sunk)
    arm, sunk, total = ours.spent(), lost.spent(), meter.spent()
    refuse_leaks("the run", total, (arm, sunk))
    charges = tuple(_charge(key, purses) for key, purses in arms.items())
    return Charges(arms=charges, arm=arm, sunk=sunk, total=total)


_Key: TypeAlias = tuple[str, str, str]


def _key(cell: Cell) -> _Key:
    return cell.arm, cell.extras, cell.model


@dataclass(slots=True)
class _Purses:
    """What the tries of one arm cost by how they ended, and their classes; `passed` counts those that were accepted."""

    declared: Purse = field(default_factory=Purse)
    halted: Purse = field(default_factory=Purse)
    sunk: Purse = field(default_factory=Purse)
    arm_classes: Counter[str] = field(default_factory=Counter)
    sunk_classes: Counter[str] = field(default_factory=Counter)
    passed: int = 0

    def add(self, outcome: Outcome, one: Paid) -> None:
        """One more try, in the purse of its end."""
        label, end = class_label(outcome), outcome.end
        if charge_of(end) == "SUNK":
            self.sunk.add(one)
            self.sunk_classes[label] += 1
            return
        (self.declared if isinstance(end, Declared) else self.halted).add(one)
        self.arm_classes[label] += 1
        self.passed += outcome.passed is True


def _charge(key: _Key, purses: _Purses) -> Charge:
    arm_name, extras, model = key
    ours, every = Purse(), Purse()
    ours.pour(purses.declared, purses.halted)
    every.pour(ours, purses.sunk)
    arm, declared = ours.spent(), purses.declared.spent()
    return Charge(
        group=Group(benchmark=None, task=None, arm=arm_name, extras=extras, model=model),
        arm=arm,
        declared=declared,
        sunk=purses.sunk.spent(),
        total=every.spent(),
        tries=every.n,
        arm_classes=dict(sorted(purses.arm_classes.items())),
        sunk_classes=dict(sorted(purses.sunk_classes.items())),
        per_declared=_per(declared, purses.declared.n),
        per_attempt=_per(arm, ours.n),
        per_pass=_per(arm, purses.passed),
    )


def _per(total: Spent, n: int) -> dict[str, Per]:
    return {quantity: _shared(getattr(total, quantity), n) for quantity in get_args(Quantity)}


def _shared(total: Total, n: int) -> Per:
    told = n > 0 and (total.n == 0 or total.unknown < total.n)
    whole = not total.unknown and not total.lower_bounds
    return Per(value=total.known / n if told else None, n=n, bound="exact" if whole else "at_least")


def refuse_leaks(whose: str, whole: Spent, parts: Sequence[Spent]) -> None:
    """Raise `IntegrityError` where parts do not add up to the whole: a cost that is nobody's, or somebody's twice."""
    for quantity in get_args(Quantity):
        total: Total = getattr(whole, quantity)
        shares: list[Total] = [getattr(part, quantity) for part in parts]
        for name in ("n", "unknown", "lower_bounds", "known"):
            there, here = getattr(total, name), sum(getattr(share, name) for share in shares)
            if not isclose(there, here, rel_tol=1e-9, abs_tol=1e-9):
                raise IntegrityError(
                    f"{whose}: {quantity} of all tries ({name} {there}) are not those of its charges ({here}): "
                    "expected each try charged once"
                )
