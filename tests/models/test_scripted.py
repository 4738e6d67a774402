"""The scripted provider: what it answers, what it refuses, and that a limit ends it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from harness import plugins
from harness.errors import ContextTruncated, ExperimentError, ModelServerError, RequestRefused
from harness.messages import Completion, Message, Request
from harness.models.scripted import ScriptedProvider
from harness.values import Usage
from tests.models.asking import ask, conversation, request, spec

pytestmark = pytest.mark.anyio


async def answer(asked: Request, **options: Any) -> Completion:
    """One answer of a script with these options."""
    return (await ask(ScriptedProvider(), spec("scripted", "script", **options), asked))[0]


async def test_it_is_registered_by_name() -> None:
    """The entry point `scripted` makes a provider without arguments."""
    assert plugins.load("models", "scripted")().name == "scripted"


async def test_replies_go_by_the_turn_and_start_again() -> None:
    """The answer is chosen by the answers that the conversation already holds, so a resumed one gets the same."""
    user, said = Message(role="user", content="go"), Message(role="assistant", content="x")
    turns = [conversation(user, *[said, user] * count) for count in range(3)]
    got = [(await answer(each, replies=["one", "two"])).text for each in turns]
    assert got == ["one", "two", "one"]


async def test_replies_go_by_the_seed_when_asked() -> None:
    """`pick = "seed"` spreads answers over replicates, and the same seed always gets the same."""
    got = [(await answer(request(seed=each), replies=["a", "b"], pick="seed")).text for each in (4, 5, 4)]
    assert got == ["a", "b", "a"]


async def test_replies_go_in_order_when_asked() -> None:
    """`pick = "order"` counts the calls of the opened model."""
    model = spec("scripted", "script", replies=["a", "b"], pick="order")
    got = await ask(ScriptedProvider(), model, request(), request(), request())
    assert [each.text for each in got] == ["a", "b", "a"]


async def test_a_pattern_picks_the_answer_for_a_task() -> None:
    """The latest message that any pattern fits decides; without one the general replies answer."""
    options = {"by_task": {r"\bfib\b": "fib!", "sort": ["first", "second"]}, "replies": "other"}
    asked = conversation(
        Message(role="user", content="write fib"),
        Message(role="assistant", content="sort"),
        Message(role="user", content="now sort"),
    )
    assert (await answer(request("write fib"), **options)).text == "fib!"
    assert (await answer(asked, **options)).text == "second"
    assert (await answer(request("fibre"), **options)).text == "other"


async def test_a_message_nothing_is_written_for_is_refused() -> None:
    """A script never makes an answer up."""
    with pytest.raises(RequestRefused, match="nothing is scripted for 'hello'"):
        await answer(request("hello"), by_task={"fib": "x"})


async def test_it_can_call_tools_for_ever() -> None:
    """`tool_calls` alone answer each turn with the calls, parsed or not."""
    calls = [{"name": "write", "arguments": {"path": "a"}}, {"name": "write", "raw": "{oops"}]
    got = await answer(request(), tool_calls=calls)
    assert got.stop == "tool_calls"
    assert [(call.name, call.arguments) for call in got.tool_calls] == [("write", {"path": "a"}), ("write", None)]
    assert got.tool_calls[1].raw == "{oops"
    assert len({call.id for call in got.tool_calls}) == 2


async def test_usage_counts_words_unless_told() -> None:
    """Counts are exact by default, as told by `usage`, and unknown (never 0) when that is asked for."""
    assert (await answer(request("one two three"), replies="four five")).usage.total == 5
    told = await answer(request(), replies="x", usage={"input": 90, "output": 10})
    assert (told.usage.input, told.usage.output, told.usage.total) == (90, 10, 100)
    assert (await answer(request(), replies="x", usage="unknown")).usage == Usage()
    assert (await answer(request(), replies="x", usage={"output": 3})).usage.total is None


async def test_stop_and_served_model_are_as_told() -> None:
    """A reply may end by length, and the script may claim to be another model."""
    got = await answer(request(), replies="x", stop="length", served_model="other")
    assert (got.stop, got.served_model) == ("length", "other")


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ("model-server", ModelServerError),
        ("request-refused", RequestRefused),
        ("context-truncated", ContextTruncated),
    ],
)
async def test_it_fails_as_told(cause: str, kind: type[Exception]) -> None:
    """Each cause comes up as its own error, for the requests that fit and no others."""
    options = {"replies": "fine", "fail": [{"cause": cause, "match": "boom", "message": "as told"}]}
    with pytest.raises(kind, match="as told"):
        await answer(request("boom"), **options)
    assert (await answer(request("calm"), **options)).text == "fine"


async def test_failures_can_be_counted_and_thinned() -> None:
    """`times` fails only the first calls; `one_in` fails a share of the seeds, the same each time."""
    model = spec("scripted", "script", replies="ok", fail=[{"times": 1}])
    async with ScriptedProvider().open(model) as opened:
        with pytest.raises(ModelServerError):
            await opened.complete(request())
        assert (await opened.complete(request())).text == "ok"

    async def failed(number: int) -> bool:
        try:
            await answer(request(seed=number), replies="ok", fail=[{"one_in": 4}])
        except ModelServerError:
            return True
        return False

    first = [await failed(number) for number in range(60)]
    assert first == [await failed(number) for number in range(60)]
    assert 5 <= sum(first) <= 28


async def test_a_slow_reply_is_a_failure_of_the_server() -> None:
    """A reply over `timeout_s` is blamed on the server, not on the subject."""
    with pytest.raises(ModelServerError, match=r"no reply within 0\.05 s"):
        await answer(request(), replies="late", delay_s=5, timeout_s=0.05)


async def test_cancellation_returns_at_once() -> None:
    """A limit ends a call that is on its way."""
    with anyio.move_on_after(0.05) as scope:
        await answer(request(), replies="late", delay_s=60)
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reples": ["x"]}, "unknown option 'reples'. Did you mean 'replies'"),
        ({}, "nothing to answer"),
        ({"replies": "x", "delay_s": float("nan")}, "delay_s"),
        ({"by_task": {"(": "x"}}, "is not a regular expression"),
        ({"by_task": {"x": []}}, "by_task"),
        ({"replies": [{"txt": "x"}]}, r"replies\.0\.txt"),
        ({"replies": "x", "timeout_s": 0}, "timeout_s"),
        ({"replies": "x", "fail": [{"cause": "boom"}]}, r"fail\.0\.cause"),
    ],
)
async def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    """A wrong option stops at the door with its name, both when identified and when opened."""
    model = spec("scripted", "script", **options)
    with pytest.raises(ExperimentError, match=message):
        await ScriptedProvider().identify(model)
    with pytest.raises(ExperimentError, match=message):
        await ask(ScriptedProvider(), model)


async def test_fields_without_use_are_refused() -> None:
    """A script has no server, so an address is a mistake."""
    with pytest.raises(ExperimentError, match="no use for base_url"):
        await ScriptedProvider().identify(spec("scripted", "s", base_url="http://127.0.0.1:1", replies="x"))


async def test_the_identity_follows_the_script() -> None:
    """The digest covers what is answered: it changes with a reply, and not with the time limit."""
    provider = ScriptedProvider()
    first = await provider.identify(spec("scripted", "s", replies="x"))
    assert first == await provider.identify(spec("scripted", "s", replies="x", timeout_s=5))
    assert first.digest != (await provider.identify(spec("scripted", "s", replies="y"))).digest
    assert first.served == "s"


async def test_a_callable_answers() -> None:
    """Text, a whole completion and an exception each come back as what they are."""
    whole = Completion(text="w", stop="length", usage=Usage(), served_model="m", latency_s=0.0)
    model = spec("scripted", "script")
    assert (await ask(ScriptedProvider(lambda asked: asked.messages[-1].content.upper()), model, request("hi")))[
        0
    ].text == "HI"
    assert await ask(ScriptedProvider(lambda _: whole), model, request()) == [whole]
    with pytest.raises(ContextTruncated, match="cut"):
        await ask(ScriptedProvider(lambda _: ContextTruncated("cut")), model, request())
    assert (await ScriptedProvider(lambda _: "x").identify(model)).digest is None
