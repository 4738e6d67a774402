"""The scripted seat: its steps go through the tools, it can be null, and a limit ends even the stubborn one."""

import json

import anyio
import pytest

from harness import plugins
from harness.canonical import canonical_bytes
from harness.clock import SystemClock
from harness.enclosure import run_enclosed
from harness.errors import ModelServerError, PluginError
from harness.seats.scripted import ScriptedSeat
from tests.seats.desks import FakeModel, said

pytestmark = pytest.mark.anyio


async def test_steps_are_done_in_order(bench):
    """Tools, questions and files, one after the other, under the rules and in the transcript as any seat's."""
    steps = [
        {"write": {"a.py": "x = 1\n", "b.py": "y"}},
        {"ask": "What now?"},
        {"tool": "edit", "arguments": {"path": "a.py", "old": "1", "new": "2"}},
        {"tool": "read", "arguments": {"path": "/etc/passwd"}},
        {"tool": "list"},
    ]
    table = bench(FakeModel("Nothing."))
    declared = await ScriptedSeat(steps=steps).sit(table.desk)
    assert declared.note == "6 steps done"
    assert table.room.files["a.py"] == b"x = 2\n"
    assert table.room.files["b.py"] == b"y"
    assert table.model.prompts == ["What now?"]
    assert table.model.requests[0].seed == table.desk.seeds.seed(1)
    tools = [(event["tool"], event["standing"]) for event in table.events("tool")]
    assert tools == [("write", "served")] * 2 + [("edit", "served"), ("read", "refused"), ("list", "served")]


async def test_the_null_seat(bench):
    """Without a step it declares at once, calls nothing, and says that it needs no model."""
    table = bench(FakeModel("unused"))
    seat = ScriptedSeat()
    assert (await seat.sit(table.desk)).note == "null"
    assert seat.needs_model is False
    assert table.model.requests == []
    assert table.names() == []


def test_what_needs_a_model():
    """Only a question or the endless loop calls the model."""
    assert ScriptedSeat(steps=[{"write": {"a": ""}}]).needs_model is False
    assert ScriptedSeat(steps=[{"ask": "x"}]).needs_model is True
    assert ScriptedSeat(loop_forever=True).needs_model is True


async def test_the_loop_swallows_exceptions_and_ends_by_cancellation(bench):
    """An exception in a call doesn't end it, as with an agent that catches everything; its cancel scope does."""
    with anyio.CancelScope() as scope:

        def answer(_request):
            if len(table.model.requests) == 21:
                scope.cancel()
            return ModelServerError("down")

        table = bench(FakeModel(answer))
        await ScriptedSeat(loop_forever=True).sit(table.desk)
    assert scope.cancelled_caught
    assert len(table.model.requests) == 21


async def test_the_loop_asks_with_a_new_seed_each_time(bench):
    """Each call is the next in the cell's own order of seeds."""
    with anyio.CancelScope() as scope:

        def answer(_request):
            if len(table.model.requests) == 5:
                scope.cancel()
            return said("no")

        table = bench(FakeModel(answer))
        await ScriptedSeat(steps=[{"ask": "first"}], loop_forever=True).sit(table.desk)
    assert [request.seed for request in table.model.requests] == [table.desk.seeds.seed(n) for n in range(1, 6)]


@pytest.mark.parametrize("yields", [True, False])
async def test_the_stubborn_loop_outlives_its_scope_but_not_its_enclosure(bench, yields):
    """
    With `catch_everything` cancellation alone is swallowed, so the loop goes on after it; the enclosure that steps
    it by hand ends it all the same. Other tasks run meanwhile, even if the model's call never waits.
    """
    ticks = []

    async def answer(_request):
        if yields:
            await anyio.sleep(0.001)
        return said("no")

    table = bench(FakeModel(answer))
    calls_at_cancel = []

    async def ticker(enclosed):
        for _ in range(5):
            await anyio.sleep(0.01)
            ticks.append(len(table.model.requests))
        calls_at_cancel.append(len(table.model.requests))
        enclosed.scope.cancel()

    async def sit(enclosed):
        tasks.start_soon(ticker, enclosed)
        return await ScriptedSeat(loop_forever=True, catch_everything=True).sit(table.desk)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            enclosed = await run_enclosed(sit, clock=SystemClock(), grace_s=0.1)
    assert enclosed.abandoned
    assert len(ticks) == 5
    assert len(table.model.requests) > calls_at_cancel[0]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"steps": "write"}, "expected a list"),
        ({"steps": {"ask": "x"}}, "expected a list"),
        ({"steps": ["ask"]}, "step 1 is 'ask'"),
        ({"steps": [{"ask": "x"}, {}]}, "step 2 has no kind"),
        ({"steps": [{"ask": "x", "tool": "read"}]}, "tool and ask"),
        ({"steps": [{"aks": "x"}]}, "Did you mean 'ask'"),
        ({"steps": [{"ask": "x", "arguments": {}}]}, "unknown key 'arguments'"),
        ({"steps": [{"ask": 7}]}, "ask is 7"),
        ({"steps": [{"tool": "reed"}]}, "Did you mean 'read'"),
        ({"steps": [{"write": {}}]}, "write is {}"),
        ({"steps": [{"write": {"a": 7}}]}, "'a' = 7"),
        ({"loop_forever": 1}, "loop_forever is 1"),
        ({"catch_everything": True}, "catch_everything is for"),
    ],
)
def test_bad_options_are_refused_when_the_seat_is_made(bad, words):
    """The step and what is wrong with it are named."""
    with pytest.raises(PluginError, match=words):
        ScriptedSeat(**bad)


def test_options_are_pinned_as_data():
    """What a registration pins is canonical JSON, and it makes the same seat again."""
    steps = [{"write": {"a": "b"}}, {"tool": "read", "arguments": {"path": "a"}}]
    seat = plugins.load("seats", "scripted")(steps=steps)
    assert dict(seat.options()) == {"steps": steps, "loop_forever": False, "catch_everything": False}
    assert ScriptedSeat(**json.loads(canonical_bytes(dict(seat.options())))).options() == seat.options()
