"""
The conformance suite: what every referee must hold to, shown on one task in live rooms.

    found = await check_referee(MyReferee, task, rooms, name="mine")
    assert found.conforms, found.refusal

`rooms` must be sealed: hostile candidates are run in them. Nothing else of a machine is touched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from harness.conformance import answers, declared
from harness.conformance import hostile as hostile_rules
from harness.conformance.blind import arm_blind
from harness.conformance.breakage import own_failure, vouched
from harness.conformance.rows import Conformance, Row
from harness.conformance.sealed_rooms import sealed_in_rooms
from harness.conformance.trial import Make, Trial
from harness.errors import UsageError, unknown_name, unwrapped
from harness.ports import RoomOpener
from harness.tasks.task import Task
from harness.tree import Tree

__all__ = ["ARMS", "RULES", "check_referee", "refuse_unknown"]

ARMS = ("B", "P")
"""The arms that are named to a referee, to see that it does not listen."""

Look: TypeAlias = Callable[[Trial], Row | Awaitable[Row]]

RULES: Mapping[str, Look] = {
    "name": declared.own_name,
    "unknown option": declared.unknown_option,
    "signature": declared.signature,
    "class table": declared.class_table,
    "suite digest": declared.same_digest,
    "suite digest tells changes": declared.tells_changes,
    "reference": answers.reference,
    "battery": answers.battery,
    "empty": answers.nothing,
    "repeatable": answers.repeats,
    "arm-blind": arm_blind,
    "public tier": answers.public_tier,
    "walled": hostile_rules.walled,
    "bounded": hostile_rules.bounded,
    "not believed": hostile_rules.unbelieved,
    "own failure": own_failure,
    "garbage": vouched,
    "sealed material": sealed_in_rooms,
    "verdicts": answers.well_formed,
    "time and limits": answers.reports,
}
"""In the order in which they are looked at: the last two are about the verdicts of all those before."""


def refuse_unknown(rules: Collection[str]) -> None:
    """Raise `UsageError` for the first rule that there is not, with those that there are."""
    for rule in sorted(set(rules) - set(RULES)):
        raise UsageError(unknown_name("rule", rule, RULES))


async def check_referee(
    make: Make,
    task: Task,
    rooms: RoomOpener,
    *,
    name: str,
    options: Mapping[str, Any] | None = None,
    arms: Sequence[str] = ARMS,
    hostile: Mapping[str, Tree] | None = None,
    bound_s: float = 300.0,
    rules: Collection[str] = tuple(RULES),
    seen: Callable[[Row], None] = lambda _row: None,
) -> Conformance:
    """
    Show every rule of the referee that `make` makes, registered as `name`, on `task`; `seen` gets each row as it comes.

    `hostile` are endless candidates of your own by name, for a language that the suite knows none for. One judgement
    may take `bound_s` seconds; `rules` are those to show. Raises `UsageError` for an unknown rule, and where the
    referee can't be made.
    """
    trial = Trial(
        make=make,
        name=name,
        options=dict(options or {}),
        task=task,
        rooms=rooms,
        bound_s=bound_s,
        arms=arms,
        hostile=hostile or {},
    )
    refuse_unknown(rules)
    rows = []
    for rule, look in ((name, look) for name, look in RULES.items() if name in rules):
        rows.append(await _row(trial, rule, look))
        seen(rows[-1])
    return Conformance(
        referee=name, task=task.key, rows=tuple(rows), left_out=tuple(rule for rule in RULES if rule not in rules)
    )


async def _row(trial: Trial, rule: str, look: Look) -> Row:
    """The row of one rule. Whatever the referee raises while it is looked at, the rule did not hold."""
    try:
        found = look(trial)
        return found if isinstance(found, Row) else await found
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a third party's code: which error it is, is told
        leaf = unwrapped(error) if isinstance(error, BaseExceptionGroup) else error
        return Row(rule=rule, held=False, seen=f"it raised {type(leaf).__name__}: {leaf}", expected="an answer")
