"""
Who is charged for what was paid: an arm for what its own behaviour cost, nobody for what failed around it.

Charge is not class. A try that ended by itself or at a limit is charged to its ARM, whatever a referee says of it; the
spend of one that our side voided, that never booted or that a gate refused is SUNK: paid, and caused by no arm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from operator import attrgetter
from typing import Literal, TypeAlias, get_args

from cells.groups import Group
from cells.readable import Cell, Outcome
from cells.settled import Settled, class_label
from cells.spent import Purse, Spent, Total
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
    arms: dict[_Key, list[Outcome]] = {key: [] for key in map(_key, settled.declared)}
    for cell, tries in settled.tries.items():
        arms[_key(cell)].extend(tries)
    by_end = {key: _by_end(tries) for key, tries in arms.items()}
    arm = sum((ended.declared + ended.halted for ended in by_end.values()), Purse.of(())).spent()
    sunk = sum((ended.sunk for ended in by_end.values()), Purse.of(())).spent()
    total = Purse.of([outcome for tries in settled.tries.values() for outcome in tries]).spent()
    refuse_leaks("the run", total, (arm, sunk))
    return Charges(arms=tuple(_charge(key, ended) for key, ended in by_end.items()), arm=arm, sunk=sunk, total=total)


_Key: TypeAlias = tuple[str, str, str]
_key: Callable[[Cell], _Key] = attrgetter("arm", "extras", "model")


@dataclass(frozen=True, kw_only=True, slots=True)
class _ByEnd:
    """What the tries of one arm cost by how they ended, and their classes; `passed` counts those that were accepted."""

    declared: Purse
    halted: Purse
    sunk: Purse
    arm_classes: Mapping[str, int]
    sunk_classes: Mapping[str, int]
    passed: int


def _by_end(tries: Sequence[Outcome]) -> _ByEnd:
    ours = [outcome for outcome in tries if charge_of(outcome.end) == "ARM"]
    lost = [outcome for outcome in tries if charge_of(outcome.end) == "SUNK"]
    return _ByEnd(
        declared=Purse.of([outcome for outcome in ours if isinstance(outcome.end, Declared)]),
        halted=Purse.of([outcome for outcome in ours if isinstance(outcome.end, Halt)]),
        sunk=Purse.of(lost),
        arm_classes=_classes(ours),
        sunk_classes=_classes(lost),
        passed=sum([outcome.passed is True for outcome in ours]),
    )


def _classes(tries: Iterable[Outcome]) -> dict[str, int]:
    """How often each class is there, by name."""
    return dict(sorted(Counter(map(class_label, tries)).items()))


def _charge(key: _Key, ended: _ByEnd) -> Charge:
    arm_name, extras, model = key
    ours = ended.declared + ended.halted
    every = ours + ended.sunk
    arm, declared = ours.spent(), ended.declared.spent()
    return Charge(
        group=Group(benchmark=None, task=None, arm=arm_name, extras=extras, model=model),
        arm=arm,
        declared=declared,
        sunk=ended.sunk.spent(),
        total=every.spent(),
        tries=every.n,
        arm_classes=ended.arm_classes,
        sunk_classes=ended.sunk_classes,
        per_declared=_per(declared, ended.declared.n),
        per_attempt=_per(arm, ours.n),
        per_pass=_per(arm, ended.passed),
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
