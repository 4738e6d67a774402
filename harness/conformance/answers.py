"""What a referee must answer: yes to the reference, no to what is degenerate, the same twice, and nothing sealed."""

from __future__ import annotations

from itertools import pairwise

from harness.conformance.candidates import emptied
from harness.conformance.rows import Row, row
from harness.conformance.trial import Answer, Trial
from harness.errors import ProctorError
from harness.tasks.mutants import mutants
from harness.tree import Tree
from harness.views import PublicReading

__all__ = ["battery", "nothing", "public_tier", "reference", "repeats", "reports", "sample_of", "well_formed"]

_FACTS = 6
_LINE = 24


async def reference(trial: Trial) -> Row:
    """Yes to the reference."""
    answer = await trial.judge(trial.referee.reference(trial.task.sealed))
    return row("reference", _unless(answer, "accepted"), expected="accepted", seen=str(answer))


async def battery(trial: Trial) -> Row:
    """No to each degenerate candidate of the referee's own."""
    made = dict(trial.referee.battery(trial.task.open, trial.task.sealed))
    faults = [] if made else ["the battery is empty"]
    for name, tree in made.items():
        faults += [f"{name} was {fault}" for fault in _unless(await trial.judge(tree), "rejected")]
    return row("battery", faults, expected="degenerate candidates, each rejected", seen=f"{len(made)} rejected")


async def nothing(trial: Trial) -> Row:
    """No to no file at all, and to files with nothing in them."""
    right = trial.referee.reference(trial.task.sealed)
    faults, said = [], []
    for name, tree in {"no file": Tree(), "the reference's files, empty": emptied(right)}.items():
        answer = await trial.judge(tree)
        faults += [f"{name} was {fault}" for fault in _unless(answer, "rejected")]
        said.append(f"{name}: {answer.said}")
    return row("empty", faults, expected="rejected", seen="; ".join(said))


def _unless(answer: Answer, standing: str) -> list[str]:
    return [] if answer.standing == standing else [str(answer)]


def sample_of(trial: Trial) -> Tree:
    """A candidate that must be rejected, and as near to a right one as there is: a mutant, or of the battery."""
    try:
        made = mutants(trial.task.sealed)
    except ProctorError:
        made = {}
    degenerate = trial.referee.battery(trial.task.open, trial.task.sealed)
    found = [*made.values(), *(tree for tree in degenerate.values() if tree.size)]
    return found[0] if found else Tree()


async def repeats(trial: Trial) -> Row:
    """Twice the same of the reference and of one that is wrong, by two instances."""
    faults = []
    for name, tree in (
        ("the reference", trial.referee.reference(trial.task.sealed)),
        ("a wrong one", sample_of(trial)),
    ):
        answers = [await trial.judge(tree) for _ in range(3)]
        for one, other in pairwise(answers):
            if one.verdict is None or other.verdict is None:
                faults.append(f"{name}: no verdict ({one}, then {other})")
            elif not one.verdict.same_as(other.verdict):
                faults.append(f"{name}: {one}, then {other}{_difference(one, other)}")
    return row("repeatable", faults, expected="the same of the same, three times", seen="all three alike")


def _difference(one: Answer, other: Answer) -> str:
    assert one.verdict is not None
    assert other.verdict is not None
    names = ("reading", "standing", "tiers", "tests", "would_be", "code", "suite")
    pairs = zip(names, one.verdict.said, other.verdict.said, strict=True)
    return f", different in {', '.join(name for name, was, now in pairs if was != now)}"


def well_formed(trial: Trial) -> Row:
    """What every verdict of the whole trial was looked at for."""
    faults = list(dict.fromkeys(trial.malformed)) if trial.verdicts else ["not measured: there was no verdict"]
    expected = "standing by the class table; digests of exhibit and suite; an execution of its own"
    return row("verdicts", faults, expected=expected, seen=f"{len(trial.verdicts)} verdicts, all so")


def reports(trial: Trial) -> Row:
    """Every verdict tells what judging took, and what the subject was allowed."""
    silent = [item for item in trial.verdicts if item.seconds is None or not item.limits]
    faults = [f"{len(silent)} of {len(trial.verdicts)} leave out `seconds` or `limits`"] if silent else []
    limits = ", ".join(sorted({name for item in trial.verdicts for name in item.limits}))
    return row("time and limits", faults, expected="each verdict has `seconds` and `limits`", seen=f"limits: {limits}")


async def public_tier(trial: Trial) -> Row:
    """What a seat may learn between rounds, as far as it can be told: which tests are public only the referee knows."""
    expected = "a reading of its own classes, at most six whole facts, no line of the solution"
    right = trial.referee.reference(trial.task.sealed)
    code = right.text(next(iter(right))) if len(right) else ""
    async with trial.referee.public_check(trial.task.open, trial.task.sealed, trial.rooms) as check:
        if check is None:
            return Row(rule="public tier", held=None, seen="there is none", expected=expected)
        yes, no = await check(code), await check("")
    faults = [fault for said in (yes, no) for fault in _reading_faults(trial, said)]
    faults += ["what is empty was accepted"] * no.accepted
    return row("public tier", faults, expected=expected, seen=f"{yes.reading}, and {no.reading} of what is empty")


def _reading_faults(trial: Trial, said: PublicReading) -> list[str]:
    known = trial.referee.classes.get(said.reading)
    faults = [] if known else [f"{said.reading!r} is not in the class table"]
    faults += [f"{said.reading} is {known}, and it says accepted: {said.accepted}"] * (
        said.accepted != (known == "accepted")
    )
    faults += [f"{said.passed} of {said.total} passed"] * (not 0 <= said.passed <= said.total)
    faults += [f"{len(said.facts)} facts"] * (len(said.facts) > _FACTS)
    told = [text for fact in said.facts for text in (fact.call, fact.expected, fact.observed, fact.raised)]
    shown = "\n".join(text for text in (*told, said.unbuilt) if text is not None)
    given = trial.task.open.instruction + "".join(map(trial.task.open.environment.text, trial.task.open.environment))
    lines = {
        line.strip()
        for path in trial.task.sealed.solution
        for line in trial.task.sealed.solution.text(path).split("\n")
    }
    leaked = sorted(line for line in lines if len(line) >= _LINE and line in shown and line not in given)
    return faults + [f"a fact holds a line of the solution: {line[:60]!r}" for line in leaked[:2]]
