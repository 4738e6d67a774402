"""Who may call the model: no budget is overshot by more than one call, and nobody who waits is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import anyio
import anyio.lowlevel
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from harness.clock import SystemClock
from harness.meter import Bounds, Ledger, Meter, Scope
from harness.pricing import PriceList, RateTable
from harness.values import Halt, Usage

pytestmark = pytest.mark.anyio


def used(tokens: int) -> Usage:
    """A known usage of so many tokens."""
    return replace(Usage.zero(), input=tokens)


def ledgers() -> dict[str, Ledger]:
    """Ledgers of two arms and a run."""
    return {"A": Ledger(), "B": Ledger(), "run": Ledger()}


def cell_meter(
    shared: dict[str, Ledger],
    arm: str = "A",
    *,
    cell: Bounds | None = None,
    of_arm: Bounds | None = None,
    run: Bounds | None = None,
    rates: PriceList | None = None,
) -> Meter:
    """A meter of one cell, whose arm and run are shared."""
    scopes = (
        Scope(name="cell", bounds=cell or Bounds(), ledger=Ledger()),
        Scope(name="arm", bounds=of_arm or Bounds(), ledger=shared[arm]),
        Scope(name="run", bounds=run or Bounds(), ledger=shared["run"]),
    )
    return Meter(scopes, clock=SystemClock(), rates=rates)


def alone(**bounds: float) -> Meter:
    """A meter with one scope."""
    return Meter(
        [Scope(name="cell", bounds=Bounds(**bounds), ledger=Ledger())],
        clock=SystemClock(),
        rates=PriceList.flat("m", RateTable.of(input=1.0, output=1.0)),
    )


class Calls:
    """Calls of a meter that last until a test ends them."""

    def __init__(self, tasks: anyio.abc.TaskGroup) -> None:
        self._tasks = tasks
        self.flying: list[str] = []
        self._ends: dict[str, anyio.Event] = {}
        self.scopes: dict[str, anyio.CancelScope] = {}

    async def begin(self, meter: Meter, name: str, estimate: int, tokens: int) -> None:
        """Start a call and let everybody go as far as they can."""
        self._ends[name] = anyio.Event()
        self.scopes[name] = anyio.CancelScope()
        self._tasks.start_soon(self._call, meter, name, estimate, tokens)
        await anyio.wait_all_tasks_blocked()

    async def _call(self, meter: Meter, name: str, estimate: int, tokens: int) -> None:
        with self.scopes[name]:
            async with meter.call(estimate) as place:
                self.flying.append(name)
                try:
                    await self._ends[name].wait()
                    meter.charge_call(used(tokens), estimate=place.tokens, output_bytes=0)
                except BaseException:
                    meter.charge_call(Usage(), estimate=place.tokens, output_bytes=0)
                    raise
                finally:
                    self.flying.remove(name)

    async def end(self, name: str) -> None:
        """Let it return."""
        self._ends[name].set()
        await anyio.wait_all_tasks_blocked()

    async def cancel(self, name: str) -> None:
        """Cancel it."""
        self.scopes[name].cancel()
        await anyio.wait_all_tasks_blocked()


async def test_a_call_that_is_alone_is_admitted_whatever_its_estimate() -> None:
    """The last call of a budget may go over it; without that a long prompt could never be asked."""
    meter = alone(tokens=100)
    with anyio.fail_after(1):
        async with meter.call(10**9):
            meter.charge_call(used(90), estimate=0, output_bytes=0)
        async with meter.call(10**9):
            meter.charge_call(used(90), estimate=0, output_bytes=0)
    assert meter.halted == Halt(limit="tokens", scope="cell", bound=100.0, spent=180.0)


@pytest.mark.parametrize("bounds", [{"tokens": 100}, {"usd": 100e-6}], ids=["tokens", "usd"])
async def test_beside_others_a_call_waits_until_it_fits(bounds: dict[str, float]) -> None:
    """Two of forty fit into a hundred, a third does not, until one of them has turned out to be ten."""
    meter = alone(**bounds)
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.begin(meter, "first", 40, 10)
        await calls.begin(meter, "second", 40, 10)
        await calls.begin(meter, "third", 40, 10)
        assert calls.flying == ["first", "second"]
        await calls.end("first")
        assert calls.flying == ["second", "third"]
        await calls.end("second")
        await calls.end("third")
    assert (meter.calls, meter.stopped) == (3, False)


async def test_calls_in_flight_count_against_a_limit_on_calls() -> None:
    """Two of two are out: the third waits, and is refused when both have been made."""
    meter, stopped = alone(calls=2), []
    meter.attach(lambda: stopped.append(True))
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        for name in ("first", "second", "third"):
            await calls.begin(meter, name, 1, 1)
        assert calls.flying == ["first", "second"]
        await calls.end("second")
        assert (calls.flying, stopped) == (["first"], [])
        await calls.end("first")
        assert (calls.flying, stopped) == ([], [True])
        tasks.cancel_scope.cancel()
    assert meter.halted == Halt(limit="calls", scope="cell", bound=2.0, spent=2.0)


async def test_nobody_passes_one_that_waits_for_the_same_budget() -> None:
    """A small call would fit beside the first; it stays behind the large one, which would wait for ever otherwise."""
    shared = ledgers()
    bounds = Bounds(tokens=100)
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.begin(cell_meter(shared, "A", run=bounds), "first", 50, 20)
        await calls.begin(cell_meter(shared, "B", run=bounds), "large", 80, 20)
        await calls.begin(cell_meter(shared, "A", run=bounds), "small", 10, 10)
        assert calls.flying == ["first"]
        await calls.end("first")
        assert calls.flying == ["large"]
        await calls.end("large")
        assert calls.flying == ["small"]
        await calls.end("small")


async def test_one_that_waits_for_its_arm_keeps_nobody_of_another() -> None:
    """Arm A's budget is reserved; arm B and the run have room."""
    shared = ledgers()
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        bounds = Bounds(tokens=50)
        await calls.begin(cell_meter(shared, "A", of_arm=bounds, run=Bounds(tokens=1000)), "first", 40, 1)
        await calls.begin(cell_meter(shared, "A", of_arm=bounds, run=Bounds(tokens=1000)), "second", 40, 1)
        await calls.begin(cell_meter(shared, "B", of_arm=bounds, run=Bounds(tokens=1000)), "other", 40, 1)
        assert calls.flying == ["first", "other"]
        await calls.end("first")
        assert calls.flying == ["other", "second"]
        await calls.end("other")
        await calls.end("second")


async def test_a_call_that_is_cancelled_while_it_waits_wakes_those_behind_it() -> None:
    """It held them up, and it holds nothing itself."""
    shared = ledgers()
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        meter = cell_meter(shared, run=Bounds(tokens=100))
        await calls.begin(meter, "first", 50, 1)
        await calls.begin(meter, "large", 80, 1)
        await calls.begin(meter, "small", 10, 1)
        await calls.cancel("large")
        assert calls.flying == ["first", "small"]
        await calls.end("first")
        await calls.end("small")
    assert meter.calls == 2
    assert not shared["run"].waiting
    assert not shared["run"].in_flight


async def test_a_call_that_is_cancelled_as_it_is_admitted_gives_its_place_back() -> None:
    """Both happen before its task goes on: the reservation would stay for ever."""
    shared = ledgers()
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        meter = cell_meter(shared, run=Bounds(tokens=100))
        await calls.begin(meter, "first", 80, 1)
        await calls.begin(meter, "second", 80, 1)
        await calls.begin(meter, "third", 80, 1)
        calls._ends["first"].set()
        while not shared["run"].in_flight or "first" in calls.flying:
            await anyio.lowlevel.checkpoint()
        calls.scopes["second"].cancel()
        await anyio.wait_all_tasks_blocked()
        assert calls.flying == ["third"]
        await calls.end("third")
    assert not shared["run"].in_flight


async def test_a_call_that_is_cut_off_is_charged_its_estimate_and_makes_room() -> None:
    """What it used is unknown."""
    meter = alone(tokens=100)
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.begin(meter, "first", 80, 1)
        await calls.begin(meter, "second", 20, 1)
        await calls.begin(meter, "third", 1, 1)
        assert calls.flying == ["first", "second"]
        await calls.cancel("first")
        assert meter.spend().charged_tokens == 80
        assert calls.flying == ["second"]
        await calls.end("second")
        assert calls.flying == ["third"]
        await calls.end("third")


async def test_a_cell_that_is_stopped_is_in_nobody_s_way() -> None:
    """Its waiting call stays where it is until its seat is cancelled, and others go past it."""
    shared = ledgers()
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        stopped = cell_meter(shared, run=Bounds(tokens=100))
        await calls.begin(cell_meter(shared, run=Bounds(tokens=100)), "first", 50, 1)
        await calls.begin(stopped, "large", 80, 1)
        stopped.blame("model-server", "gone")
        await calls.begin(cell_meter(shared, run=Bounds(tokens=100)), "small", 10, 1)
        assert calls.flying == ["first", "small"]
        tasks.cancel_scope.cancel()


async def test_a_run_s_budget_that_is_used_up_stops_those_who_wait_for_it() -> None:
    """Each cell has its own HALT."""
    shared = ledgers()
    halted: list[str] = []
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        meters = {name: cell_meter(shared, run=Bounds(tokens=100)) for name in ("first", "second", "third")}
        for name, meter in meters.items():
            meter.attach(lambda name=name: halted.append(name))
            await calls.begin(meter, name, 90, 100)
        await calls.end("first")
        assert halted == ["second", "third"]
        tasks.cancel_scope.cancel()
    assert meters["third"].halted == Halt(limit="tokens", scope="run", bound=100.0, spent=100.0)


async def test_a_seat_that_was_abandoned_in_a_call_holds_nothing() -> None:
    """Its coroutine stands where it was left, and never leaves its place by itself."""
    shared = ledgers()
    left, other = (cell_meter(shared, run=Bounds(tokens=100)) for _ in range(2))
    left.start()
    place = left.call(80)
    await place.__aenter__()
    async with anyio.create_task_group() as tasks:
        calls = Calls(tasks)
        await calls.begin(other, "second", 80, 1)
        assert calls.flying == []
        left.finish()
        await anyio.wait_all_tasks_blocked()
        assert calls.flying == ["second"]
        await calls.end("second")
    await place.__aexit__(None, None, None)


@dataclass(frozen=True)
class Plan:
    """One call: whose it is, its estimate, what it uses, how long it takes, and whether its server breaks."""

    seat: int
    size: int
    used: int
    steps: int
    breaks: bool

    async def play(self, meter: Meter, check: Callable[[], None]) -> None:
        """Make it."""
        async with meter.call(self.size) as place:
            check()
            try:
                for _ in range(self.steps):
                    await anyio.lowlevel.checkpoint()
            except BaseException:
                meter.charge_call(Usage(), estimate=place.tokens, output_bytes=0)
                raise
            usage = Usage() if self.breaks else used(min(self.used, self.size))
            meter.charge_call(usage, estimate=place.tokens, output_bytes=0)


class Seats:
    """Four seats of two arms in one run."""

    def __init__(self, *, run: int, cell: int) -> None:
        shared = ledgers()
        self.meters = [
            cell_meter(shared, "AB"[n % 2], cell=Bounds(tokens=cell), run=Bounds(tokens=run)) for n in range(4)
        ]
        self.scopes = [scope for meter in self.meters for scope in meter.scopes if scope.bounds.tokens is not None]

    def check(self) -> None:
        """At no time is more spent and reserved than the bound, unless one call alone is more."""
        for scope in self.scopes:
            flying = scope.ledger.in_flight
            reserved = sum(place.tokens for place in flying)
            assert len(flying) <= 1 or scope.ledger.tokens + reserved <= scope.bounds.tokens

    async def play(self, plans: list[Plan]) -> None:
        """All at once; a seat that a limit stops is cancelled."""

        async def seated(seat: int) -> None:
            with anyio.CancelScope() as scope:
                self.meters[seat].attach(scope.cancel)
                async with anyio.create_task_group() as calls:
                    for plan in plans:
                        if plan.seat == seat:
                            calls.start_soon(plan.play, self.meters[seat], self.check)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for seat in range(len(self.meters)):
                    tasks.start_soon(seated, seat)


PLANS = st.lists(
    st.builds(Plan, st.integers(0, 3), st.integers(1, 60), st.integers(0, 60), st.integers(0, 3), st.booleans()),
    max_size=25,
)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(plans=PLANS, run=st.integers(1, 200), cell=st.integers(1, 120))
@settings(max_examples=40, deadline=None, phases=[Phase.generate])
def test_no_budget_is_overshot_by_more_than_one_call(backend: str, plans: list[Plan], run: int, cell: int) -> None:
    """Whatever is asked for and used, in whatever order; in the end nothing is held, and nobody waits."""
    seats = Seats(run=run, cell=cell)
    anyio.run(seats.play, plans, backend=backend)
    largest = max((plan.size for plan in plans), default=0)
    for scope in seats.scopes:
        assert not scope.ledger.in_flight
        assert not scope.ledger.waiting
        assert scope.ledger.tokens < scope.bounds.tokens + largest or not plans
