"""Pools: what is made, that it resumes where it was cut off, what makes a unit dead, and what is refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from cells.pools.candidates import Pool, parse_pool, read_pool
from cells.pools.making import make_pool
from cells.pools.showing import pool_lines, pool_to_json
from harness.clock import SystemClock
from harness.errors import ContextTruncated, IntegrityError, ModelServerError, UsageError
from harness.messages import Request
from harness.models.scripted import ScriptedProvider
from harness.seats.robust_extraction import RobustRule
from harness.seeds import seed
from harness.values import Unit
from harness.views import Fact, PublicReading
from referees.null import NullReferee
from tests.cells.houses import fake_backend, fakes, write_experiment

pytestmark = pytest.mark.anyio

GOOD = "```python\nhelp = 1\n```\nand\n```python\nright = 1\n```"


class Judge(NullReferee):
    """Its public tests accept what says `right`, and nothing else. `asked` is what it was given."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options or {})
        self.asked: list[str] = []

    @asynccontextmanager
    async def public_check(self, *_room: object) -> AsyncIterator[Any]:
        """A check without a room."""

        async def check(code: str) -> PublicReading:
            self.asked.append(code)
            right = "right" in code
            facts = () if right else (Fact(call="f(1)", expected="2"),)
            return PublicReading(
                reading="PASS" if right else "FAIL", accepted=right, passed=int(right), total=1, facts=facts
            )

        yield check


def answers(request: Request) -> str:
    """By the task: the first never has it, the second at times in a second block, the third has no code."""
    text = request.messages[-1].content
    if "task_1" in text:
        return (
            "right = 1\n```" if request.seed % 2 else "```python\nimport right\n```\n```python\ndef task_1(x): ...\n```"
        )
    return "STATUS: DONE" if "task_2" in text else "```python\nwrong = 1\n```"


async def made(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: Any = answers, **changes: Any) -> Pool:
    """A pool of the three fake tasks."""
    judge = changes.pop("judge", Judge())
    with fakes(
        monkeypatch,
        fake_backend(folder),
        models_scripted=lambda: ScriptedProvider(answer),
        referees_null=lambda _options: judge,
    ):
        path = write_experiment(folder, model="")
        given: dict[str, Any] = {"n": 3, "out": folder / "pool.jsonl", "arm": "B", **changes}
        return await make_pool(path, clock=SystemClock(), say=lambda _text: None, **given)


def units(pool: Pool) -> list[Unit]:
    """Its units in order."""
    return list(pool.lines)


async def test_a_pool_tells_which_units_are_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dead is a unit none of whose candidates is accepted under either extraction; a join alone can make one alive."""
    pool = await made(tmp_path, monkeypatch)
    assert [pool.state(unit) for unit in units(pool)] == ["dead", "alive", "dead"]
    assert (pool.n, pool.missing, len(pool.lines)) == (3, 0, 3)
    [cell] = pool_to_json(pool)["cells"]
    assert (cell["units"], cell["dead"], cell["alive"], cell["unknown"], cell["candidates"]) == (3, 2, 1, 0, 9)
    assert cell["without_code"] == 3
    assert cell["dead_rate"] == pytest.approx(2 / 3)
    text = "\n".join(pool_lines(pool_to_json(pool)))
    assert "2 of 3 units dead, 1 alive" in text
    assert "not whole" not in text


async def test_a_candidate_says_where_it_is_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its seed by the payload, the prompt, the reply, both extractions; each seed of the pool is another."""
    pool = await made(tmp_path, monkeypatch)
    lines = [line for rows in pool.lines.values() for line in rows]
    assert all(line["seed"] == seed(line["seed_payload"]) for line in lines)
    assert lines[0]["seed_payload"] == "fake|pool|tasks|m|Fake/0|0"
    assert len({line["seed"] for line in lines}) == 9
    assert lines[0]["standard"]["code"] == lines[0]["robust"]["code"] == "wrong = 1"
    assert pool.header["seed_namespace"] == "fake"
    [first, *_others] = pool.previous(units(pool)[0])
    assert (first.code, first.reading.facts) == ("wrong = 1", (Fact(call="f(1)", expected="2"),))
    assert pool.previous(units(pool)[2]) == ()


async def test_the_same_text_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both extractions find one text there is one run of it."""
    judge = Judge()
    await made(tmp_path, monkeypatch, lambda _request: "```python\nwrong = 1\n```", judge=judge)
    assert judge.asked == ["wrong = 1"] * 9


async def test_a_pool_goes_on_where_it_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead server, and a torn last line: afterwards the file is the one that an undisturbed run makes."""
    calls = 0

    def failing(request: Request) -> str:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise ModelServerError("gone")
        return answers(request)

    with pytest.raises(ModelServerError):
        await made(tmp_path / "a", monkeypatch, failing)
    out = tmp_path / "a" / "pool.jsonl"
    assert read_pool(out).missing == 5
    assert "not whole: 5 candidates are missing" in "\n".join(pool_lines(pool_to_json(read_pool(out))))
    out.write_bytes(out.read_bytes()[:-10])
    with pytest.raises(IntegrityError, match="last line is cut off"):
        read_pool(out)
    again = await made(tmp_path / "a", monkeypatch)
    assert (await made(tmp_path / "b", monkeypatch)).digest == again.digest
    assert (await made(tmp_path / "a", monkeypatch, lambda _request: "nothing is asked again")).digest == again.digest


async def test_what_was_not_asked_is_not_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that does not fit the window leaves a unit unknown, and its candidates void."""

    def answer(request: Request) -> str:
        if "task_0" in request.messages[-1].content:
            raise ContextTruncated("too long")
        return answers(request)

    pool = await made(tmp_path, monkeypatch, answer)
    assert pool.state(units(pool)[0]) == "unknown"
    [cell] = pool_to_json(pool)["cells"]
    assert (cell["unknown"], cell["dead"], cell["void"]) == (1, 1, 3)


def test_the_page_has_every_rule() -> None:
    """The rules of the robust extraction are on the page of populations."""
    page = (Path(__file__).parents[2] / "docs/reference/population.md").read_text("utf-8")
    for rule in get_args(RobustRule):
        assert f"| `{rule}` |" in page


async def test_another_pool_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another size or arm is another header; a referee without public tests, and an unknown arm, are refused."""
    await made(tmp_path, monkeypatch)
    for changes in ({"n": 4}, {"arm": "P"}):
        with pytest.raises(UsageError, match="holds another pool"):
            await made(tmp_path, monkeypatch, **changes)
    (tmp_path / "notes").write_text("without an end")
    with pytest.raises(UsageError, match="holds something else, and would be written over"):
        await made(tmp_path, monkeypatch, out=tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "without an end"
    (tmp_path / "cut").write_bytes((tmp_path / "pool.jsonl").read_bytes()[:30])  # a header that was cut off
    assert (await made(tmp_path, monkeypatch, out=tmp_path / "cut")).missing == 0
    with pytest.raises(UsageError, match="arm 'Q' is not registered"):
        await made(tmp_path, monkeypatch, arm="Q")
    with pytest.raises(UsageError, match="has no public tests"):
        await made(tmp_path / "c", monkeypatch, judge=NullReferee({}))
    with pytest.raises(UsageError, match="can't be read"):
        read_pool(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("doctor", "words"),
    [
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2: expected candidate 0"),
        (
            lambda lines: [*lines[:1], lines[1].replace(b"wrong", b"right"), *lines[2:]],
            "line 2: it is not what its own",
        ),
        (lambda lines: [lines[0].replace(b'"n":3', b'"n":2'), *lines[1:]], "9 candidates: its header wants 6"),
        (lambda lines: [lines[0].replace(b'"B"', b'"C"'), *lines[1:]], "of this very pool"),
        (lambda lines: [lines[0].replace(b"pool/1", b"pool/2"), *lines[1:]], "schema is 'proctor-pool/2'"),
        (lambda lines: [lines[0], b"{", *lines[2:]], "line 2 is not JSON"),
        (
            lambda lines: [lines[0].replace(b'"n":3', b'"n":"3"'), *lines[1:]],
            "line 1: n is '3': expected a whole number",
        ),
        (lambda lines: [lines[0].replace(b'"n":3', b'"n":0'), *lines[1:]], "line 1: n is 0: expected a whole number"),
        (lambda lines: [lines[0].replace(b'"models"', b'"model"'), *lines[1:]], "line 1: models is None: expected"),
        (lambda lines: [lines[0].replace(b'"task":', b'"tusk":'), *lines[1:]], "line 1: a task is {.*expected a table"),
        (lambda lines: [lines[0], lines[1].replace(b'"index"', b'"endex"'), *lines[2:]], "not what its own digest"),
    ],
)
async def test_a_doctored_pool_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doctor: Any, words: str
) -> None:
    """Lines that changed places, were edited, or are another pool's are named."""
    await made(tmp_path, monkeypatch)
    lines = (tmp_path / "pool.jsonl").read_bytes().splitlines()
    assert json.loads(lines[0])["n"] == 3
    with pytest.raises(IntegrityError, match=words):
        parse_pool(b"\n".join(doctor(lines)) + b"\n", "pool")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"hello\n",
        b"[]\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'{"task_id": "Fake/0", "solution": "x"}',
        b"1\n2\n3",
        b"null\n",
    ],
)
async def test_what_is_no_pool_is_told_as_such(tmp_path: Path, data: bytes) -> None:
    """However it ends: nothing is said of a line that was cut off, which only a pool can have."""
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(
        UsageError, match=r"file is no pool: expected a file .*whose first line has the schema"
    ) as refused:
        read_pool(tmp_path / "file")
    assert "cut off" not in str(refused.value)


async def test_a_pool_that_was_cut_off_in_its_header_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was cut off in a candidate, however little is left of it."""
    await made(tmp_path, monkeypatch)
    data = (tmp_path / "pool.jsonl").read_bytes()
    for kept in (1, 40, data.index(b"\n")):
        with pytest.raises(IntegrityError, match="its last line is cut off"):
            parse_pool(data[:kept], "pool")
