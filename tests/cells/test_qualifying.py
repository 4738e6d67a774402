"""What `proctor fence qualify` and `replay` say, on fakes: every backend that is here, row by row, and when it doesn't hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cells.cli import app
from cells.probing import Probing, replay_table, take_table
from cells.qualifying import qualified_to_json, qualify_here
from fences.receipt import Receipt, take_receipt
from fences.rendering import render
from fences.rows import ProbeRow, rows_to_json
from harness import plugins
from harness.clock import SystemClock
from harness.errors import ImageError, UsageError, WorkspaceError
from harness.record import Record
from harness.views import Attempt, Fence, Finding, Site
from tests.cells.houses import frozen_run, write_experiment
from tests.fake_workspace import FakeBackend, FakeWorkspace, ran

DENIED, SERVED = Finding.DENIED, Finding.SERVED
FENCE = "[fence]\nrequires = []\ntools = []\nmust_work = []\n"


class NetProbe:
    """A probe of the fake's own walls; `up` is what it finds with the fence up."""

    name, language, threat, holds = "net", "python", "a test's", frozenset({DENIED})
    up = DENIED

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's network."""
        return replace(fence, walls=replace(fence.walls, network="host"))

    async def attempt(self, workspace: FakeWorkspace, fence: Fence, site: Site) -> Attempt:
        """Served where the walls have a network."""
        assert workspace.walls is not None
        return Attempt(finding=SERVED if workspace.walls.network == "host" else self.up, evidence="ENETUNREACH")


class Backend(FakeBackend):
    """A fake whose programs say that they did their work, with one promise that it does not keep."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, programs={"python3": lambda call: ran(stdout=b"ok")})

    async def guarantees(self) -> dict[str, str | None]:
        """One is not kept."""
        return {"network": None, "tmp_inodes": "no limit of files here"}


class FillingProbe(NetProbe):
    """A probe of what this backend does not enforce."""

    name, guarantee = "filling", "tmp_inodes"


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Two registered probes, two backends by name, and a state folder of this test's own."""
    here: dict[str, Any] = {"docker": Backend("docker"), "bubblewrap": Backend("bubblewrap"), "net": NetProbe()}
    registered = (here["net"], FillingProbe())
    for module in ("fences.qualification", "fences.table", "cells.probing"):
        monkeypatch.setattr(f"{module}.registered_probes", lambda: registered)
    monkeypatch.setattr("fences.qualification.state_home", lambda: tmp_path / "state")
    real = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda kind, name: (lambda: here[name]) if kind == "workspaces" else real(kind, name)
    )
    return here


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """An experiment file whose fence lists no tool and needs nothing to work."""
    path = write_experiment(tmp_path)
    path.write_text(path.read_text("utf-8") + FENCE, "utf-8")
    return path


async def qualified(experiment: Path, **more: Any) -> dict[str, Any]:
    """The JSON of a qualification."""
    given = {"backend": "all", "image": "img", "again": False, "say": lambda _text: None, **more}
    return qualified_to_json(await qualify_here(experiment, **given))


@pytest.mark.anyio
async def test_every_backend_that_is_here_has_a_row_for_each_probe(probes: dict[str, Any], experiment: Path) -> None:
    """With the fields that a script reads, and held and fired worked out; what is not enforced says why."""
    found = await qualified(experiment)
    assert found["holds"] is True
    assert [(row["probe"], row["backend"]) for row in found["probes"]] == [
        ("net", "bubblewrap"), ("filling", "bubblewrap"), ("net", "docker"), ("filling", "docker"),
    ]  # fmt: skip
    net, filling = found["probes"][:2]
    assert set(net) >= {"probe", "backend", "weakening", "held", "fired", "finding_up", "finding_down", "ms"}
    assert (net["held"], net["fired"], net["finding_up"], net["finding_down"]) == (True, True, "DENIED", "SERVED")
    assert (net["weakening"], net["not_measured"]) == ("network=host", None)
    assert (filling["held"], filling["fired"], filling["finding_up"]) == (None, None, None)
    assert filling["not_measured"] == "not enforced here: no limit of files here"
    assert json.loads(json.dumps(found)) == found
    assert [item["reused"] for item in found["backends"]] == [False, False]
    assert [item["reused"] for item in (await qualified(experiment))["backends"]] == [True, True]
    assert [item["reused"] for item in (await qualified(experiment, again=True))["backends"]] == [False, False]


@pytest.mark.anyio
async def test_a_kept_table_that_is_damaged_is_told(probes: dict[str, Any], experiment: Path, tmp_path: Path) -> None:
    """An auditor learns why the table was taken anew."""
    await qualified(experiment, backend="docker")
    for path in (tmp_path / "state" / "qualifications").iterdir():
        path.write_bytes(b"{")
    said: list[str] = []
    await qualified(experiment, backend="docker", say=said.append)
    assert any(line.startswith("docker: taken anew, since ") and "can't be read" in line for line in said)


@pytest.mark.anyio
async def test_a_backend_that_can_not_be_used_is_passed_over_and_said(probes: dict[str, Any], experiment: Path) -> None:
    """All means those that are here; one by name must be; and none at all is an error."""

    async def gone() -> dict[str, str]:
        raise WorkspaceError("no engine answers")

    probes["docker"].engine = gone
    said: list[str] = []
    found = await qualified(experiment, say=said.append)
    assert {row["backend"] for row in found["probes"]} == {"bubblewrap"}
    assert any("docker" in line and "no engine answers" in line for line in said)
    with pytest.raises(UsageError, match="no engine answers"):
        await qualified(experiment, backend="docker")
    probes["bubblewrap"].engine = gone
    with pytest.raises(UsageError, match="no workspace backend can be used"):
        await qualified(experiment)


def test_the_command_ends_with_3_when_it_does_not_hold(probes: dict[str, Any], experiment: Path) -> None:
    """With 0 when it does; the JSON is the same either way, and progress is on standard error."""
    good = CliRunner().invoke(app, ["fence", "qualify", str(experiment), "--json"])
    assert good.exit_code == 0, good.output
    assert json.loads(good.stdout)["holds"] is True
    assert "probe net: DENIED with the fence up, SERVED with it down" in good.stderr
    probes["net"].up = SERVED
    bad = CliRunner().invoke(app, ["fence", "qualify", str(experiment), "--again", "--json", "--backend", "docker"])
    assert bad.exit_code == 3
    found = json.loads(bad.stdout)
    assert found["holds"] is False
    assert [row["held"] for row in found["probes"] if row["probe"] == "net"] == [False]
    table = CliRunner().invoke(app, ["fence", "qualify", str(experiment), "--again"])
    assert table.exit_code == 3
    assert "does not hold on docker: net: with the fence up it was SERVED" in table.stdout


async def recorded_run(tmp_path: Path, probes: dict[str, Any], **receipt: Any) -> Path:
    """A run folder whose record holds a table of these probes, taken under other conditions where `receipt` says so."""
    frozen = await frozen_run(tmp_path / "frozen")
    policy = frozen.parts.policy
    taken: Receipt = replace(await take_receipt(probes["docker"], policy, "proctor-seat"), **receipt)
    what = Probing(policy=policy, fence=render(policy, "proctor-seat"), backend=probes["docker"], image="proctor-seat")
    rows, _faults, _now = await take_table(what, say=lambda _text: None)
    with Record(frozen.folder, registration_digest=frozen.registration.digest, clock=SystemClock()) as record:
        record.append("fence.probed", {"receipt": taken.to_json(), "rows": rows_to_json(rows)})
    return frozen.folder


async def replayed(folder: Path, **more: Any) -> dict[str, Any]:
    """What a replay says."""
    return await replay_table(folder, say=lambda _text: None, **more)


@pytest.mark.anyio
async def test_a_replay_under_the_same_conditions_is_identical(tmp_path: Path, probes: dict[str, Any]) -> None:
    """And one of a probe that finds something else names it as unexplained."""
    folder = await recorded_run(tmp_path, probes)
    same = await replayed(folder)
    assert (same["identical"], same["differences"], same["receipt_differences"]) == (True, [], [])
    probes["net"].up = SERVED
    other = await replayed(folder)
    assert other["identical"] is False
    assert {item["explained_by"][0] for item in other["differences"] if item["probe"] == "net"} == {"unexplained"}


@pytest.mark.anyio
async def test_another_node_is_named_and_counts_only_when_it_was_not_expected(
    tmp_path: Path, probes: dict[str, Any]
) -> None:
    """With `other_node` only findings are compared, and a finding that differs still is no agreement."""
    folder = await recorded_run(tmp_path, probes, node="other", engine={"engine": "fake", "version": "9"})
    strict = await replayed(folder)
    assert strict["identical"] is False
    assert {item["part"] for item in strict["receipt_differences"]} == {"node", "engine.version"}
    lenient = await replayed(folder, other_node=True)
    assert (lenient["identical"], lenient["compared"], lenient["differences"]) == (True, "findings", [])
    probes["net"].up = SERVED
    differing = await replayed(folder, other_node=True)
    assert differing["identical"] is False
    assert {item["field"] for item in differing["differences"]} == {"finding_up", "holds"}
    assert {"node", "engine.version"} == set(differing["differences"][0]["explained_by"])


@pytest.mark.anyio
async def test_an_image_that_is_not_here_is_an_error_with_the_next_step(
    tmp_path: Path, probes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another image is taken only when it is named, and then it is named as what differs."""
    folder = await recorded_run(tmp_path, probes)
    other = await replayed(folder, image="other")
    assert {item["part"] for item in other["receipt_differences"]} == {"image", "walls"}
    assert other["identical"] is False

    async def nowhere(image: str) -> str:
        raise ImageError(f"there is no image {image!r}")

    monkeypatch.setattr(probes["docker"], "image_digest", nowhere)
    with pytest.raises(ImageError, match=r"no image 'proctor-seat'\. The run's .* image 'proctor-seat' .*--image NAME"):
        await replayed(folder)


def test_a_row_that_was_not_tried_survives_the_record() -> None:
    """None is a finding that there is none of."""
    row = ProbeRow.of(probe="p", language="python", expected=[DENIED], up=(None, "not enforced here: x"))
    assert (row.holds, row.finding_up) == (None, None)
    assert json.loads(json.dumps(rows_to_json([row])))[0]["finding_up"] is None


def test_a_fence_is_shown_with_what_is_not_enforced(probes: dict[str, Any], experiment: Path) -> None:
    """Each rule with its key, and each promise that the backend does not keep with why; the same in the JSON."""
    shown = CliRunner().invoke(app, ["fence", "show", str(experiment), "--backend", "docker"])
    assert shown.exit_code == 0, shown.output
    assert "  gateway: no address allowed   <- fence.network" in shown.stdout
    assert "  not enforced by docker: tmp_inodes: no limit of files here" in shown.stdout
    data = json.loads(CliRunner().invoke(app, ["fence", "show", str(experiment), "--json"]).stdout)
    assert data["not_enforced"] == {"tmp_inodes": "no limit of files here"}
    assert {"layer", "rule", "came_from"} == set(data["rules"][0])
