"""Arm-blind: nothing that could tell a referee which arm an exhibit comes from may change what it says of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from harness.conformance.answers import sample_of
from harness.conformance.rows import Row, row
from harness.conformance.trial import Answer, Trial
from harness.environment import lent
from harness.tasks.task import OpenHalf
from harness.tree import Tree

__all__ = ["arm_blind"]

_TELLS = ("files", "instruction", "extras and details", "environment")


async def arm_blind(trial: Trial) -> Row:
    """
    The reference and a wrong candidate, with each of the arms named in files beside them, in the open half of the task
    and in the harness's environment, all at once; where that changes anything, each by itself, to say which.
    """
    faults = []
    for what, tree in (
        ("the reference", trial.referee.reference(trial.task.sealed)),
        ("a wrong one", sample_of(trial)),
    ):
        plain = await trial.judge(tree)
        for arm in trial.arms:
            told = await _told(trial, tree, arm, _TELLS)
            if _same(plain, told):
                continue
            alone = [tell for tell in _TELLS if not _same(plain, await _told(trial, tree, arm, (tell,)))]
            faults.append(f"{what} is {plain}, with arm {arm} named in {' or '.join(alone) or 'all places'} {told}")
    seen = f"the same with {', '.join(trial.arms)} named in {', '.join(_TELLS)}"
    return row("arm-blind", faults, expected="what it says does not depend on the arm", seen=seen)


def _same(one: Answer, other: Answer) -> bool:
    """Whether both say the same of code that differs in a file that nothing runs."""
    if one.verdict is None or other.verdict is None:
        return False
    left, right = (replace(item.verdict.evidence, code="", execution="") for item in (one, other) if item.verdict)
    return replace(one.verdict, evidence=left).same_as(replace(other.verdict, evidence=right))


async def _told(trial: Trial, tree: Tree, arm: str, tells: Sequence[str]) -> Answer:
    beside = {f"{arm}.txt": f"{arm}\n", "ARM.md": f"arm: {arm}\n", ".arm": arm}
    shown = tree.merged(Tree.of(beside)) if "files" in tells else tree
    with _named(arm) if "environment" in tells else ExitStack():
        return await trial.judge(shown, task=_open(trial.task.open, arm, tells))


def _open(task: OpenHalf, arm: str, tells: Sequence[str]) -> OpenHalf:
    if "instruction" in tells:
        task = replace(task, instruction=f"{task.instruction}\n\nThis is arm {arm}.\n")
    if "extras and details" in tells:
        task = replace(
            task, extras={**task.extras, "arm": arm, arm: arm}, details={**task.details, "arm": arm, arm: arm}
        )
    return task


@contextmanager
def _named(arm: str) -> Iterator[None]:
    """The arm's name in the environment of the harness, where nothing of ours has it."""
    with ExitStack() as stack:
        for variable in ("PROCTOR_ARM", "PROCTOR_CONDITION"):
            stack.enter_context(lent(variable, arm))
        yield
