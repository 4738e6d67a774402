"""
The dafny referee on recorded answers of the verifier: what counts is the report, proof by proof. Its summary and its exit
status are good for nothing alone. The real verifier is asked in `tests/live/test_verifier_referee.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import ExperimentError, RefereeError, TaskError
from harness.tasks.folder import load_folder, load_folders
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from referees.verifier import DafnyReferee
from referees.verifier_text import read_text, tokens
from tests.referees.recorded_room import RecordedRooms

EXAMPLES = Path(__file__).parents[2] / "examples" / "verified"
TASK = load_folder(EXAMPLES / "search")
RIGHT = TASK.sealed.solution.text("solution.dfy")
SUMMARY = "Dafny 2.3.0.10506\n\nDafny program verifier finished with {} verified, {} errors\nCompiled assembly into spec.dll\n"
NAMES = (
    "CheckWellformed$$_0_Spec.__default.Sorted",
    "CheckWellformed$$_2_Solution.__default.Search",
    "Impl$$_2_Solution.__default.Search",
    "CheckWellformed$$_5_Goals.__default.Search",
    "Impl$$_5_Goals.__default.Search",
)
ERROR = '<error message="postcondition violation" file="solution.dfy" line="9" column="5" />'
TRIED = 'unknown\n(:reason-unknown "(incomplete quantifiers)")\n'
CUT = 'unknown\n(:reason-unknown "unknown")\n'
UNITS = "spec.dfy(1,1): Verification out of resource (Impl$$_2_Solution.__default.Search)\n"


def report(*ends: str, names: tuple[str, ...] = NAMES) -> str:
    """The verifier's report; an end is an outcome, with `!` behind it one that has an error."""
    methods = "".join(
        f'<method name="{name}"  startTime="x">{ERROR if end.endswith("!") else ""}'
        f'<conclusion duration="0.1" outcome="{end.rstrip("!")}" /></method>'
        for name, end in zip(names, ends, strict=True)
    )
    return f'\ufeff<?xml version="1.0" encoding="utf-8"?><boogie version="2.3">{methods}</boogie>'


def answer(*ends: str, printed: str | None = None, status: int = 0, **more: Any) -> dict[str, Any]:
    """What the room answers."""
    proved = sum(end == "correct" for end in ends)
    errors = sum(end.endswith("!") for end in ends)
    said = {"status": status, "overdue": False, "cpu_s": 1.5, "report": report(*ends) if ends else ""}
    said["answers"] = "".join("unsat\n" if end == "correct" else TRIED for end in ends)
    return {**said, "printed": SUMMARY.format(proved, errors) if printed is None else printed, **more}


WELL = answer(*["correct"] * 5)
SYNTAX = answer(printed="solution.dfy(1,0): Error: EOF expected\n1 parse errors detected\n", status=2)
LINKS = answer(printed="goals.dfy(3,9): Error: unresolved identifier: Search\n", status=2)
DIED = answer(printed="[ERROR] FATAL UNHANDLED EXCEPTION: System.StackOverflowException\n", status=1)


async def judged(*answers: dict[str, Any], text: str = RIGHT, status: int = 0) -> Verdict:
    """The verdict on `text` where the rooms answer so."""
    rooms = RecordedRooms(*answers, status=status)
    return await DafnyReferee().judge(Exhibit(tree=Tree.of({"solution.dfy": text})), TASK.open, TASK.sealed, rooms)


C = "correct"
UNDECIDED = answer(C, C, "outofresource!", C, C, printed=UNITS + SUMMARY.format(4, 0))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answers", "reading", "detail"),
    [
        ([WELL], "PASS", "5 proofs"),
        ([answer(C, C, "errors!", C, C, status=4)], "VERIFICATION_FAILED", "postcondition violation"),
        ([answer(C, C, C, C, "errors!", status=4)], "SPEC_ALTERED", "Goals.Search"),
        ([answer(C, C, "errors!", C, "errors!", status=4)], "VERIFICATION_FAILED", "Solution.Search"),
        # The verifier prints `4 verified, 0 errors` here, and ends with status 0.
        ([UNDECIDED], "RESOURCE_OUT", "solver's units"),
        ([answer(C, C, "errors", C, C, answers=CUT)], "RESOURCE_OUT", "solver's units"),
        # Likewise of a loop without end; but the solver had tried all that it has, so it was not cut short.
        ([answer(C, C, "errors", C, C)], "VERIFICATION_FAILED", "names no error"),
        ([answer(C, C, "outofresource", C, C)], "RESOURCE_OUT", "solver's units"),
        ([answer(C, C, "outofresource!", C, "errors!", status=4)], "SPEC_ALTERED", "Goals.Search"),
        # The verifier calls this an error; the solver says that it was cut short. And a counterexample is one.
        ([answer(C, C, "errors!", C, C, status=4, answers=CUT)], "RESOURCE_OUT", "solver's units"),
        ([answer(C, C, "errors!", C, C, status=4, answers="unsat\nsat\n")], "VERIFICATION_FAILED", "violation"),
        ([SYNTAX, SYNTAX], "NO_BUILD", "EOF expected"),
        ([LINKS, answer()], "INTERFACE_MISS", "unresolved identifier"),
        ([DIED, DIED, WELL], "UNSCORABLE", "StackOverflow"),
        ([DIED, WELL], "PASS", "5 proofs"),
        ([DIED, DIED, answer(C, C, "errors!", C, C, status=4)], "VERIFICATION_FAILED", "postcondition violation"),
        ([DIED, DIED, WELL, WELL], "UNSCORABLE", "the verifier died of it"),
        ([answer(overdue=True)], "RESOURCE_OUT", "600 s for the whole run"),
        ([answer(cpu_s=121.0, status=-9)], "RESOURCE_OUT", "120 s of the processor"),
    ],
)
async def test_classes(answers: list[dict[str, Any]], reading: str, detail: str) -> None:
    """Each end comes to its class; a run that broke off is tried once more."""
    verdict = await judged(*answers)
    assert (verdict.reading, detail in verdict.detail) == (reading, True)
    assert verdict.standing == DafnyReferee.classes[reading]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wrong",
    [
        answer(*[C] * 5, printed=SUMMARY.format(6, 0)),
        answer(*[C] * 5, printed="all is well\n"),
        answer(*[C] * 5, status=1),
        answer(*[C] * 5, report='<!DOCTYPE x [<!ENTITY y "z">]>' + report(*[C] * 5)),
        answer(*[C] * 5, report=report(*[C] * 5)[:-9]),
        answer(printed=SUMMARY.format(5, 0)),
        # A proof that the verifier has and its solver has not.
        answer(*[C] * 5, answers="unsat\n" * 4 + "unknown\n"),
        answer(*[C] * 5, answers="unsat\n" * 4 + "sat\n"),
    ],
)
async def test_report_summary_and_status_must_agree(wrong: dict[str, Any]) -> None:
    """Without a whole report that its summary and status bear out there is no PASS; such a run was nobody's fault."""
    assert (await judged(wrong, wrong, WELL)).reading == "UNSCORABLE"


@pytest.mark.anyio
async def test_goals_are_counted_by_name() -> None:
    """A report that leaves the goal out, or has it twice, is no report on this task."""
    for names in (NAMES[:4], (*NAMES, NAMES[4].replace("_5_", "_6_"))):
        ends = [C] * len(names)
        odd = answer(printed=SUMMARY.format(len(ends), 0), report=report(*ends, names=names))
        with pytest.raises(RefereeError, match="does not name the goals"):
            await judged(odd)


@pytest.mark.anyio
async def test_fewer_proofs_than_the_card_expects_are_too_few() -> None:
    """The card says 5; a report of 4 that all hold is rejected."""
    names = NAMES[1:]
    few = answer(printed=SUMMARY.format(4, 0), report=report(*[C] * 4, names=names))
    assert (await judged(few)).reading == "VERIFICATION_FAILED"


@pytest.mark.anyio
async def test_a_screen_tells_what_would_have_been() -> None:
    """The word refuses, and so does the compiler's word; the reading without either is kept beside it."""
    by_word = await judged(WELL, text=RIGHT.replace("return -1;", "assume false; return -1;"))
    assert (by_word.reading, by_word.standing, by_word.would_be) == ("SCREENED", "rejected", "PASS")
    said = SUMMARY.format(5, 0) + "solution.dfy(4,8): Error: Method _2_Solution_Compile._default.L has no body\n"
    by_compiler = await judged(answer(*[C] * 5, printed=said, status=3))
    assert (by_compiler.reading, by_compiler.would_be) == ("SCREENED", "PASS")
    other = SUMMARY.format(5, 0) + "solution.dfy(4,8): Error: this is too advanced for the current compiler\n"
    assert (await judged(answer(*[C] * 5, printed=other, status=3))).reading == "NO_BUILD"


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["module Goals {}\n" + RIGHT, RIGHT + "#if X\n", "(" * 999])
async def test_what_is_no_text_never_reaches_the_verifier(text: str) -> None:
    """NO_BUILD without a room; so is an exhibit without the file."""
    assert (await judged(DIED, text=text)).reading == "NO_BUILD"
    rooms = RecordedRooms(DIED)
    verdict = await DafnyReferee().judge(Exhibit(tree=Tree()), TASK.open, TASK.sealed, rooms)
    assert (verdict.reading, verdict.tests[0].reading, rooms.orders) == ("NO_BUILD", "NOT_RUN", [])
    assert (verdict.tiers[0].reading, verdict.tiers[0].ran, verdict.tiers[0].passed) == ("NOT_RUN", False, None)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["Spec", "Goals"])
async def test_a_module_of_the_judges_name_inside_of_another(name: str) -> None:
    """Its proofs would be taken for the judge's own, and what is refuted there for a fault of the task's."""
    text = f"{RIGHT}module Other.{name} {{ lemma Bad() ensures false {{ }} }}\n"
    assert (await judged(WELL, text=text)).reading == "NO_BUILD"


@pytest.mark.anyio
async def test_the_compiler_is_left_out_where_it_died_twice() -> None:
    """The third run asks for proofs alone."""
    rooms = RecordedRooms(DIED, DIED, answer(C, C, "errors!", C, C, status=4))
    await DafnyReferee().judge(Exhibit(tree=TASK.sealed.solution), TASK.open, TASK.sealed, rooms)
    assert [order["argv"][1] for order in rooms.orders] == ["/compile:2", "/compile:2", "/compile:0"]


@pytest.mark.anyio
async def test_what_the_judge_fails_at_is_no_reading() -> None:
    """No verifier in the room, a room that breaks, another's answer, a verifier that not even the reference survives."""
    for odd in ({"missing": "dafny"}, {"nonce": "another"}):
        with pytest.raises(RefereeError):
            await judged(odd)
    with pytest.raises(RefereeError, match="status 1"):
        await judged(WELL, status=1)
    with pytest.raises(RefereeError, match="does not work any more"):
        await judged(DIED)
    with pytest.raises(RefereeError, match="specification does not verify"):
        await judged(answer("errors!", C, C, C, C, status=4))


@pytest.mark.anyio
async def test_the_judges_own_files_are_verified() -> None:
    """Specification and goals are the sealed ones, whatever the exhibit holds; the exhibit gives one file."""
    rooms = RecordedRooms(WELL)
    tree = Tree.of({"solution.dfy": RIGHT, "spec.dfy": "mine", "goals.dfy": "mine", "report.xml": "mine"})
    verdict = await DafnyReferee(rlimit=700_000).judge(Exhibit(tree=tree), TASK.open, TASK.sealed, rooms)
    (order,) = rooms.orders
    assert list(order["files"]) == ["spec.dfy", "solution.dfy", "goals.dfy"]
    assert "mine" not in order["files"].values()
    assert "/rlimit:700000" in order["argv"]
    assert (verdict.limits["rlimit"], verdict.cpu_s) == (700_000, 1.5)


def test_suites_differ_by_all_that_decides() -> None:
    """Options, goals and card change the digest; the same task gives the same one."""
    referee = DafnyReferee()
    other = replace(TASK.sealed, tests=Tree.of({"goals.dfy": TASK.sealed.tests.text("goals.dfy") + "\n"}))
    looser = replace(TASK.sealed, card={**TASK.sealed.card, "attributes": ["fuel"]})
    digests = [referee.suite(sealed)["digest"] for sealed in (TASK.sealed, other, looser)]
    digests.append(DafnyReferee({"rlimit": 600_000}).suite(TASK.sealed)["digest"])
    assert len({*digests, referee.suite(TASK.sealed)["digest"]}) == 4


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"forbidden": ["assume"]}, "leaves out"),
        ({"goals": []}, "goals"),
        ({"file": "a/b.dfy"}, "at the top"),
        ({"spec": "solution.dfy"}, "both"),
        ({"spec": "other.dfy"}, "no environment/other.dfy"),
        ({"verify": 3}, "unknown key"),
    ],
)
def test_cards_that_are_none(change: dict[str, Any], said: str) -> None:
    """Each is refused with what was expected."""
    with pytest.raises(TaskError, match=said):
        DafnyReferee().suite(replace(TASK.sealed, card={**TASK.sealed.card, **change}))


def test_options_that_are_none() -> None:
    """An unknown option and one out of bounds are refused."""
    for options in ({"rlimits": 1}, {"rlimit": 1}):
        with pytest.raises(ExperimentError, match="referee 'dafny'"):
            DafnyReferee(options)


@pytest.mark.parametrize("task", load_folders(EXAMPLES), ids=lambda task: task.open.name)
def test_the_battery_is_text_that_claims_the_contract(task: Any) -> None:
    """Seven candidates a task, none of them the reference, each plain text; three claim the goals under the real name."""
    battery = DafnyReferee().battery(task.open, task.sealed)
    assert len(battery) == 7
    for name in ("bodiless", "assumed", "nothing_done", "unverified"):
        text = read_text(battery[name]["solution.dfy"])
        assert all(goal in text for goal in task.sealed.card["goals"])
        assert [token.text for token in tokens(text)].count("Goals") == 0
