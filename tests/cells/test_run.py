"""The main path on fakes: what is run, what is not, what a failure of ours makes of a cell, and what a resume does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import pytest

from cells.freeze import reopen
from cells.run import run
from cells.verifying import verify_run
from harness.clock import SystemClock
from harness.errors import BusyError, DriftError, ExperimentError, IntegrityError, ModelServerError, WorkspaceError
from harness.messages import Completion, Request
from harness.models.scripted import ScriptedProvider
from harness.record import Record, read_entries
from harness.values import Halt, Usage, Void
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run, outcomes

pytestmark = pytest.mark.anyio

CODE = "```python\nx = 1\n```"


def answering(text: str = CODE) -> Completion:
    """A whole answer with known usage."""
    usage = Usage(input=10, output=5, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    return Completion(text=text, stop="stop", usage=usage, served_model="script", latency_s=0.0)


async def test_a_run_plays_every_cell_once_and_a_second_one_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three tasks, two arms: six outcomes; running again adds none, and the record verifies both times."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        first = outcomes(frozen.folder)
        assert Counter((outcome.cell.arm, outcome.outcome_class) for outcome in first) == {
            ("B", "PASS"): 3,
            ("P", "PASS"): 3,
        }
        assert [outcome.cell for outcome in first] == list(dict.fromkeys(outcome.cell for outcome in first))
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        assert outcomes(frozen.folder) == first
        assert verify_run(frozen.folder).ok


async def test_a_dead_model_server_voids_and_a_resume_plays_exactly_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VOID has no verdict, is tried as often as registered, and is taken up again by the next session; a FAIL is not."""
    down = True

    def answer(request: Request) -> Completion:
        if down and "task_1" in request.messages[-1].content:
            raise ModelServerError("connection refused \ud800\x00")
        return answering()

    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answer)):
        frozen = await frozen_run(tmp_path, model="")
        assert await run(frozen.folder, watcher=Quiet()) == "incomplete"
        void = [outcome for outcome in outcomes(frozen.folder) if isinstance(outcome.end, Void)]
        assert Counter(str(outcome.cell) for outcome in void) == {
            "tasks|Fake/1|B|none|m|1": 2,
            "tasks|Fake/1|P|none|m|1": 2,
        }
        assert {outcome.end.cause for outcome in void if isinstance(outcome.end, Void)} == {"model-server"}
        assert all(outcome.verdict is None and outcome.spend.calls == 1 and outcome.spend.estimated for outcome in void)
        down = False
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        later = outcomes(frozen.folder)[8:]
        assert sorted(str(outcome.cell) for outcome in later) == ["tasks|Fake/1|B|none|m|1", "tasks|Fake/1|P|none|m|1"]
        assert [outcome.attempt for outcome in later] == [3, 3]


async def test_blame_is_noted_at_the_boundary_even_if_the_seat_swallows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A seat that catches everything can't turn a dead model server into an outcome of its own."""

    def answer(_request: Request) -> Completion:
        raise ModelServerError("gone")

    seat = {"seat": "scripted", "seat_options": "[seat.options]\nloop_forever = true\ncatch_everything = true\n"}
    arms = {"arms": '["plain", "placebo"]', "treatment": "placebo", "control": "plain"}
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answer)):
        frozen = await frozen_run(tmp_path, model="", retries=0, **seat, **arms)
        monkeypatch.setattr("cells.sitting.run_enclosed", _short_grace())
        assert await run(frozen.folder, watcher=Quiet()) == "incomplete"
        ends = {
            (outcome.outcome_class, outcome.end.cause)
            for outcome in outcomes(frozen.folder)
            if isinstance(outcome.end, Void)
        }
        assert ends == {("VOID", "model-server")}
        assert all(outcome.spend.calls == 1 for outcome in outcomes(frozen.folder))


def _short_grace() -> object:
    from functools import partial

    from harness.enclosure import run_enclosed

    async def short(make: object, *, clock: object, grace_s: float) -> object:
        return await partial(run_enclosed, grace_s=0.05)(make, clock=clock)  # type: ignore[arg-type]

    return short


@pytest.mark.parametrize("everything", [False, True], ids=["except Exception", "except BaseException"])
async def test_a_seat_that_calls_for_ever_ends_as_halt_within_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    """Whatever it catches: three calls of 15 tokens reach a budget of 40, the third is the last, and HALT is the end."""
    calls = 0

    def answer(_request: Request) -> Completion:
        nonlocal calls
        calls += 1
        return answering()

    options = f"[seat.options]\nloop_forever = true\ncatch_everything = {str(everything).lower()}\n"
    more = {"more": "[budgets.cell]\ntokens = 40\n", "seat": "scripted", "seat_options": options}
    arms = {"arms": '["plain", "placebo"]', "treatment": "placebo", "control": "plain"}
    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(answer)):
        frozen = await frozen_run(tmp_path, model="", concurrency=1, **more, **arms)
        monkeypatch.setattr("cells.sitting.run_enclosed", _short_grace())
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        assert calls == 3 * 6
        found = outcomes(frozen.folder)
        assert {outcome.end for outcome in found} == {Halt(limit="tokens", scope="cell", bound=40.0, spent=45.0)}
        assert all(
            outcome.passed is None and outcome.verdict is None and outcome.would_be is not None for outcome in found
        )


async def test_a_run_budget_stops_what_comes_after_it_without_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells beyond the run's budget are HALT(run) with nothing spent: never FAIL, never missing."""
    with fakes(
        monkeypatch, fake_backend(tmp_path), models_scripted=lambda: ScriptedProvider(lambda _request: answering())
    ):
        frozen = await frozen_run(tmp_path, model="", concurrency=1, more="[budgets.run]\ncalls = 3\n")
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        found = outcomes(frozen.folder)
        assert sum(outcome.spend.calls for outcome in found) == 3
        halted = [outcome for outcome in found if isinstance(outcome.end, Halt)]
        assert len(halted) == 5
        assert {outcome.end.scope for outcome in halted if isinstance(outcome.end, Halt)} == {"run"}


async def test_a_workspace_that_fails_is_void_and_a_streak_stops_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dead engine is nobody's failure; after a streak of one cause the session stops and says what to do."""
    backend = fake_backend(tmp_path)

    def dead(_name: str) -> object:
        raise WorkspaceError("the engine does not answer")

    with fakes(monkeypatch, backend):
        frozen = await frozen_run(tmp_path, replicates=3, concurrency=1)
        backend.make = dead  # type: ignore[assignment]
        watcher = Quiet()
        assert await run(frozen.folder, watcher=watcher) == "incomplete"
        found = outcomes(frozen.folder)
        assert {(type(outcome.end), outcome.verdict) for outcome in found} == {(Void, None)}
        assert len(found) == 7
        assert "stopped early: 7 tries in a row were VOID(workspace): the engine does not answer" in watcher.notes[-1]


async def test_stop_interrupts_cleanly_and_the_next_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was running is VOID(interrupted) with its spend; what was finished stays; the rest is played later."""
    stop, hang = anyio.Event(), anyio.Event()

    class Hanging:
        """Answers two calls, then hangs until it is cancelled."""

        calls = 0

        async def complete(self, _request: Request) -> Completion:
            """Answer or hang."""
            Hanging.calls += 1
            if Hanging.calls > 2 and not hang.is_set():
                stop.set()
                await anyio.sleep_forever()
            return answering()

    class Provider(ScriptedProvider):
        """Opens the hanging model."""

        def open(self, spec: object) -> object:  # type: ignore[override]
            """One for all."""
            from contextlib import nullcontext

            class Opened(nullcontext):  # type: ignore[type-arg]
                """An async context."""

            return Opened(Hanging())

    with fakes(monkeypatch, fake_backend(tmp_path), models_scripted=lambda: Provider(lambda _request: answering())):
        frozen = await frozen_run(tmp_path, model="", concurrency=1, seat_options="[seat.options]\nrounds = 1\n")
        assert await run(frozen.folder, watcher=Quiet(), stop=stop) == "interrupted"
        first = outcomes(frozen.folder)
        assert [outcome.outcome_class for outcome in first] == ["PASS", "PASS", "VOID"]
        assert isinstance(first[2].end, Void)
        assert first[2].end.cause == "interrupted"
        assert (first[2].spend.calls, first[2].spend.usage.total, first[2].spend.estimated) == (1, None, True)
        hang.set()
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        assert [outcome.attempt for outcome in outcomes(frozen.folder)[3:]] == [2, 1, 1, 1]


async def test_a_driver_that_was_killed_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A started try without an outcome becomes VOID(interrupted) at the next start, and its cell is played."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path, concurrency=1)
        registration = frozen.registration
        from dataclasses import asdict

        with Record(frozen.folder, registration_digest=registration.digest) as record:
            record.append("run.opened", {"registration": registration.id})
            record.append("cell.started", {"cell": asdict(registration.cells[0]), "attempt": 1})
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        found = outcomes(frozen.folder)
        assert [(str(outcome.cell), outcome.attempt, outcome.outcome_class) for outcome in found[:2]] == [
            (str(registration.cells[0]), 1, "VOID"),
            (str(registration.cells[0]), 2, "PASS"),
        ]
        assert Counter(outcome.outcome_class for outcome in found) == {"VOID": 1, "PASS": 6}


async def test_a_control_that_does_not_hold_withdraws_its_task_from_all_arms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A referee that accepts the degenerate exhibit judges nobody: every cell of the task is REFUSED(controls)."""
    from harness.tree import Tree
    from referees.null import NullReferee

    class Lenient(NullReferee):
        """Accepts what is empty, of one task."""

        def battery(self, task: object, sealed: object) -> dict[str, Tree]:
            """The 'empty' exhibit of one task has something in it, which the null referee accepts."""
            return {"empty": Tree.of({"a": "x" if getattr(task, "name", "") == "Fake/1" else ""})}

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Lenient):
        frozen = await frozen_run(tmp_path)
        assert await run(frozen.folder, watcher=Quiet()) == "finished"
        classes = {(outcome.cell.task, outcome.outcome_class) for outcome in outcomes(frozen.folder)}
        assert classes == {("Fake/0", "PASS"), ("Fake/1", "REFUSED"), ("Fake/2", "PASS")}


async def test_a_verdict_outside_the_class_table_on_other_code_or_by_another_suite_is_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown token is a refusal, and a verdict on another tree than the exhibit is none."""
    from dataclasses import replace

    from referees.null import NullReferee

    class Odd(NullReferee):
        """Says something of its own after the controls."""

        async def judge(self, exhibit, task, sealed, rooms):  # type: ignore[no-untyped-def]
            """One bad verdict for each of two tasks."""
            verdict = await super().judge(exhibit, task, sealed, rooms)
            if "solution.py" not in exhibit.tree or exhibit.tree["solution.py"] == b"":
                return verdict
            if task.name == "Fake/0":
                return replace(verdict, reading="SPLENDID")
            if task.name == "Fake/1":
                return replace(verdict, evidence=replace(verdict.evidence, code="0" * 64))
            if task.name == "Fake/2":
                return replace(verdict, evidence=replace(verdict.evidence, suite="0" * 64))
            return verdict

        def reference(self, sealed):  # type: ignore[no-untyped-def]
            """Something else than a solution."""
            from harness.tree import Tree

            return Tree.of({"reference": "x"})

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Odd):
        frozen = await frozen_run(tmp_path, retries=0)
        assert await run(frozen.folder, watcher=Quiet()) == "incomplete"
        ends = {(outcome.cell.task, outcome.outcome_class): outcome.end for outcome in outcomes(frozen.folder)}
        assert set(ends) == {(f"Fake/{number}", "VOID") for number in range(3)}
        assert "no such reading" in getattr(ends["Fake/0", "VOID"], "detail", "")
        assert "the exhibit is" in getattr(ends["Fake/1", "VOID"], "detail", "")
        assert "the registration has" in getattr(ends["Fake/2", "VOID"], "detail", "")


async def test_two_runs_can_not_write_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is told who holds it."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        with Record(frozen.folder, registration_digest=frozen.registration.digest), pytest.raises(BusyError):
            await run(frozen.folder, watcher=Quiet())


async def test_each_drifted_pin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task, a setting, an image: whichever changed since the freeze is named, and nothing is run."""
    backend = fake_backend(tmp_path)
    with fakes(monkeypatch, backend):
        frozen = await frozen_run(tmp_path)
        assert (await reopen(frozen.folder, clock=SystemClock())).registration.id == frozen.registration.id
        tasks, file = tmp_path / "tasks.jsonl", tmp_path / "experiment.toml"
        for path, old, new, named in (
            (tasks, "Return x plus 1", "Return x plus one", "task tasks/Fake/1"),
            (tasks, "x + 2", "x - 2", "task tasks/Fake/2"),
            (file, 'kind = "oneshot"', 'kind = "oneshot"\noptions = { rounds = 3 }', "seat options"),
            (file, "void = 1", "void = 2", "experiment file: retries"),
        ):
            before = path.read_text("utf-8")
            path.write_text(before.replace(old, new), "utf-8")
            with pytest.raises(DriftError, match=named):
                await run(frozen.folder, watcher=Quiet())
            path.write_text(before, "utf-8")
        monkeypatch.setattr(type(backend), "image_digest", _another_image)
        with pytest.raises(DriftError, match="image: frozen as"):
            await run(frozen.folder, watcher=Quiet())
        assert not (frozen.folder / "record.jsonl").exists()


async def _another_image(self: object, image: str) -> str:
    await anyio.lowlevel.checkpoint()
    return f"another {image}"


async def test_an_edited_registration_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing frozen is ever edited: its own id, its form and the record's first line each say so."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        await run(frozen.folder, watcher=Quiet())
        path = frozen.folder / "registration.json"
        raw = path.read_bytes()
        for old, new in ((b'"void":1', b'"void":2'), (b'"frozen_at":"2', b'"frozen_at":"1'), (b"{", b"{ ")):
            path.write_bytes(raw.replace(old, new, 1))
            assert not verify_run(frozen.folder).ok
        path.write_bytes(raw.replace(b'"void":1', b'"void":2', 1))
        with pytest.raises(IntegrityError, match="was edited"):
            await run(frozen.folder, watcher=Quiet())


async def test_a_moved_run_is_played_from_its_own_blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sources are gone, the frozen tasks and arms are in the run folder."""
    with fakes(monkeypatch, fake_backend(tmp_path)):
        frozen = await frozen_run(tmp_path)
        moved = tmp_path / "elsewhere"
        frozen.folder.rename(moved)
        (tmp_path / "experiment.toml").unlink()
        (tmp_path / "tasks.jsonl").unlink()
        assert await run(moved, watcher=Quiet()) == "finished"
        assert len(outcomes(moved)) == 6
        kinds = [entry.kind for entry in read_entries(moved / "record.jsonl")]
        assert kinds[:2] == ["run.opened", "session.started"]
        assert kinds[-1] == "session.closed"


@pytest.mark.anyio
async def test_a_gateway_that_no_seat_serves_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A way out of the room that leads nowhere is a mistake of the file's, told before anything is pinned."""
    with (
        fakes(monkeypatch, fake_backend(tmp_path)),
        pytest.raises(ExperimentError, match=r"fence\.network is 'gateway', and seat 'oneshot'.*expected 'none'"),
    ):
        await frozen_run(tmp_path, more="[fence]\nnetwork = 'gateway'\n")
    assert not (tmp_path / "runs").exists()
