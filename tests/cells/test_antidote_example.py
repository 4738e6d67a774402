"""
The example of the feedback study, from its own files on fakes: six arms in lockstep on dead units, a clean audit, the
published family of contrasts; and a doctored packet of either kind, which stops the run.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from cells.cli import app
from cells.freeze import freeze
from cells.pools.making import make_pool
from cells.run import run
from harness.clock import SystemClock
from harness.errors import ExperimentError, GateRefused, UsageError
from harness.experiment import load_experiment
from harness.record import read_entries
from harness.transcript import read_transcript, transcript_path
from harness.values import Void
from tests.cells.antidote_house import ARMS, EXAMPLE, antidote, frozen_example, written
from tests.cells.doctored_arms import OtherFacts, Telling
from tests.cells.houses import Quiet, outcomes
from tests.cells.mirrored_house import states, varied
from tests.cells.published_study import ANALYSIS, BOOTSTRAP

PUBLISHED: Any = ANALYSIS
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: lockstep itself is tested on both."""
    return "asyncio"


def told(*words: object) -> Any:
    """What a command says as JSON."""
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.stdout
    return json.loads(done.stdout)


async def test_the_small_file_runs_from_pool_to_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four dead units in six arms, each mirror byte for byte, four rounds each, and nothing for the audit to find."""
    with antidote(monkeypatch, tmp_path, varied):
        made = await frozen_example(tmp_path)
        assert await run(made.folder, watcher=Quiet()) == "finished"
        ended = outcomes(made.folder)
        assert Counter(one.cell.arm for one in ended) == dict.fromkeys(ARMS, 4)
        assert {one.spend.calls for one in ended} == {4}
        assert len(states(made.folder, "TC")) == 4 * 4
        assert states(made.folder, "CF-SF") == states(made.folder, "GR-SHAPE") == states(made.folder, "TC")
        assert max(bullets for _block, _code, bullets, _source in states(made.folder, "TC").values()) > 0
    assert told("audit", made.folder)["verdict"] == "CLEAN"
    board = told("score", made.folder)
    assert [item["name"] for item in board["contrasts"]] == [item["name"] for item in PUBLISHED["contrasts"]]
    assert told("predictions", made.folder)["predictions"]
    pins = made.registration.pins
    assert pins["prompt count smollm2-135m"] == {"by": "UTF-8 bytes with room for a template, an upper bound"}
    assert "pool small-pool.jsonl" in pins


@pytest.mark.parametrize(
    ("gate", "cause", "plugin"),
    [("mirror", "mirror-audit", {"arms_CF-SF": OtherFacts}), ("tokens", "tokens-audit", {"arms_GR-SHAPE": Telling})],
)
async def test_a_doctored_packet_stops_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: str, cause: str, plugin: dict[str, Any]
) -> None:
    """One fact worded otherwise, or a generic bullet that names the function: no doctored prompt is ever sent."""
    with antidote(monkeypatch, tmp_path, varied, **plugin):
        made = await frozen_example(tmp_path)
        with anyio.fail_after(15), pytest.raises(GateRefused) as refused:
            await run(made.folder, watcher=Quiet())
    assert refused.value.gate == gate
    assert cause in {one.end.cause for one in outcomes(made.folder) if isinstance(one.end, Void)}
    closed = [entry.body for entry in read_entries(made.folder / "record.jsonl") if entry.kind == "session.closed"]
    assert (closed[-1]["how"], closed[-1]["gate"]) == ("refused", gate)
    sent = [
        event["messages"][-1]["content"]
        for one in outcomes(made.folder)
        if one.transcript is not None
        for event in read_transcript(transcript_path(made.folder, one.cell, one.attempt))
        if event["event"] == "request" and one.cell.arm in {"CF-SF", "GR-SHAPE"}
    ]
    assert not [text for text in sent if "must be right" in text or "(0) must equal 1" in text]


async def test_the_pool_has_to_be_pinned_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are checked out the files freeze nothing: they say what is missing."""
    with antidote(monkeypatch, tmp_path, varied):
        path = written(tmp_path, "small.toml")
        with pytest.raises(UsageError, match="`proctor pool make` writes one"):
            await freeze(path, tmp_path / "runs", clock=SystemClock())
        await make_pool(path, n=2, out=tmp_path / "small-pool.jsonl", arm="B", clock=SystemClock(), say=print)
        with pytest.raises(ExperimentError, match=r"expected 0+, which population\.sha256 pins"):
            await freeze(path, tmp_path / "runs", clock=SystemClock())


async def test_the_whole_file_freezes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three models, both benchmarks: its tests can be decided, its table of outcomes has neither gap nor overlap."""
    with antidote(monkeypatch, tmp_path, lambda _request: "x = 3"):
        made = await frozen_example(tmp_path, "experiment.toml")
    assert len(made.registration.cells) == 3 * 6 * len(ARMS)
    assert made.registration.experiment["referee"]["judges"] == "any-accepted"
    assert [row["dead"] for row in made.registration.outlook["population"]["flow"]] == [3] * 6


def test_the_family_is_the_published_one() -> None:
    """Contrasts, families, guards, power and bootstrap are those whose published figures are reproduced elsewhere."""
    analysis = load_experiment(EXAMPLE / "experiment.toml").analysis
    assert analysis.family == PUBLISHED["family"]
    for entry, known in zip(analysis.contrasts, PUBLISHED["contrasts"], strict=True):
        mine = entry.model_dump(mode="json", exclude_none=True)
        wanted = {"family": None, **known}
        assert {name: mine.get(name) for name in wanted if name != "power"} == {
            name: value for name, value in wanted.items() if name != "power"
        }
        assert {name: (mine.get("power") or {}).get(name) for name in known.get("power", {})} == known.get("power", {})
        if entry.bootstrap is not None:
            assert mine["bootstrap"] | BOOTSTRAP == mine["bootstrap"]
    assert [guard.kind for guard in analysis.guards] == [
        "material-rescue", "harm-gate", "harm-gate", "stratum-gate", "stratum-gate", "stratum-gate",
    ]  # fmt: skip
    small = load_experiment(EXAMPLE / "small.toml").analysis
    assert [item.name for item in small.contrasts] == [item.name for item in analysis.contrasts]
    assert small.guards == analysis.guards
