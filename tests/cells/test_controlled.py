"""Controllers in an experiment: options and corpus, what a freeze refuses and prints, lockstep, and the audit."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from cells.arm_listing import checked
from cells.audit.auditing import audit_run
from cells.cli import app
from cells.fire_rates import fire_lines, fire_rate
from cells.freeze import reopen_for_judging
from cells.freeze_view import freeze_lines
from cells.parts import SourceOrigin, assemble
from cells.pools.candidates import candidate_line, header_line, parse_pool, wanted
from cells.run import run
from harness import plugins
from harness.canonical import digest_bytes
from harness.clock import SystemClock
from harness.errors import ExperimentError, PluginError, UsageError
from harness.experiment import load_experiment
from harness.messages import Request
from harness.models.scripted import ScriptedProvider
from harness.views import Fact, PublicReading
from referees.null import NullReferee
from tests.arms.controlled import CORPUS, corpus
from tests.cells.audited import MODEL
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes, write_experiment
from tests.cells.mirrored_house import FOUR, replying, states
from tests.cells.test_pools import answers, made
from tests.cells.test_population import frozen_with

pytestmark = pytest.mark.anyio

TRACES = '["TRACE", "TRACE-SHAPE", "TRACE-DECOY"]'
GIVEN = '["B", { name = "INVERT", corpus = "corpus.json" }]'
CORPORA = "[{}]".format(
    ", ".join(f'{{ name = "{name}", corpus = "corpus.json" }}' for name in ("LINUCB", "LINUCB-SHAPE", "LINUCB-DECOY"))
)


class Telling(NullReferee):
    """A referee whose public tests say what came instead: `x = N` gave N or raised, and does not build at 4."""

    @asynccontextmanager
    async def public_check(self, task: Any, sealed: Any, rooms: Any) -> AsyncIterator[Any]:
        """A tier of ten assertions."""

        async def check(code: str) -> PublicReading:
            number = int(code.rpartition("=")[2])
            name = task.details["entry_point"]
            facts = (
                Fact(call=f"{name}([])", expected="[1]", observed=repr([number])),
                Fact(call=f"{name}([3, {number}])", expected="5", raised="ValueError: ```\n- x"),
                Fact(call=f"{name}('a')", expected="'b'"),
            )[: number % 4]
            if number == 4:
                return PublicReading(
                    reading="NO_BUILD", accepted=False, passed=0, total=10, unbuilt="SyntaxError: x was never closed"
                )
            return PublicReading(reading="FAIL", accepted=False, passed=number % 10, total=10, facts=facts)

        yield check


def varied(request: Request) -> str:
    """Code that differs from seed to seed, and that makes an assumption."""
    return f"x = [0][0]\nx = {(request.seed or 0) % 9}"


def written(folder: Path, data: bytes = CORPUS) -> None:
    """A corpus beside the experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.json").write_bytes(data)


async def frozen(folder: Path, arms: str, **changes: Any) -> Any:
    """An experiment of one source and its mirrors."""
    first = "LINUCB" if "LINUCB" in arms else "INVERT" if "INVERT" in arms else "TRACE"
    control = f"{first}-SHAPE" if f"{first}-SHAPE" in arms else "B"
    given = {"arms": arms, "treatment": first, "control": control, "seat_options": FOUR, **changes}
    return await frozen_run(folder, **given)


@pytest.mark.parametrize("arms", [TRACES, CORPORA], ids=["TRACE", "LINUCB"])
async def test_a_controlled_run_is_in_lockstep_and_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arms: str
) -> None:
    """Each mirror has its source's state of every round, the audit makes all of them again, and the bandit's too."""
    written(tmp_path)
    with fakes(
        monkeypatch, fake_backend(tmp_path), probed=True, referees_null=Telling, models_scripted=replying(varied)
    ):
        one = await frozen(tmp_path, arms, concurrency=9, model=MODEL)
        with anyio.fail_after(15):
            assert await run(one.folder, watcher=Quiet()) == "finished"
    source = next(iter(one.parts.arms))
    published = states(one.folder, source)
    assert len(published) == 3 * 4
    assert len({block for block, *_rest in published.values()}) > 3
    assert states(one.folder, f"{source}-SHAPE") == states(one.folder, f"{source}-DECOY") == published
    assert {outcome.end.kind for outcome in outcomes(one.folder)} == {"DECLARED"}
    assert audit_run(one.folder).findings == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LINUCB", "'LINUCB' can't be used: lacks: it was not given a corpus of assumptions: give it, and each of"),
        ("linucb", "'linucb' is not registered and names no text: one of your own is { name"),
        ("linucb", "Did you mean 'LINUCB'?"),
    ],
)
async def test_a_table_with_a_name_alone_says_what_the_arm_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    """It is the registered arm, as its bare name is, and no text without a file."""
    with fakes(monkeypatch, fake_backend(tmp_path)), pytest.raises((ExperimentError, PluginError)) as refused:
        await frozen_run(tmp_path, arms=f'["B", {{ name = "{name}" }}]', treatment=name, control="B")
    assert said in str(refused.value)


async def test_options_and_corpus_are_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other options are another arm, the corpus is among the blobs, and a judge needs no file of the experiment's."""
    written(tmp_path)
    arms = '["B", { name = "LINUCB", corpus = "corpus.json", options = { alpha = 0.5, weights = { near = 9 } } }]'
    with fakes(monkeypatch, fake_backend(tmp_path)):
        one = await frozen(tmp_path, arms)
        pins = one.registration.pins
        assert pins["arm LINUCB"]["corpus"] == digest_bytes(CORPUS)
        assert pins["plugin arms/LINUCB"]["target"] == "arms.controllers.table:linucb"
        assert json.loads(one.parts.arms["LINUCB"].content)["settings"]["alpha"] == 0.5
        other = await frozen(tmp_path, arms.replace("0.5", "0.25"))
        assert other.registration.pins["arm LINUCB"] != pins["arm LINUCB"]
        (tmp_path / "corpus.json").unlink()
        again, changed = await reopen_for_judging(one.folder, clock=SystemClock())
        assert changed == []
        assert again.parts.arms["LINUCB"].content == one.parts.arms["LINUCB"].content


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        ('["B", "INVERT"]', "lacks: it was not given a corpus of assumptions"),
        ('["B", "LINUCB"]', "lacks: it was not given a corpus of assumptions"),
        ('["B", { name = "INVERT", corpus = "nowhere.json" }]', r"nowhere\.json can't be read \(No such file"),
        ('["B", { name = "INVERT", corpus = "corpus.json", options = { alpha = 1 } }]', "unknown option 'alpha'"),
        ('["B", { name = "TRACE", options = { wieghts = {} } }]', "Did you mean 'weights'"),
        ('["B", { name = "TRACE", options = { corpus = "corpus.json" } }]', "unknown option 'corpus'"),
        ('["B", { name = "TRACE", options = { weights = { near = nan } } }]', "near is nan: expected a finite number"),
        ('["B", { name = "TRACE", corpus = "corpus.json" }]', "the arm takes none"),
        ('["TRACE", { name = "B", options = { weights = {} } }]', "unknown option 'weights'"),
        ('["B", { name = "TRACE", option = {} }]', "unknown key 'option'"),
        ('["B", { name = "TRASE", options = {} }]', "unknown arm 'TRASE'"),
        ('["B", { name = "LINUCB", options = { alpha = inf, actions = ["facts", "trace"] } }]', "alpha is inf"),
        ('["B", "TRACE-SHAPE"]', "mirrors 'TRACE', which is not in `arms`"),
    ],
)
def test_what_can_not_be_made_is_refused(tmp_path: Path, arms: str, words: str) -> None:
    """A missing corpus, an unknown option, a number that is none: each is named where an experiment is put together."""
    written(tmp_path)
    name = next(name for name in ("TRACE-SHAPE", "TRASE", "TRACE", "INVERT", "LINUCB") if f'"{name}"' in arms)
    path = write_experiment(tmp_path, arms=arms, treatment=name, control="B")
    with pytest.raises((ExperimentError, PluginError), match=words):
        assemble(load_experiment(path), SourceOrigin(tmp_path))


async def test_a_freeze_refuses_a_controller_without_its_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not given, one that is not there, one that is none: before a byte of the registration is written."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        with pytest.raises(ExperimentError, match="lacks: it was not given a corpus"):
            await frozen(tmp_path, '["B", "INVERT"]')
        with pytest.raises(PluginError, match=r"its corpus .*corpus\.json can't be read"):
            await frozen(tmp_path, GIVEN)
        written(tmp_path, corpus(["non-emty"]))
        with pytest.raises(PluginError, match="Did you mean 'non-empty'"):
            await frozen(tmp_path, GIVEN)
        assert not (tmp_path / "runs").exists()


async def test_a_freeze_tells_the_fire_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the population's candidates; a controller that never fires is named, and without a pool nothing is known."""
    pool = await made(tmp_path, monkeypatch)
    arms = {"arms": '["P", "TRACE", "KERNEL"]', "treatment": "TRACE", "control": "P"}
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answers)):
        one = await frozen_with(tmp_path, pool, **arms)
        text = "\n".join(freeze_lines(one))
        row = {"arm": "TRACE", "fires": 0, "candidates": 3, "units_fired": 0, "units": 1, "rate": 0.0}
        assert one.registration.outlook["controllers"] == [row, {**row, "arm": "KERNEL"}]
        assert "controller of TRACE: fires on 0 of 3 rejected candidates (0.0%), in 0 of 1 units" in text
        assert "IT NEVER FIRES: on this pool the packets of TRACE are P's" in text
        blind = await frozen_run(tmp_path, **arms, model="")
        assert "controller of KERNEL: its fire rate is not known" in "\n".join(freeze_lines(blind))
        plain = await frozen_run(tmp_path, model="")
        assert "controllers" not in plain.registration.outlook


def told_pool(folder: Path) -> Path:
    """A pool of two units: one has a trace in one of two candidates, the other is accepted or has no code."""
    header = {
        "schema": "proctor-pool/1",
        "seed_namespace": "pool",
        "n": 2,
        "models": {"m": {}},
        "tasks": [{"benchmark": "b", "task": "t0"}, {"benchmark": "b", "task": "t1"}],
    }
    lines = []
    for unit, index in wanted(header):
        facts = [{"call": "f([])", "expected": "[1]", **({"observed": "None"} if index else {})}]
        good = unit.task == "t1" and index == 0
        reading = {"accepted": good, "reading": "FAIL", "passed": 0, "total": 1, "facts": [] if good else facts}
        kept = {"rule": "bare", "code": "" if unit.task == "t1" and index else "x = [1][0]", "reading": reading}
        lines.append(candidate_line(header, unit, index, {"prompt_chars": 1, "standard": kept, "robust": kept}))
    path = folder / "pool.jsonl"
    path.write_bytes(header_line(header) + b"".join(lines))
    return path


def test_a_fire_rate_counts_what_can_be_shown(tmp_path: Path) -> None:
    """Rejected candidates with code alone; an arm without a controller has none, and nothing of nothing is undefined."""
    pool = parse_pool(told_pool(tmp_path).read_bytes(), "pool")
    rate = fire_rate(plugins.load("arms", "TRACE")(), pool, pool.lines)
    assert rate is not None
    assert (rate.fires, rate.candidates, rate.units_fired, rate.units, rate.rate) == (1, 2, 1, 1, 0.5)
    assert fire_rate(plugins.load("arms", "TC")(), pool, pool.lines) is None
    assert fire_rate(plugins.load("arms", "TRACE-SHAPE")(), pool, pool.lines) is None
    nothing = fire_rate(plugins.load("arms", "TRACE")(), pool, ())
    assert nothing is not None
    assert "(undefined)" in next(fire_lines([nothing.to_json()]))


def test_arm_check_tells_the_fire_rate_of_a_pool(tmp_path: Path) -> None:
    """Of a registered arm, or as an experiment makes it; an arm without a controller is no use."""
    path = str(told_pool(tmp_path))
    shown = CliRunner().invoke(app, ["arm", "check", "TRACE", "--pool", path])
    assert shown.exit_code == 0, shown.output
    assert "note: fires: controller of TRACE: fires on 1 of 2 rejected candidates (50.0%)" in shown.stdout
    with pytest.raises(UsageError, match="has no controller"):
        checked("TC", pool=Path(path))
    assert CliRunner().invoke(app, ["arm", "check", "INVERT", "--pool", path]).exit_code == 3


async def test_arm_check_takes_an_arm_as_the_experiment_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its options and corpus; a name that the experiment does not have is refused."""
    written(tmp_path)
    with fakes(monkeypatch, fake_backend(tmp_path)):
        await frozen(tmp_path, GIVEN)
    asked = ["arm", "check", "INVERT", "--experiment", str(tmp_path), "--pool", str(told_pool(tmp_path)), "--json"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "fires on 2 of 2" in {row["rule"]: row["detail"] for row in json.loads(shown.stdout)}["fires"]
    with pytest.raises(UsageError, match="unknown arm 'TRACE'"):
        checked("TRACE", experiment=tmp_path)
