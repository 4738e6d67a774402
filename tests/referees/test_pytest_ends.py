"""How a subject may end or lie, and what the pytest referee makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.referees.test_pytest_suite import judged, one

pytestmark = pytest.mark.live


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here; `test_both_loops` runs a judgement on each."""
    return "asyncio"


ENDLESS = """\
class Endless:
    def __iter__(self):
        return self
    def __next__(self):
        return 1
def go():
    return Endless()
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reading", "code", "options"),
    [
        ("TIMEOUT", "def go():\n    while True:\n        pass\n", {"cpu_s": 1}),
        ("TIMEOUT", "import time\ndef go():\n    time.sleep(1000)\n", {"wall_s": 1.5}),
        ("TIMEOUT", ENDLESS, {"calls": 200}),
        ("MEMORY", "def go():\n    return ['x' * 500_000] * 4\n", {"answer_bytes": 1 << 20}),
        ("CRASH", "import os\ndef go():\n    os._exit(0)\n", {}),
        ("CRASH", "import sys\ndef go():\n    sys.exit(0)\n", {}),
    ],
)
@pytest.mark.timeout(60)  # a TIMEOUT is judged twice, and a busy machine makes each wait longer
async def test_ends_of_the_subject(reading: str, code: str, options: dict[str, Any]) -> None:
    """Each way to end has its class, and no `raises(Exception)` of a suite takes the subject's end for an error."""
    body = "    with pytest.raises(Exception):\n        list(go())\n"
    verdict = await judged(code, one(body, ["go"]), **options)
    assert (verdict.reading, verdict.standing) == (reading, "rejected")


@pytest.mark.anyio
async def test_memory_error_of_the_subject_is_memory() -> None:
    """A test that fails by the subject's MemoryError is MEMORY, not FAIL."""
    made = one("    assert go() == 1\n", ["go"])
    assert (await judged("def go():\n    return len(bytearray(1 << 40))\n", made)).reading == "MEMORY"


@pytest.mark.anyio
async def test_forged_frames_are_no_verdict() -> None:
    """A subject that writes reports of its own into every channel it has is a CRASH: only the judge reports."""
    code = """\
import json, os, struct
def go():
    body = json.dumps({"event": "finished", "status": 0}).encode()
    for kind in (b"E", b"R", b"H", b"X", b"L"):
        for fd in range(3, 20):
            try:
                os.write(fd, struct.pack(">Ic", len(body), kind) + body)
            except OSError:
                pass
    return 1
"""
    verdict = await judged(code, one("    assert go() == 1\n", ["go"]))
    assert (verdict.reading, verdict.standing) == ("CRASH", "rejected")


GREETS = """\
import json, os, struct
for fd in range(3, 20):
    try:
        body = json.dumps({greeting}).encode()
        os.write(fd, struct.pack(">Ic", len(body), b"H") + body)
    except OSError:
        pass
def go():
    return 1
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    "greeting",
    [
        "{'names': {'solution.go': [0, 'f']}, 'missing': []}",
        "{'names': {'solution.go': ['x', None]}, 'missing': []}",
        "{'names': 5, 'missing': []}",
        "[1]",
    ],
)
async def test_forged_greetings_are_rejected(greeting: str) -> None:
    """A module that greets in the server's place is a CRASH of the subject, and no failure of the referee."""
    verdict = await judged(GREETS.replace("{greeting}", greeting), one("    assert go() == 1\n", ["go"]))
    assert (verdict.reading, verdict.standing) == ("CRASH", "rejected")


@pytest.mark.anyio
async def test_an_exception_of_many_kinds_is_its_first() -> None:
    """An exception class made of many built-in ones satisfies a test for its first alone."""
    code = "class All(ValueError, KeyError):\n    pass\ndef go():\n    raise All('x')\n"
    assert (await judged(code, one("    with pytest.raises(ValueError):\n        go()\n", ["go"]))).reading == "PASS"
    assert (await judged(code, one("    with pytest.raises(KeyError):\n        go()\n", ["go"]))).reading == "FAIL"


@pytest.mark.anyio
async def test_stop_iteration_ends_no_loop_of_the_suite() -> None:
    """A StopIteration raised by a call can't cut a `map` of the suite's short; an iterator's own end still ends a loop."""
    made = one("    assert all(map(go, [1, 2]))\n", ["go"])
    assert (await judged("def go(value):\n    raise StopIteration\n", made)).reading == "FAIL"
    made = one(
        "    assert list(go(2)) == [0, 1]\n    with pytest.raises(RuntimeError):\n        next(map(go, 'x'))\n", ["go"]
    )
    code = "def go(value):\n    if value == 'x':\n        raise StopIteration\n    return iter(range(value))\n"
    assert (await judged(code, made)).reading == "PASS"


@pytest.mark.anyio
async def test_text_that_no_record_could_hold() -> None:
    """Lone surrogates in the subject's words reach the verdict escaped."""
    verdict = await judged("raise ValueError('\\ud800')\n")
    assert verdict.reading == "NO_BUILD"
    assert verdict.detail.encode("utf-8").endswith(b"\\ud800")
