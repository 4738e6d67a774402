"""What crosses the seat's boundary is charged, written down, and blamed on the right side, whatever it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from cells.recorded_calls import recorded_calls
from harness.boundary import MeteredModel, WatchedCheck, WatchedWorkspace
from harness.clock import SystemClock
from harness.errors import Blamed, ContentRefused, ModelServerError, WindowExceeded, WorkspaceError
from harness.messages import Completion, Decoding, Message, Request, ToolCall
from harness.meter import Bounds, Ledger, Meter, Scope, upper_estimate
from harness.pricing import PriceList, RateTable, Tariff
from harness.transcript import Transcript, read_transcript
from harness.values import ExactPrice, Usage, Void

pytestmark = pytest.mark.anyio

REQUEST = Request(messages=(Message(role="user", content="hello"),), decoding=Decoding(num_predict=7), seed=1)
USAGE = Usage(input=10, output=5, cache_read=0, cache_write_5m=0, cache_write_1h=0)


def meter(bounds: Bounds | None = None) -> Meter:
    """A meter with one scope."""
    return Meter([Scope(name="cell", bounds=bounds or Bounds(), ledger=Ledger())], clock=SystemClock(), rates=None)


class Answering:
    """A model that gives or raises what it was made with."""

    def __init__(self, answer: Completion | BaseException) -> None:
        self.answer = answer
        self.calls = 0

    async def complete(self, request: Request) -> Completion:
        """Give it."""
        self.calls += 1
        await anyio.lowlevel.checkpoint()
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def completion(**changes: Any) -> Completion:
    """A whole answer."""
    given: dict[str, Any] = {
        "text": "hi",
        "stop": "stop",
        "usage": USAGE,
        "served_model": "m",
        "latency_s": 0.1,
        **changes,
    }
    return Completion(**given)


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "arguments",
    [{"a": 2**80}, {"a": float("nan")}, {"a": nested(5000)}, {"\ud800": "\ud800"}, {"a": b"x"}, None],
    ids=["huge integer", "NaN", "deep", "surrogates", "bytes", "unparsed"],
)
async def test_an_answer_that_json_can_not_say_is_charged_and_kept(tmp_path: Path, arguments: Any) -> None:
    """A hostile model can neither void a cell nor get a call for nothing by what it puts into a tool call."""
    call = ToolCall(id="1", name="run\n\ud800", arguments=arguments, raw="x" * 200_000)
    counted = meter()
    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(Answering(completion(tool_calls=(call,))), counted, transcript, served="m")
        assert (await model.complete(REQUEST)).tool_calls == (call,)
        again = Request(
            messages=(Message(role="assistant", content="", tool_calls=(call,)),), decoding=Decoding(), seed=2
        )
        await model.complete(again)
    assert (counted.spend().charged_tokens, counted.spend().calls, counted.blamed) == (30, 2, None)
    events = [event["event"] for event in read_transcript(tmp_path / "t.jsonl")]
    assert events == ["request", "completion", "request", "completion"]


async def test_another_served_model_is_a_finding(tmp_path: Path) -> None:
    """A sentence, with how many calls; none where the condition's own model served."""
    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(Answering(completion(served_model="other")), meter(), transcript, served="m")
        await model.complete(REQUEST)
        assert model.findings() == ("1 calls were served by 'other': the condition's model is served as 'm'",)
        right = MeteredModel(Answering(completion()), meter(), transcript, served="m")
        await right.complete(REQUEST)
        assert right.findings() == ()


async def test_a_stranger_is_a_finding_and_priced_by_its_own_rates(tmp_path: Path) -> None:
    """Of 15 tokens each, those of the model at a dollar and those of the stranger at three, and a sentence on it."""
    rates = {name: Tariff(base=RateTable.of(input=rate, output=rate)) for name, rate in (("m", 1), ("other", 3))}
    prices = PriceList(expected="m", tariffs=rates)
    counted = Meter([Scope(name="cell", bounds=Bounds(), ledger=Ledger())], clock=SystemClock(), rates=prices)
    with Transcript(tmp_path / "t.jsonl") as transcript:
        for name in ("m", "other"):
            model = MeteredModel(Answering(completion(served_model=name)), counted, transcript, served="m")
            await model.complete(REQUEST)
        assert len(model.findings()) == 1
    assert counted.spend().price == ExactPrice(usd=0.00006)
    assert [call.served for call in recorded_calls(read_transcript(tmp_path / "t.jsonl"))] == ["m", "other"]


@pytest.mark.parametrize("error", [ModelServerError("gone"), ZeroDivisionError("a provider's own bug")])
async def test_a_failed_call_is_charged_by_its_estimate_and_blamed(tmp_path: Path, error: Exception) -> None:
    """Ours to blame, whether the provider said so or simply broke."""
    counted = meter()
    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(Answering(error), counted, transcript, served="m")
        with pytest.raises(ModelServerError):
            await model.complete(REQUEST)
    assert isinstance(counted.blamed, Void)
    assert counted.blamed.cause == "model-server"
    assert (counted.spend().usage.total, counted.spend().charged_tokens) == (None, upper_estimate(REQUEST))


@pytest.mark.parametrize("error", [WindowExceeded("too long"), ContentRefused("no such schema")])
async def test_a_request_that_a_server_would_not_take_is_no_one_s_fault_yet(tmp_path: Path, error: Blamed) -> None:
    """Nothing was used, and the seat may ask otherwise; the error tells the one that can't."""
    counted = meter()
    with Transcript(tmp_path / "t.jsonl") as transcript:
        with pytest.raises(type(error)):
            await MeteredModel(Answering(error), counted, transcript, served="m").complete(REQUEST)
        await MeteredModel(Answering(completion()), counted, transcript, served="m").complete(REQUEST)
    assert (counted.blamed, counted.spend().calls, counted.spend().charged_tokens) == (None, 2, 15)
    assert not counted.spend().estimated


async def test_calls_at_once_are_told_apart(tmp_path: Path) -> None:
    """Each answer names the request that it is of, in whatever order they come."""
    first = anyio.Event()

    class Crossing:
        """A model whose first answer comes after its second."""

        async def complete(self, request: Request) -> Completion:
            """Wait for the other."""
            if request.seed == 1:
                await first.wait()
            else:
                first.set()
            return completion(text=f"answer {request.seed}")

    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(Crossing(), meter(), transcript, served="m")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(model.complete, REQUEST)
            await anyio.wait_all_tasks_blocked()
            await model.complete(replace(REQUEST, seed=2))
    events = list(read_transcript(tmp_path / "t.jsonl"))
    assert [(event["event"], event["call"]) for event in events] == [
        ("request", 0),
        ("request", 1),
        ("completion", 1),
        ("completion", 0),
    ]
    assert [event["text"] for event in events[2:]] == ["answer 2", "answer 1"]


async def test_a_failed_call_that_knows_its_usage_is_charged_that(tmp_path: Path) -> None:
    """What a server said before it broke counts."""
    error = ModelServerError("broke after 120 tokens")
    error.usage = Usage(input=100, output=20, cache_read=0, cache_write_5m=0, cache_write_1h=0)  # type: ignore[attr-defined]
    counted = meter()
    with Transcript(tmp_path / "t.jsonl") as transcript, pytest.raises(ModelServerError):
        await MeteredModel(Answering(error), counted, transcript, served="m").complete(REQUEST)
    assert (counted.spend().charged_tokens, counted.spend().estimated) == (120, False)


async def test_a_call_that_no_limit_admits_never_reaches_the_server(tmp_path: Path) -> None:
    """It does not return either: the seat's scope is cancelled by then."""
    counted, server = meter(Bounds(calls=1)), Answering(completion())
    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(server, counted, transcript, served="m")
        await model.complete(REQUEST)
        with anyio.move_on_after(0.05) as scope:
            await model.complete(REQUEST)
    assert (scope.cancelled_caught, server.calls) == (True, 1)
    assert counted.halted is not None


async def test_a_workspace_s_failure_is_noted_even_if_it_is_swallowed() -> None:
    """The seat's handling of it does not matter."""

    class Broken:
        """A workspace whose engine is gone."""

        name = "broken"
        gateway = None

        async def exec(self, *_: Any, **__: Any) -> Any:
            """Fail."""
            await anyio.lowlevel.checkpoint()
            raise WorkspaceError("the engine is gone")

    counted = meter()
    with pytest.raises(WorkspaceError):
        await WatchedWorkspace(Broken(), counted).exec(["true"])  # type: ignore[arg-type]
    assert counted.blamed == Void(cause="workspace", detail="the engine is gone")


async def test_a_public_check_that_breaks_is_the_referee_s() -> None:
    """Any exception of it, not only those that say so."""

    async def check(code: str) -> Any:
        await anyio.lowlevel.checkpoint()
        raise KeyError(code)

    counted = meter()
    with pytest.raises(KeyError):
        await WatchedCheck(check, counted)("x")
    assert isinstance(counted.blamed, Void)
    assert counted.blamed.cause == "referee"


async def test_a_torn_transcript_is_read_up_to_its_tear(tmp_path: Path) -> None:
    """A killed process leaves half a line; what came before it counts."""
    path = tmp_path / "t.jsonl"
    with Transcript(path) as transcript:
        transcript.add("note", text="\ud800 stays readable")
    path.write_bytes(path.read_bytes() + b'{"n": 1, "ev')
    assert [event["n"] for event in read_transcript(path)] == [0]
    assert json.loads(path.read_bytes().split(b"\n")[0])["text"] == "\\ud800 stays readable"


@pytest.mark.parametrize("error", [ModelServerError("gone"), ZeroDivisionError("a tokeniser's own bug")])
async def test_a_count_costs_nothing_and_its_failure_is_blamed(tmp_path: Path, error: Exception) -> None:
    """A prompt's tokens are asked of the model behind; where it can't say, no seat is to blame, and none can hide it."""

    class Counting(Answering):
        async def prompt_tokens(self, request: Request) -> int:
            """A count for one seed, a failure for others."""
            if request.seed == REQUEST.seed:
                return 17
            raise error

    counted = meter()
    with Transcript(tmp_path / "t.jsonl") as transcript:
        model = MeteredModel(Counting(completion()), counted, transcript, served="m")
        assert await model.prompt_tokens(REQUEST) == 17
        assert (counted.spend().calls, counted.blamed) == (0, None)
        with pytest.raises(ModelServerError):
            await model.prompt_tokens(replace(REQUEST, seed=REQUEST.seed + 1))
    assert isinstance(counted.blamed, Void)
    assert counted.blamed.cause == "model-server"
