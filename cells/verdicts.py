"""
The referee's verdict on an exhibit, held against the referee's own word: its class table, its suite, the exhibit.

What a referee could not decide may be the machine's doing, so it is judged once more with no other judging beside it.
What it still could not decide then is UNSCORABLE, or raises: nothing that fails here makes a FAIL.
"""

from __future__ import annotations

import structlog

from cells.house import House
from harness.errors import Blamed, RefereeError
from harness.tasks.task import Task
from harness.tree import Exhibit
from harness.values import Verdict

__all__ = ["judge"]

_log = structlog.get_logger("proctor.referee")


async def judge(house: House, task: Task, exhibit: Exhibit, *, by_suite: str | None = None) -> Verdict:
    """
    The referee's verdict on an exhibit, in rooms of its own.

    Raises `Blamed` when, twice, it could not work, or what it said is no verdict on this exhibit by its own class table
    (and by the suite `by_suite`, where that is given).
    """
    try:
        async with house.turns.shared():
            verdict = await _judged(house, task, exhibit, by_suite)
        if verdict.standing != "unscorable":
            return verdict
        why = verdict.detail
    except Blamed as error:
        why = f"{error.cause}: {error}"
    _log.warning("not decided, judged once more alone", task=task.key, exhibit=exhibit.digest[:12], why=why[:300])
    async with house.turns.alone():
        return await _judged(house, task, exhibit, by_suite)


async def _judged(house: House, task: Task, exhibit: Exhibit, by_suite: str | None) -> Verdict:
    try:
        verdict = await house.parts.referee.judge(exhibit, task.open, task.sealed, house.rooms(task))
    except Blamed:
        raise
    except Exception as error:
        raise RefereeError(f"the referee raised {type(error).__name__}: {error}") from error
    known = house.parts.referee.classes
    if known.get(verdict.reading) != verdict.standing:
        raise RefereeError(
            f"the referee said {verdict.reading!r} ({verdict.standing}): its class table has "
            f"{known.get(verdict.reading, 'no such reading')!r}"
        )
    if by_suite is not None and verdict.evidence.suite != by_suite:
        raise RefereeError(f"the verdict is by suite {verdict.evidence.suite}: the registration has {by_suite}")
    if verdict.evidence.code != exhibit.digest:
        raise RefereeError(f"the verdict is on code {verdict.evidence.code}: the exhibit is {exhibit.digest}")
    return verdict
