"""Cards of the command referee: what a runner's usual command is, and which cards are refused, with the way out."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import ExperimentError, TaskError
from harness.tasks.card import read_card
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Tree
from referees.command import CommandReferee
from referees.command_battery import LANGUAGES
from referees.command_card import RUNNERS, CommandCard

TAP = {"runner": "tap", "command": ["sh", "it.sh"], "ids": ["a"], "program": ["./it"]}
COUNTS = {
    "runner": "counts",
    "command": ["sh", "it.sh"],
    "total": 3,
    "pattern": r"(?P<passed>\d+)/(?P<failed>\d+)",
    "program": ["./it"],
}


def read(card: dict[str, Any], **changes: Any) -> CommandCard:
    """The card with changes; None takes a key out."""
    merged = {key: value for key, value in {**card, **changes}.items() if value is not None}
    return read_card(CommandCard, merged, "command")


@pytest.mark.parametrize("runner", sorted(set(RUNNERS) - {"tap", "junit", "counts"}))
def test_a_usual_command(runner: str) -> None:
    """Taken where a card gives none, with its report and its preparation; a card's own takes the place of all three."""
    usual = read(TAP, runner=runner, command=None)
    assert usual.command == RUNNERS[runner].command
    assert (usual.report, usual.prepare) == (RUNNERS[runner].report, RUNNERS[runner].prepare)
    own = read(TAP, runner=runner, report="file")
    assert (own.command, own.report, own.prepare) == (["sh", "it.sh"], "file", [])


def test_counts_have_numbers_for_ids() -> None:
    """As many as there are tests."""
    assert read(COUNTS).declared == ["1", "2", "3"]
    assert read(TAP).declared == ["a"]


@pytest.mark.parametrize(
    ("card", "changes", "why"),
    [
        (TAP, {"report": "subject:report.xml"}, "the program under test could write it"),
        (TAP, {"report": "/workspace/report.xml"}, "the program under test could write it"),
        (TAP, {"report": "build/report.xml"}, "the program under test could write it"),
        (TAP, {"linked": True}, "a small driver program"),
        (TAP, {"command": None}, "no usual command"),
        (TAP, {"ids": None}, "give `ids`"),
        (TAP, {"ids": ["a", "a"]}, "'a' listed more than once"),
        (TAP, {"total": 3}, "for the runner 'counts'"),
        (TAP, {"pattern": "x"}, "for the runner 'counts'"),
        (TAP, {"runner": "make"}, "runner is 'make'"),
        (TAP, {"runner": ["tap"]}, "runner is"),
        (TAP, {"report": ["file"]}, "report is"),
        (TAP, {"report": {"a": 1}}, "report is"),
        (COUNTS, {"total": 20_001}, "total is"),
        (COUNTS, {"pattern": "(" * 5000}, "no regular expression"),
        (COUNTS, {"pattern": r"(?P<passed>a{99999999999999999999})(?P<failed>b)"}, "no regular expression"),
        (TAP, {"program": ["a\0b"]}, "NUL"),
        (TAP, {"environment": {"A": "\0"}}, "NUL"),
        (TAP, {"main": "../it.sh"}, "main is"),
        (TAP, {"main": "/it.sh"}, "main is"),
        (TAP, {"program": []}, "program is"),
        (TAP, {"program": None}, "program: missing"),
        (TAP, {"crossing": ["A B"]}, "crossing"),
        (TAP, {"limits": {"cpu": 3}}, "Did you mean 'cpu_s'"),
        (COUNTS, {"ids": ["a"]}, "no `ids`"),
        (COUNTS, {"total": None}, "give `total`"),
        (COUNTS, {"pattern": "("}, "no regular expression"),
        (COUNTS, {"pattern": r"(?P<passed>\d+)"}, "expected"),
    ],
)
def test_a_card_that_is_refused(card: dict[str, Any], changes: dict[str, Any], why: str) -> None:
    """One change of a card that is taken, and a sentence that says what to do."""
    read(card)
    with pytest.raises(TaskError) as refused:
        read(card, **changes)
    assert why in str(refused.value)


def test_options() -> None:
    """Known ones are taken, as a mapping or by name; an unknown one is refused with the nearest."""
    assert CommandReferee({"cpu_s": 3}, wall_s=4.0).options.cpu_s == 3
    with pytest.raises(ExperimentError, match="Did you mean 'cpu_s'"):
        CommandReferee({"cpu": 3})


def sealed(**changes: Any) -> SealedHalf:
    """A sealed half with this card."""
    return SealedHalf(tests=Tree.of({"it.sh": "echo\n"}), card={**TAP, **changes})


def test_the_suite_is_pinned() -> None:
    """Its digest tells another test, card or option, and nothing of the subject's."""
    referee = CommandReferee()
    digest = referee.suite(sealed())["digest"]
    assert digest == CommandReferee().suite(sealed())["digest"]
    others = [
        CommandReferee(cpu_s=3).suite(sealed()),
        referee.suite(sealed(ids=["b"])),
        referee.suite(SealedHalf(tests=Tree.of({"it.sh": "echo b\n"}), card=TAP)),
    ]
    assert len({digest, *(other["digest"] for other in others)}) == 4
    assert referee.suite(sealed())["counts"] == {"suite": 1}


@pytest.mark.parametrize("main", ["it", "it.mjs", *(f"it{suffix}" for suffix in LANGUAGES)])
def test_the_battery_has_programs_in_the_language_of_main(main: str) -> None:
    """Four of them, over what the seat was given; a file of no known language has the plants alone."""
    task = OpenHalf(benchmark="b", name="n", instruction="", environment=Tree.of({"Makefile": "all:\n"}))
    found = CommandReferee().battery(task, sealed(main=main))
    assert set(found) == {"empty", "untouched", "planted_reports", "silent", "echo", "forged_report", "endless"}
    assert found["silent"].files[main].executable
    assert len({found[name][main] for name in ("silent", "echo", "forged_report", "endless")}) == 4
    assert all("Makefile" in tree for name, tree in found.items() if name != "empty")
    assert "ok 1 - a" in found["forged_report"].text(main).replace("\\n", "\n")
    assert set(CommandReferee().battery(task, sealed(main="it.f90"))) == {"empty", "untouched", "planted_reports"}
