"""Turns of judging: many beside each other, one alone beside nobody."""

from __future__ import annotations

import anyio
import pytest

from cells.turns import Turns

pytestmark = pytest.mark.anyio


async def test_shared_turns_run_beside_each_other():
    """Two that wait for each other both end."""
    turns, inside, both = Turns(), 0, anyio.Event()

    async def share() -> None:
        nonlocal inside
        async with turns.shared():
            inside += 1
            if inside == 2:
                both.set()
            await both.wait()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(share)
            tasks.start_soon(share)


async def test_a_turn_alone_waits_for_those_under_way_and_holds_up_those_to_come():
    """Nothing is under way while it lasts, and nothing is lost."""
    turns, order = Turns(), []
    first_in, let_go = anyio.Event(), anyio.Event()

    async def first() -> None:
        async with turns.shared():
            first_in.set()
            await let_go.wait()
            order.append("first")

    async def alone() -> None:
        async with turns.alone():
            order.append("alone")
            await anyio.wait_all_tasks_blocked()
            order.append("still alone")

    async def later() -> None:
        async with turns.shared():
            order.append("later")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await first_in.wait()
            tasks.start_soon(alone)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(later)
            await anyio.wait_all_tasks_blocked()
            let_go.set()
    assert order == ["first", "alone", "still alone", "later"]


@pytest.mark.parametrize("way", ["shared", "alone"])
async def test_a_turn_that_is_cancelled_is_over(way):
    """Nobody waits for somebody who is gone."""
    turns = Turns()
    with anyio.move_on_after(0.01):
        async with getattr(turns, way)():
            await anyio.sleep_forever()
    with anyio.fail_after(5):
        async with turns.alone():
            pass


async def test_who_gives_up_waiting_alone_holds_up_nobody():
    """A claim that is given up is no claim."""
    turns = Turns()
    async with turns.shared():
        with anyio.move_on_after(0.01) as scope:
            async with turns.alone():
                pass
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            async with turns.shared():
                pass
