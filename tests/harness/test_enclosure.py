"""A seat that ends when it is cancelled, whatever it does with the cancellation."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from harness.clock import SystemClock
from harness.enclosure import Enclosed, run_enclosed

pytestmark = pytest.mark.anyio

Make = Callable[[Enclosed], Coroutine[Any, Any, Any]]


async def enclosed(make: Make, grace_s: float = 0.1) -> Enclosed:
    """Run it, and give a stray end of it the chance to show."""
    found = await run_enclosed(make, clock=SystemClock(), grace_s=grace_s)
    gc.collect()
    await anyio.sleep(0.01)
    return found


async def test_a_result_comes_back() -> None:
    """The plain case."""

    async def body(_enclosed: Enclosed) -> str:
        await anyio.lowlevel.checkpoint()
        return "done"

    found = await enclosed(body)
    assert (found.result, found.error, found.cancelled, found.abandoned) == ("done", None, False, False)


async def test_an_error_is_a_value() -> None:
    """The caller says whose fault it is."""

    async def body(_enclosed: Enclosed) -> None:
        await anyio.lowlevel.checkpoint()
        raise LookupError("its own")

    found = await enclosed(body)
    assert isinstance(found.error, LookupError)


async def test_a_cancelled_seat_may_clean_up() -> None:
    """Shielded teardown within the grace period runs to its end."""
    cleaned = False

    async def body(inside: Enclosed) -> None:
        nonlocal cleaned
        inside.scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)
                cleaned = True

    found = await enclosed(body)
    assert (found.cancelled, found.abandoned, cleaned) == (True, False, True)


async def test_swallowing_every_exception_ends_after_the_grace() -> None:
    """`except BaseException` in a loop that awaits: left where it stands, with its own scopes open or not."""
    turns = 0

    async def body(inside: Enclosed) -> None:
        nonlocal turns
        while True:
            try:
                with anyio.move_on_after(60):
                    turns += 1
                    inside.scope.cancel()
                    await anyio.sleep(0.001)
            except BaseException:  # noqa: BLE001, S110 - the seat that this is about
                pass

    with anyio.fail_after(5):
        found = await enclosed(body)
    assert (found.cancelled, found.abandoned) == (True, True)
    after = turns
    await anyio.sleep(0.05)
    assert turns == after


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_interpreter_ends_after_an_abandoned_body(backend: str) -> None:
    """What was left standing is not run once more when its process ends, where nothing could stop it."""
    code = """
import sys
import anyio
from harness.clock import SystemClock
from harness.enclosure import run_enclosed

async def body(inside):
    while True:
        try:
            inside.scope.cancel()
            await anyio.sleep(0.001)
        except BaseException:
            pass

async def main():
    print((await run_enclosed(body, clock=SystemClock(), grace_s=0.05)).abandoned)

anyio.run(main, backend=sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", code, backend], capture_output=True, text=True, check=True, timeout=15)
    assert done.stdout.strip() == "True"


async def test_a_cancellation_from_outside_is_passed_on() -> None:
    """Ctrl-C is no limit of the seat's: it comes through."""
    with anyio.move_on_after(0.05) as outside:
        await run_enclosed(_forever, clock=SystemClock(), grace_s=0.1)
        pytest.fail("it went on after its cancellation")
    assert outside.cancelled_caught


async def _forever(_enclosed: Enclosed) -> None:
    await anyio.sleep_forever()
