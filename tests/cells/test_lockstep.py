"""Mirrored arms in lockstep: what each copies, who waits, what a broken source means, and that nothing hangs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.run import run
from harness.errors import ExperimentError, ModelServerError
from harness.messages import Request
from harness.values import Void
from tests.cells.houses import Quiet, fake_backend, fakes, outcomes
from tests.cells.mirrored_house import FOUR, Checking, finals, frozen, is_source, replying, states, varied

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("concurrency", [1, 2, 7])
async def test_every_round_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, concurrency: int) -> None:
    """At any concurrency, also one smaller than the group: each mirrored round has its source's block and code."""
    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(varied)):
        made = await frozen(tmp_path, concurrency=concurrency)
        with anyio.fail_after(15):
            assert await run(made.folder, watcher=Quiet()) == "finished"
        source = states(made.folder, "TC")
        assert len(source) == 3 * 4
        assert states(made.folder, "CF-SF") == states(made.folder, "GR-SHAPE") == source
        assert any(bullets for _block, _code, bullets, _source in source.values())
        assert set(finals(made.folder).values()) == {1}
        ended = [outcome.cell for outcome in outcomes(made.folder)]
        for cell in ended:
            assert next(one.arm for one in ended if one.task == cell.task) == "TC"


async def test_a_void_source_is_tried_again_with_its_mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mirrored cells are VOID(mirror), use up no try of their own, and end with the source's second try."""
    failed: list[int] = []

    def once(request: Request) -> Any:
        if "requirements" in request.messages[-1].content and is_source(request) and not failed:
            failed.append(1)
            return ModelServerError("down")
        return varied(request)

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(once)):
        made = await frozen(tmp_path, concurrency=3)
        with anyio.fail_after(15):
            assert await run(made.folder, watcher=Quiet()) == "finished"
        voids = Counter(outcome.end.cause for outcome in outcomes(made.folder) if isinstance(outcome.end, Void))
        assert voids["model-server"] == 1
        assert set(voids) <= {"model-server", "mirror"}
        assert states(made.folder, "CF-SF") == states(made.folder, "TC")


async def test_a_source_that_stays_void(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the source never gets through, its mirrors are VOID(mirror), the run goes on, and none of them is final."""

    def down(request: Request) -> Any:
        return ModelServerError("down") if "task_1" in request.messages[-1].content else varied(request)

    for concurrency in (1, 3):
        folder = tmp_path / str(concurrency)
        with fakes(monkeypatch, fake_backend(folder), referees_null=Checking, models_scripted=replying(down)):
            made = await frozen(folder, concurrency=concurrency)
            with anyio.fail_after(15):
                assert await run(made.folder, watcher=Quiet()) == "incomplete"
            lost = [one for one in outcomes(made.folder) if isinstance(one.end, Void) and one.end.cause == "mirror"]
            assert {outcome.cell.arm for outcome in lost} == {"CF-SF", "GR-SHAPE"}
            assert {cell.task for cell in finals(made.folder)} == {"Fake/0", "Fake/2"}


@pytest.mark.parametrize("kill_at", [2, 5, 9, 14])
async def test_a_broken_group_is_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill_at: int) -> None:
    """However far it was when it was stopped, and though the model answers otherwise then: all copies are copies."""
    asked: list[int] = []

    stop = anyio.Event()

    def counting(request: Request) -> str:
        asked.append(1)
        if len(asked) == kill_at:
            stop.set()
        return f"x = {((request.seed or 0) + len(asked)) % 7}"

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(counting)):
        made = await frozen(tmp_path, concurrency=3)
        with anyio.fail_after(15):
            await run(made.folder, watcher=Quiet(), stop=stop)
            before = finals(made.folder)
            assert await run(made.folder, watcher=Quiet()) == "finished"
        assert set(finals(made.folder).values()) == {1}
        assert before.keys() <= finals(made.folder).keys()
        assert states(made.folder, "CF-SF") == states(made.folder, "GR-SHAPE") == states(made.folder, "TC")


@pytest.mark.parametrize(("after", "rounds"), [("end", 2), ("last", 4)])
async def test_a_source_that_is_accepted_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, rounds: int
) -> None:
    """Its mirrors have no further round, or go on with its last state, as the seat's options say."""

    def winning(request: Request) -> str:
        text = request.messages[-1].content
        return "x = 99" if "requirements" in text and is_source(request) else "x = 3"

    with fakes(monkeypatch, fake_backend(tmp_path), referees_null=Checking, models_scripted=replying(winning)):
        made = await frozen(tmp_path, seat_options=f'{FOUR}\nafter_source = "{after}"')
        with anyio.fail_after(15):
            assert await run(made.folder, watcher=Quiet()) == "finished"
        calls = {outcome.spend.calls for outcome in outcomes(made.folder) if outcome.cell.arm == "CF-SF"}
        assert calls == {rounds}


async def test_a_source_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment with a mirror and nothing to mirror is refused when it is frozen."""
    with fakes(monkeypatch, fake_backend(tmp_path)), pytest.raises(ExperimentError, match="mirrors 'TC', which is not"):
        await frozen(tmp_path, arms='["B", "CF-SF"]', control="B", model='[models.options]\nreplies = ["x"]')
