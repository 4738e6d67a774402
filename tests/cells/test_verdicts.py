"""What is made of a referee's word: judged once more alone where it was not decided, and never a FAIL of ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from cells.cli import app
from cells.freeze import freeze, reopen, reopen_for_judging
from cells.house import House
from cells.rescore import rescore
from cells.run import run
from cells.verdicts import judge
from harness.clock import SystemClock
from harness.errors import DriftError, RefereeError, UsageError
from harness.tree import Exhibit, Tree
from harness.values import TestReading, Verdict
from referees.null import NullReferee
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes

pytestmark = pytest.mark.anyio

CLASSES = {"PASS": "accepted", "FAIL": "rejected", "UNSCORABLE": "unscorable"}
Change = Callable[[Verdict, Exhibit], Awaitable[Verdict]]


def referee(change: Change) -> type[NullReferee]:
    """The null referee with its word on what seats leave changed; controls are judged as they are."""

    class Changed(NullReferee):
        classes = CLASSES  # type: ignore[assignment]  # plain words are literals here

        async def judge(self, exhibit: Exhibit, task: Any, sealed: Any, rooms: Any) -> Verdict:
            verdict = await super().judge(exhibit, task, sealed, rooms)
            return await change(verdict, exhibit) if "x = 1" in exhibit.tree.text("solution.py") else verdict

        def reference(self, sealed: Any) -> Tree:
            return Tree.of({"solution.py": "reference\n"})

        def battery(self, task: Any, sealed: Any) -> dict[str, Tree]:
            return {"empty": Tree.of({"solution.py": ""})}

    return Changed


EXHIBIT = Exhibit(tree=Tree.of({"solution.py": "x = 1\n"}))


class Scripted:
    """Fails, or says UNSCORABLE, as often as it is told, then the plain verdict; counts who judges at once."""

    def __init__(self, *first: str) -> None:
        self.left = list(first)
        self.judged = self.now = self.most_at_last = 0

    async def __call__(self, verdict: Verdict, _exhibit: Exhibit) -> Verdict:
        """One judging."""
        self.judged += 1
        self.now += 1
        await anyio.sleep(0.01)
        self.most_at_last = self.now
        self.now -= 1
        match self.left.pop(0) if self.left else "":
            case "fails":
                raise RefereeError("the judge was killed")
            case "breaks":
                raise ZeroDivisionError("in the referee")
            case "unscorable":
                return replace(verdict, reading="UNSCORABLE", standing="unscorable", detail="the suite was cut off")
            case _:
                return verdict


@pytest.mark.parametrize("first", ["fails", "breaks", "unscorable"])
async def test_what_was_not_decided_is_judged_once_more(tmp_path, monkeypatch, first):
    """A referee that failed, broke or could not decide is asked again."""
    script = Scripted(first)
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=referee(script)):
        house = House.of(await frozen_run(tmp_path), clock=SystemClock())
        verdict = await judge(house, next(iter(house.parts.tasks.values())), EXHIBIT)
    assert (verdict.reading, script.judged) == ("PASS", 2)


async def test_the_second_time_nothing_else_is_judged(tmp_path, monkeypatch):
    """It is the last of five, and alone."""
    script = Scripted("", "fails")
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=referee(script)):
        house = House.of(await frozen_run(tmp_path), clock=SystemClock())
        task = next(iter(house.parts.tasks.values()))
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(judge, house, task, EXHIBIT)
    assert (script.judged, script.most_at_last) == (5, 1)


async def test_what_fails_twice_is_void_and_the_cell_is_tried_again(tmp_path, monkeypatch):
    """VOID, then an outcome, and no FAIL."""
    script = Scripted("fails", "fails")
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=referee(script)):
        frozen = await frozen_run(tmp_path, concurrency=1)
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        ends = Counter(outcome.outcome_class for outcome in outcomes(frozen.folder))
    assert ends == {"VOID": 1, "PASS": 6}


async def test_what_is_undecided_twice_is_unscorable_and_no_fail(tmp_path, monkeypatch):
    """A class of its own, which is final."""
    script = Scripted("unscorable", "unscorable")
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=referee(script)):
        frozen = await frozen_run(tmp_path, concurrency=1)
        await run(frozen.folder, watcher=Quiet())
        classes = Counter(outcome.outcome_class for outcome in outcomes(frozen.folder))
    assert classes == {"UNSCORABLE": 1, "PASS": 5}


async def test_rescoring_names_every_test_that_reads_otherwise(tmp_path, monkeypatch):
    """Five by name, the rest by number."""
    readings = ["PASS"]

    async def with_tests(verdict: Verdict, _exhibit: Exhibit) -> Verdict:
        await anyio.lowlevel.checkpoint()
        return replace(verdict, tests=tuple(TestReading(id=f"t[{n}]", reading=readings[0]) for n in range(8)))

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=referee(with_tests)):
        frozen = await frozen_run(tmp_path)
        await run(frozen.folder, watcher=Quiet())
        same, _changes = await rescore(
            frozen.folder, clock=SystemClock(), keep=False, seen=lambda _row: None, told=print
        )
        readings[0] = "FAIL"
        other, _changes = await rescore(
            frozen.folder, clock=SystemClock(), keep=False, seen=lambda _row: None, told=print
        )
    assert all(row.identical for row in same)
    assert not any(row.identical for row in other)
    assert other[0].why.startswith("test t[0] 'PASS' -> 'FAIL'; ")
    assert other[0].why.endswith("and 3 tests more")


async def test_rescoring_says_how_far_it_is(tmp_path, monkeypatch):
    """Each row with its number and how many there are; with `--json` on standard error."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        await run(frozen.folder, watcher=Quiet())

        def ended(*words: str) -> Any:
            return CliRunner().invoke(app, ["rescore", str(frozen.folder), *words])

        plain = await anyio.to_thread.run_sync(ended)
        told = await anyio.to_thread.run_sync(ended, "--json")
    rows = plain.stdout.splitlines()
    assert [row.split(" ")[0] for row in rows] == [*(f"[{n}/6]" for n in range(1, 7)), "6"], plain.output
    assert json.loads(told.stdout)["identical"] == 6
    assert told.stderr.splitlines()[-1].startswith("[6/6] ")


async def test_rescoring_tells_another_instrument_from_another_reading(tmp_path, monkeypatch):
    """A referee's new version changes every suite's digest: what an auditor asks is whether a reading moved."""
    turned: list[str] = []

    async def by_version(verdict: Verdict, _exhibit: Exhibit) -> Verdict:
        await anyio.lowlevel.checkpoint()
        if not turned:
            return verdict
        moved = len(turned) == 3
        turned.append("again")
        changed = replace(verdict, evidence=replace(verdict.evidence, suite="f" * 64))
        return replace(changed, reading="FAIL", standing="rejected") if moved else changed

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=referee(by_version)):
        frozen = await frozen_run(tmp_path)
        await run(frozen.folder, watcher=Quiet())
        turned.append("a new version")
        ended = await anyio.to_thread.run_sync(lambda: CliRunner().invoke(app, ["rescore", str(frozen.folder)]))
    assert ended.exit_code == 4
    assert ended.stdout.splitlines()[-1] == "0 of 6 verdicts identical; 5 of the 6 that differ have the same reading"


async def test_a_judging_image_is_pinned_and_its_drift_refused(tmp_path, monkeypatch):
    """Rooms start from it, a run refuses another, a rescoring names it."""
    backend = fake_backend(tmp_path)
    with fakes(monkeypatch, backend):
        frozen = await frozen_run(tmp_path)
        assert not [name for name in frozen.registration.pins if name.startswith("judging image")]
        path = tmp_path / "experiment.toml"
        path.write_text(path.read_text().replace('name = "null"', 'name = "null"\nimage = "provers"'))
        frozen = await freeze(path, tmp_path / "runs", clock=SystemClock())
        assert "digest" in frozen.registration.pins["judging image provers"]
        house = House.of(frozen, clock=SystemClock())
        assert house.referee_images == ("provers",)
        async with house.rooms(next(iter(house.parts.tasks.values())))():
            pass
        assert [room.walls.image for room in backend.opened if room.walls] == ["provers"]

        async def other(image: str) -> str:
            await anyio.lowlevel.checkpoint()
            return f"another {image}"

        monkeypatch.setattr(backend, "image_digest", other)
        with pytest.raises(DriftError, match="judging image provers"):
            await reopen(frozen.folder, clock=SystemClock())
        _frozen, changes = await reopen_for_judging(frozen.folder, clock=SystemClock())
        assert any("judging image provers" in change for change in changes)


async def test_rescoring_of_nothing_is_no_agreement(tmp_path, monkeypatch):
    """A run without a verdict has none that could be the same."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        with pytest.raises(UsageError, match="no judged exhibit in its record"):
            await rescore(frozen.folder, clock=SystemClock(), keep=True, seen=print, told=print)
    assert not (frozen.folder / "record.jsonl").exists()


async def test_rescoring_says_first_that_the_instrument_is_another(tmp_path, monkeypatch):
    """What differs is named, by the part of the pin that does, before the first exhibit is judged."""
    said: list[str] = []
    backend = fake_backend(tmp_path)
    with fakes(monkeypatch, backend):
        frozen = await frozen_run(tmp_path)
        await run(frozen.folder, watcher=Quiet())

        async def other(_image: str) -> str:
            await anyio.lowlevel.checkpoint()
            return "0" * 64

        monkeypatch.setattr(backend, "image_digest", other)
        rows, changes = await rescore(
            frozen.folder, clock=SystemClock(), keep=False, seen=lambda row: said.append(row.cell), told=said.append
        )
    digest = frozen.registration.pins["image"]["digest"]
    assert changes == [f"image: frozen as digest {digest}, is now digest {'0' * 64}"]
    assert said[:1] == changes
    assert sorted(said[1:]) == sorted(row.cell for row in rows)
