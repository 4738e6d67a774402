"""Large values are known by their gist; where that is another one, by their values: the verdict is the same."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from referees import evalplus_child as child
from referees.evalplus import EvalPlusReferee
from referees.evalplus_answers import Answers
from referees.evalplus_cell import Cell, Job, Listener
from tests.referees.evalplus_own import exhibit, own, own_home, ran_reference, reading
from tests.referees.local_room import LocalRooms

__all__ = ["own_home"]

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(60)]

LONG = child.PART + 1
ROWS = f"    return [(str(x), str(x), i) for i in range({LONG})]\n"


@pytest.fixture
def anyio_backend() -> str:
    """Nothing here depends on which it is, and each case runs three processes."""
    return "asyncio"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs that candidates are run by."""
    ran: list[Job] = []
    run = Cell.run

    async def noted(self: Cell, job: Job, listen: Listener) -> Any:
        if b"def f" in job.code and not job.timed:
            ran.append(job)
        return await run(self, job, listen)

    monkeypatch.setattr(Cell, "run", noted)
    return ran


PASSES, FAILS = ("PASS", "PASS", "PASS"), ("FAIL", "FAIL", "NOT_RUN")


@pytest.mark.parametrize(
    ("solution", "body", "ends"),
    [
        (ROWS, ROWS, (PASSES, [True, True])),
        # The same text twice, and one text in two places, are the same value and have another gist.
        (ROWS, f"    t = str(x)\n    return [(t, t, i) for i in range({LONG})]\n", (PASSES, [True, False] * 2)),
        (ROWS, ROWS.replace(", i)", ", float(i))"), (PASSES, [True, False] * 2)),
        (ROWS, ROWS.replace(", i)", ", max(i, 1))"), (FAILS, [True, False])),
        (ROWS, "    r = []\n" + ROWS.replace("return", "r =") + "    return tuple(r)\n", (FAILS, [True, False])),
        (ROWS, ROWS.replace(f"{LONG}", f"{LONG - 1}"), (FAILS, [True, False])),
        (ROWS, "    return []\n", (FAILS, [True])),
        (ROWS, ROWS.replace(", i)", ", object)"), (FAILS, [True])),
        ("    return 'ab' * 50000\n", "    return ''.join(['ab'] * 50000)\n", (PASSES, [True, True])),
        ("    return 'ab' * 50000\n", "    return 'ab' * 49999 + 'ba'\n", (FAILS, [True, False])),
        ("    return 'ab' * 50000\n", "    return b'ab' * 50000\n", (FAILS, [True, False])),
        ("    return set(range(40000))\n", "    return set(range(39999, -1, -1))\n", (PASSES, None)),
        ("    return set(range(40000))\n", "    return set(range(1, 40001))\n", (FAILS, None)),
        ("    return {i: [i] for i in range(9000)}\n", "    return {i: [i] for i in range(8999, -1, -1)}\n", (PASSES, [True, False] * 2)),
        ("    return [[1.0] * 9000] * 9\n", "    return [[1] * 9000 for _ in range(9)]\n", (PASSES, [True, False] * 2)),
        # What the calls before have left behind is there in the second run as well.
        (ROWS, "    n.append(x)\n" + ROWS.replace(", i)", ", float(i))").replace(f"{LONG}", f"{LONG} - (len(n) != x)"),
         (PASSES, [True, False] * 2)),
    ],
)  # fmt: skip
async def test_a_large_value(
    tmp_path: Path, jobs: list[Job], solution: str, body: str, ends: tuple[tuple[str, str, str], list[bool] | None]
) -> None:
    """A gist that is the reference's is enough; no other decides anything."""
    (expected, quick), calls = ends, {"base_input": [[1], [2]], "plus_input": [[1]]}
    task = own(tmp_path, canonical_solution=solution, **calls)
    await ran_reference(task)
    jobs.clear()
    assert await reading(task, f"n = []\ndef f(x):\n{body}") == expected
    if quick is not None:
        assert [job.quick for job in jobs] == quick


@pytest.mark.parametrize("kind", [b"Q", b"D"])
async def test_a_gist_that_is_made_up(tmp_path: Path, jobs: list[Job], kind: bytes) -> None:
    """Who writes digests of his own to the channel has one more run, and is not believed."""
    frame = kind + struct.pack("<I", 32) + bytes(32)
    code = f"import os\ndef f(x):\n    os.write(3, {frame!r})\n    os._exit(0)\n"
    task = own(tmp_path, canonical_solution=ROWS)
    await ran_reference(task)
    jobs.clear()
    verdict = await EvalPlusReferee().judge(exhibit(code), task.open, task.sealed, LocalRooms())
    assert verdict.reading == ("CRASH" if kind == b"Q" else "FAIL")
    assert [job.quick for job in jobs].count(False) == (2 if kind == b"Q" else 0)


async def test_a_reference_of_large_values_is_kept(tmp_path: Path, own_home: Path) -> None:
    """What stands behind its gists is read from the file too."""
    task = own(tmp_path, canonical_solution=ROWS)
    await ran_reference(task)
    [kept] = (own_home / "suites").iterdir()
    written = kept.stat().st_mtime_ns
    assert await reading(task, f"def f(x):\n{ROWS.replace(', i)', ', float(i))')}") == PASSES
    assert kept.stat().st_mtime_ns == written


def test_answers_are_written_and_read() -> None:
    """With what stands behind gists; a file that was cut, or goes on, is refused."""
    frames = [("V", b"T"), ("Q", bytes(32)), ("Q", bytes(range(32)))]
    large = {1: ("D", bytes(40)), 2: ("V", b"[....")}
    answers = Answers.of(frames, [0.1, 0.2, 0.3], large)
    data = answers.written()
    again = Answers.read(data, 3)
    assert again.written() == data
    assert [again.exact(index) for index in range(3)] == [frames[0], large[1], large[2]]
    assert [again.frame(index) for index in range(3)] == frames
    for wrong, calls in ((data[:-1], 3), (data + b"x", 3), (data, 2), (data, 4), (data[:-9], 3), (b"", 1)):
        with pytest.raises((ValueError, IndexError)):
            Answers.read(wrong, calls)
