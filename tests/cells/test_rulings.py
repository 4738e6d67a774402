"""A cell that is judged by every candidate that the public tests accepted: its reading, its record, its audit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.audit.auditing import audit_run
from cells.boards import boards
from cells.freeze import Frozen, freeze
from cells.freeze_view import freeze_lines
from cells.plan import read_run
from cells.rescore import rescore
from cells.rulings import accepted_codes
from cells.run import run
from cells.score_view import plain_scoreboard
from cells.settled import settle
from cells.unlocks import read_unlocks
from cells.verifying import verify_run
from harness.blobs import BlobStore
from harness.candidates import JudgedCandidate, deciding
from harness.clock import SystemClock
from harness.errors import ExperimentError, RefereeError
from harness.registration import load_registration
from harness.transcript import read_transcript
from harness.tree import Tree
from harness.values import Evidence, Standing, Verdict
from harness.views import PublicReading
from referees.null import NullReferee
from tests.cells.audited import changed, copied, rechained, reregistered
from tests.cells.houses import Quiet, fake_backend, fakes, outcomes, write_experiment
from tests.cells.mirrored_house import replying
from tests.cells.test_report import report

pytestmark = pytest.mark.anyio

OPTIONS = "[seat.options]\nrounds = 4\nstop_on_pass = false"
CODES = ("x = 1", "x = 91", "x = 92", "x = 92")
"""Of each round: refused by the public tests; right; refused by the hidden tests; the same again, which ships."""


class TwoTiers(NullReferee):
    """Its public tests accept `x = 90` and more, its hidden ones 91 alone; on 93 it can't decide, on 94 it breaks."""

    classes: Mapping[str, Standing] = {"PASS": "accepted", "FAIL": "rejected", "UNSCORABLE": "unscorable"}

    async def judge(self, exhibit: Any, task: Any, sealed: Any, rooms: Any) -> Verdict:
        """Both tiers; what is no candidate is judged as ever."""
        verdict = await super().judge(exhibit, task, sealed, rooms)
        code = exhibit.tree.text("solution.py").strip() if "solution.py" in exhibit.tree else ""
        if code == "x = 94":
            raise RefereeError("the judge was killed")
        if not code.startswith("x = ") or code == "x = 91":
            return verdict
        reading = "UNSCORABLE" if code == "x = 93" else "FAIL"
        return replace(verdict, reading=reading, standing=self.classes[reading])

    @asynccontextmanager
    async def public_check(self, task: Any, sealed: Any, rooms: Any) -> Any:
        """One test."""

        async def check(code: str) -> PublicReading:
            await anyio.lowlevel.checkpoint()
            good = code.strip() >= "x = 90"
            return PublicReading(reading="PASS" if good else "FAIL", accepted=good, passed=int(good), total=1)

        yield check


@contextmanager
def house(monkeypatch: pytest.MonkeyPatch, folder: Path, codes: tuple[str, ...] = CODES, **others: Any) -> Any:
    """Fakes whose model writes the codes in turn."""
    written = cycle(codes)
    given = {"referees_null": TwoTiers, "models_scripted": replying(lambda _request: next(written)), **others}
    with fakes(monkeypatch, fake_backend(folder), probed=True, **given):
        yield


async def frozen_with(folder: Path, judges: str, **changes: Any) -> Frozen:
    """Three tasks, two arms, four rounds each, one cell at a time."""
    path = write_experiment(folder, model="", concurrency=1, **{"seat_options": OPTIONS, **changes})
    path.write_text(path.read_text("utf-8").replace('name = "null"', f'name = "null"\njudges = "{judges}"'), "utf-8")
    return await freeze(path, folder / "runs", clock=SystemClock())


def played(folder: Path, judges: str) -> Path:
    """A finished run."""
    monkeypatch = pytest.MonkeyPatch()

    async def play() -> Path:
        with house(monkeypatch, folder):
            frozen = await frozen_with(folder, judges)
            assert await run(frozen.folder, watcher=Quiet()) == "finished"
        return frozen.folder

    try:
        return anyio.run(play)
    finally:
        monkeypatch.undo()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose cells are judged by any candidate; every test that changes it works on a copy."""
    return played(tmp_path_factory.mktemp("any"), "any-accepted")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, judged by what ships."""
    return played(tmp_path_factory.mktemp("shipped"), "shipped")


def board_of(folder: Path) -> Any:
    """The frozen scoreboard."""
    return boards(load_registration(folder), read_run(folder)[0], head=None).frozen


def test_a_cell_passes_by_an_earlier_candidate(original: Path, usual: Path) -> None:
    """What ships fails the hidden tests; an earlier candidate passes them: PASS under one reading, FAIL under the other."""
    for outcome in outcomes(original):
        assert outcome.outcome_class == "PASS"
        assert [one.round for one in outcome.candidates] == [2, 3, 4]
        assert [one.verdict.reading for one in outcome.candidates] == ["PASS", "FAIL", "FAIL"]
        assert outcome.verdict == outcome.candidates[0].verdict
        assert outcome.exhibit == outcome.candidates[-1].exhibit != outcome.candidates[0].exhibit
        # Equal code is one execution.
        assert outcome.candidates[1].verdict == outcome.candidates[2].verdict
        assert all(one.verdict.seconds is not None for one in outcome.candidates)
    assert {(one.outcome_class, one.candidates) for one in outcomes(usual)} == {("FAIL", ())}


def test_the_seat_learns_nothing_of_it(original: Path, usual: Path) -> None:
    """The same requests are sent, whatever is judged, and no event of a transcript tells of a judged candidate."""

    def told(folder: Path) -> list[Any]:
        events = [event for path in sorted((folder / "transcripts").iterdir()) for event in read_transcript(path)]
        return [
            {name: value for name, value in event.items() if name not in {"at", "latency_s", "wall_s"}}
            for event in events
        ]

    assert told(original) == told(usual)


def test_every_file_of_it_holds(original: Path, usual: Path, tmp_path: Path) -> None:
    """Verified and audited clean; without the tree of one candidate it is not whole."""
    assert verify_run(original).ok
    assert audit_run(original).findings == audit_run(usual).findings == ()
    folder = copied(original, tmp_path)
    tree = outcomes(folder)[0].candidates[0].exhibit
    (folder / "blobs" / tree[:2] / tree[2:]).unlink()
    assert any(tree in problem.what for problem in verify_run(folder).problems)
    assert {finding.invariant for finding in audit_run(folder).findings} >= {"files"}


def test_every_output_says_so(original: Path, usual: Path) -> None:
    """The scoreboard, its JSON and the report name the cells; unlocks count from the round that passed."""
    board = board_of(original)
    text = plain_scoreboard(board)
    assert "cells that read by an earlier candidate than the one that ships: 6" in text
    assert "|Fake/0|B|none|m|1: PASS in round 2; what ships is of round 4, FAIL" in text
    assert "read by an earlier candidate than the one that ships: 6" in report(board)
    assert "earlier candidate" not in plain_scoreboard(board_of(usual))
    registration = load_registration(original)
    unlocks = read_unlocks(original, settle(registration.cells, outcomes(original)))
    assert {item.by_round for item in unlocks} == {(0, 3, 3, 3)}


async def test_all_of_it_is_judged_again(
    original: Path, usual: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each different candidate is judged again, and a referee that says something else of one is found out."""

    class Turned(TwoTiers):
        async def judge(self, exhibit: Any, task: Any, sealed: Any, rooms: Any) -> Verdict:
            return replace(await super().judge(exhibit, task, sealed, rooms), reading="FAIL", standing="rejected")

    async def again(folder: Path) -> list[Any]:
        rows, _changes = await rescore(folder, clock=SystemClock(), keep=False, seen=lambda _row: None, told=print)
        return [(row.round, row.recorded, row.now, row.identical) for row in rows]

    with house(monkeypatch, tmp_path):
        assert await again(original) == [(2, "PASS", "PASS", True), (3, "FAIL", "FAIL", True)] * 6
        assert await again(usual) == [(None, "FAIL", "FAIL", True)] * 6
    with house(monkeypatch, tmp_path, referees_null=Turned):
        assert await again(original) == [(2, "PASS", "FAIL", False), (3, "FAIL", "FAIL", True)] * 6


async def test_what_is_undecided_is_no_fail_and_what_breaks_is_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier candidate might have passed: that what ships fails does not decide on it."""
    for codes, wanted in (
        (("x = 1", "x = 93", "x = 92", "x = 2"), "UNSCORABLE"),
        (("x = 1", "x = 94", "x = 91", "x = 2"), "VOID"),
        (("x = 1", "x = 2", "x = 3", "x = 4"), "FAIL"),
    ):
        with house(monkeypatch, tmp_path, codes):
            frozen = await frozen_with(tmp_path / wanted, "any-accepted", retries=0)
            await run(frozen.folder, watcher=Quiet())
        ended = outcomes(frozen.folder)
        assert {one.outcome_class for one in ended} == {wanted}
        assert {len(one.candidates) for one in ended} == {{"UNSCORABLE": 2, "VOID": 0, "FAIL": 0}[wanted]}
        assert audit_run(frozen.folder).findings == ()


async def test_a_halted_cell_is_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would have been is chosen from the candidates that it had got to, and is no verdict."""
    with house(monkeypatch, tmp_path, CODES[:3]):
        frozen = await frozen_with(tmp_path, "any-accepted", more="[budgets.cell]\ncalls = 3\n")
        await run(frozen.folder, watcher=Quiet())
    for outcome in outcomes(frozen.folder):
        assert (outcome.outcome_class, outcome.verdict) == ("HALT", None)
        assert [one.round for one in outcome.candidates] == [2, 3]
        assert outcome.would_be == outcome.candidates[0].verdict
    assert audit_run(frozen.folder).findings == ()
    assert board_of(frozen.folder).earlier == ()


def test_the_newest_that_passed_decides() -> None:
    """Then the newest that is undecided, then what ships."""

    def decided(*readings: str) -> int:
        return deciding(
            [
                JudgedCandidate(
                    round=number,
                    code_sha256="",
                    exhibit="",
                    verdict=Verdict(
                        reading=reading,
                        standing=TwoTiers.classes[reading],
                        evidence=Evidence(code="", suite="", execution=""),
                    ),
                )
                for number, reading in enumerate(readings, start=1)
            ]
        ).round

    assert decided("PASS", "PASS", "FAIL") == 2
    assert decided("UNSCORABLE", "FAIL") == 1
    assert decided("PASS", "UNSCORABLE", "FAIL") == 1
    assert decided("FAIL", "FAIL") == 2


def test_only_accepted_code_is_a_candidate() -> None:
    """Of a reply without code, or of another round's reading, there is none."""
    events = [
        {"event": "extraction", "round": 1, "code": ""},
        {"event": "public", "round": 1, "accepted": True},
        {"event": "extraction", "round": 2, "code": "x = 2"},
        {"event": "public", "round": 1, "accepted": True},
        {"event": "public", "round": 2, "accepted": False},
        {"event": "extraction", "round": 3, "code": "x = 3"},
        {"event": "public", "round": 3, "accepted": True},
    ]
    assert list(accepted_codes(events)) == [(3, "x = 3")]


def of_a_foreign_candidate(folder: Path, *, number: int) -> Path:
    """The first outcome passes by a candidate of round `number` that is a whole blob, and in no reply of the model."""
    tree = BlobStore(folder / "blobs").put_tree(Tree.of({"solution.py": "x = 91  # made up"}))

    def change(body: dict[str, Any]) -> dict[str, Any]:
        first = body["candidates"][0]
        said = {**first["verdict"], "evidence": {**first["verdict"]["evidence"], "code": tree}}
        others = [
            {**one, "verdict": {**one["verdict"], "reading": "FAIL", "standing": "rejected"}}
            for one in body["candidates"]
            if one["round"] != number
        ]
        made = {**first, "round": number, "exhibit": tree, "verdict": said}
        return {**body, "verdict": said, "candidates": [made, *others]}

    return rechained(folder, changed("cell.ended", change))


def edited(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Callable[[Path], object]:
    """The first outcome's candidates, changed."""
    return lambda folder: rechained(
        folder, changed("cell.ended", lambda body: {**body, "candidates": change(body["candidates"])})
    )


def as_if_usual(folder: Path) -> object:
    """A registration under which what ships alone is judged."""
    experiment = dict(load_registration(folder).experiment)
    return reregistered(folder, experiment={**experiment, "referee": {**experiment["referee"], "judges": "shipped"}})


def fails_by_what_ships(folder: Path) -> object:
    """The verdict that counts is that on what ships, though an earlier candidate passed."""
    return rechained(folder, changed("cell.ended", lambda body: {**body, "verdict": body["candidates"][-1]["verdict"]}))


LIES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a PASS by a candidate that the transcript does not have": (
        lambda folder: of_a_foreign_candidate(folder, number=2),
        "candidates-hold",
        "what was judged as the candidate of round 2 is another one",
    ),
    "a PASS by a candidate that the public tests refused": (
        lambda folder: of_a_foreign_candidate(folder, number=1),
        "candidates-hold",
        "the transcript has no accepted candidate of round 1, which was judged",
    ),
    "a candidate that was left out": (
        edited(lambda candidates: [candidates[0], candidates[2]]),
        "candidates-hold",
        "judged are the candidates of rounds [2, 4]: expected those of [2, 3, 4]",
    ),
    "no candidate at all": (
        edited(lambda _candidates: []),
        "candidates-hold",
        "judged are the candidates of rounds []",
    ),
    "candidates where what ships alone is judged": (as_if_usual, "candidates-hold", "expected those of []"),
    "a verdict that is not of the one that decides": (
        fails_by_what_ships,
        "verdicts-known",
        "it reads FAIL: of its candidates that of round 2 decides, PASS",
    ),
    "a candidate of another suite": (
        edited(
            lambda candidates: [
                *candidates[:-1],
                json.loads(json.dumps(candidates[-1]).replace('"suite": "', '"suite": "0')),
            ]
        ),
        "verdicts-known",
        "judged by suite 0",
    ),
}


@pytest.mark.parametrize("what", LIES)
def test_each_lie_of_a_record_is_found(what: str, original: Path, tmp_path: Path) -> None:
    """The chain holds, every blob is whole, and the invariant says what is wrong."""
    tamper, invariant, said = LIES[what]
    folder = copied(original, tmp_path)
    tamper(folder)
    found = audit_run(folder).findings
    assert any(finding.invariant == invariant and said in finding.what for finding in found), found


async def test_it_is_registered_and_told_at_a_freeze(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual way says nothing; a seat without candidates, and an unknown way, are refused."""
    with house(monkeypatch, tmp_path):
        any_accepted = await frozen_with(tmp_path / "any", "any-accepted")
        usual = await frozen_with(tmp_path / "usual", "shipped")
        assert any_accepted.registration.experiment["referee"]["judges"] == "any-accepted"
        assert sum("a cell passes if any of them does" in line for line in freeze_lines(any_accepted)) == 1
        assert not any("candidate" in line for line in freeze_lines(usual))
        with pytest.raises(ExperimentError, match="expected seat 'oneshot'"):
            await frozen_with(tmp_path / "other", "any-accepted", seat="scripted", seat_options="")
        with pytest.raises(ExperimentError, match="any-accepted"):
            await frozen_with(tmp_path / "unknown", "best")
