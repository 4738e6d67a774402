"""Screens are measured: each refusal is kept with its exhibit and would-be reading, and counted by arm."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from typer.testing import CliRunner

from cells.cli import app
from cells.freeze import Frozen
from cells.gate_trips import GateTrips, audit_gates
from cells.run import run
from harness.errors import UsageError
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from referees.null import NullReferee
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes

CLASSES = {"PASS": "accepted", "FAIL": "rejected", "SCREENED": "rejected"}
REPLIES = {
    "fine": ("PASS", None),
    "false": ("SCREENED", "PASS"),
    "cheat": ("SCREENED", "FAIL"),
    "odd": ("SCREENED", "SPLENDID"),
}


class Screening(NullReferee):
    """Screens what seats leave by `words`, one after the other; controls are judged as they are."""

    classes = CLASSES  # type: ignore[assignment]  # plain words are literals here
    words: ClassVar[list[str]] = []

    async def judge(self, exhibit: Exhibit, task: Any, sealed: Any, rooms: Any) -> Verdict:
        """The reading of the next word."""
        verdict = await super().judge(exhibit, task, sealed, rooms)
        if "solution.py" not in exhibit.tree or not self.words:
            return verdict
        word = self.words.pop(0)
        reading, would_be = REPLIES[word]
        standing: Any = CLASSES[reading]
        return replace(verdict, reading=reading, standing=standing, would_be=would_be, detail=f"line 1 uses {word!r}")

    def reference(self, sealed: Any) -> Tree:
        """No solution of a seat's."""
        return Tree.of({"reference": "x"})

    def battery(self, task: Any, sealed: Any) -> dict[str, Tree]:
        """Nothing."""
        return {"empty": Tree()}


def played(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str, **changes: Any) -> Frozen:
    """A run whose exhibits are judged by `words`: B and P of each task in turn."""
    monkeypatch.setattr(Screening, "words", list(words))

    async def play() -> Frozen:
        with fakes(monkeypatch, fake_backend(folder), probed=True, referees_null=Screening):
            frozen = await frozen_run(folder, concurrency=1, **changes)
            await run(frozen.folder, watcher=Quiet())
        return frozen

    return anyio.run(play)


def trips(frozen: Frozen) -> GateTrips:
    """What an audit of the run finds."""
    return audit_gates(frozen.folder, CLASSES)  # type: ignore[arg-type]  # as above


def test_a_run_without_a_refusal_has_none(tmp_path, monkeypatch):
    """Nothing is counted, listed or said."""
    assert trips(played(tmp_path, monkeypatch, "fine")) == GateTrips(counts=(), refusals=(), unequal=())


def test_a_gate_is_counted_in_every_arm_and_unequal_ones_are_said(tmp_path, monkeypatch):
    """Two of arm B's three and none of P's: the sentence names both."""
    found = trips(played(tmp_path, monkeypatch, "false", "fine", "cheat", "fine", "fine", "fine"))
    assert {(row.gate, row.arm): (row.trips, row.of) for row in found.counts} == {
        ("SCREENED", "B"): (2, 3),
        ("SCREENED", "P"): (0, 3),
    }
    assert found.unequal == ("SCREENED does not refuse all arms alike: B 2 of 3, P 0 of 3",)


def test_equal_shares_are_no_finding(tmp_path, monkeypatch):
    """One of three in each arm."""
    found = trips(played(tmp_path, monkeypatch, "cheat", "cheat", "fine", "fine", "fine", "fine"))
    assert [(row.trips, row.of) for row in found.counts] == [(1, 3), (1, 3)]
    assert found.unequal == ()


def test_only_what_would_have_been_accepted_is_doubtful(tmp_path, monkeypatch):
    """A would-be reading that the referee does not know is neither, and said to be unknown."""
    found = trips(played(tmp_path, monkeypatch, "false", "cheat", "odd", "fine", "fine", "fine"))
    assert {refusal.would_be: refusal.accepted for refusal in found.refusals} == {
        "PASS": True,
        "FAIL": False,
        "SPLENDID": None,
    }
    (doubtful,) = found.doubtful
    assert (doubtful.gate, doubtful.why, doubtful.kept) == ("SCREENED", "line 1 uses 'false'", True)


def test_a_refusal_without_its_exhibit_is_told(tmp_path, monkeypatch):
    """A blob that is gone, or is another's, is no exhibit: the command ends with 4."""
    frozen = played(tmp_path, monkeypatch, "cheat")
    exhibit = next(outcome.exhibit for outcome in outcomes(frozen.folder) if outcome.exhibit)
    (frozen.folder / "blobs" / exhibit[:2] / exhibit[2:]).write_bytes(b"{}")
    assert not any(refusal.kept for refusal in trips(frozen).refusals)
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Screening):
        result = CliRunner().invoke(app, ["audit", str(frozen.folder)])
    assert result.exit_code == 4
    assert "is not whole in the run" in result.output


def test_cells_that_a_gate_does_not_build_are_counted_of_the_registered_ones(tmp_path, monkeypatch):
    """A card without the extras: refused at the freeze, alike in both arms."""
    frozen = played(tmp_path, monkeypatch, "fine", more='extras = ["none", "statement"]')
    found = trips(frozen)
    assert {(row.gate, row.arm): (row.trips, row.of) for row in found.counts} == {
        ("extras", "B"): (3, 6),
        ("extras", "P"): (3, 6),
    }
    assert found.unequal == ()


def test_nothing_is_concluded_from_an_empty_record(tmp_path, monkeypatch):
    """A registration alone is no run."""

    async def freeze_only() -> Frozen:
        with fakes(monkeypatch, fake_backend(tmp_path)):
            return await frozen_run(tmp_path)

    with pytest.raises(UsageError, match="no outcome in its record"):
        trips(anyio.run(freeze_only))


def test_the_command_lists_what_to_look_at(tmp_path, monkeypatch):
    """As text and as JSON, with exit code 0: a doubtful refusal is for somebody to read."""
    frozen = played(tmp_path, monkeypatch, "false", "fine", "fine", "fine", "fine", "fine")
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Screening):
        text = CliRunner().invoke(app, ["audit", str(frozen.folder)])
        data = CliRunner().invoke(app, ["audit", str(frozen.folder), "--json"])
    assert (text.exit_code, data.exit_code) == (0, 0)
    assert "SCREENED, arm B: 1 of 3" in text.output
    assert "would have been accepted without the gate: 1" in text.output
    assert [row["would_be"] for row in json.loads(data.output)["gates"]["doubtful"]] == ["PASS"]
