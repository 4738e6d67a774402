"""The OpenAI-compatible provider against a server that answers as told."""

from __future__ import annotations

import time
import traceback
from typing import Any

import anyio
import pytest

from harness.errors import (
    Blamed,
    ContentRefused,
    ContextTruncated,
    ExperimentError,
    ModelServerError,
    RequestRefused,
    UsageError,
    WindowExceeded,
)
from harness.messages import Completion, Message, ModelSpec, Request, ToolCall
from harness.models.openai import OpenAIProvider
from harness.values import Usage
from tests.models.asking import WRITE, ask, conversation, request
from tests.models.fault_server import COMPLETION, MODEL, Fault, FaultServer

pytestmark = pytest.mark.anyio
CHAT = "/v1/chat/completions"
KEY = "sk-very-secret-key"


def model(server: FaultServer, *, key_env: str | None = None, **options: Any) -> ModelSpec:
    """The model on the fault server."""
    return ModelSpec(
        name="subject",
        provider="openai",
        model=MODEL,
        base_url=f"{server.address}/v1",
        key_env=key_env,
        options=options,
    )


async def answer(server: FaultServer, asked: Request | None = None, **options: Any) -> Completion:
    """The answer to one request."""
    return (await ask(OpenAIProvider(), model(server, **options), asked or request()))[0]


def said(message: dict[str, Any] | None = None, *, finish: str | None = "stop", **changes: Any) -> Fault:
    """A good answer with some changes; None takes a key out."""
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "hello"}, "finish_reason": finish}
    body = {**COMPLETION, "choices": [choice], **changes}
    return Fault({key: value for key, value in body.items() if value is not None})


async def test_a_good_answer_comes_through(faults: FaultServer) -> None:
    """Text, counts and the model that really answered are what the server said."""
    faults.tell(CHAT, said(model="tiny-2026-01-01"))
    got = await answer(faults)
    assert (got.text, got.stop, got.served_model) == ("hello", "stop", "tiny-2026-01-01")
    assert got.usage == Usage(input=12, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=3)


async def test_everything_that_decides_the_answer_is_sent(faults: FaultServer) -> None:
    """Limit, sampling, seed, stop words and the user's own keys go out; `num_ctx` has no place on this wire."""
    asked = request("hi", seed=99, num_predict=20, temperature=0.3, top_p=0.5, stop=("END",))
    await answer(faults, asked, extra={"reasoning_effort": "low"})
    assert faults.last(CHAT).body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 20,
        "temperature": 0.3,
        "top_p": 0.5,
        "seed": 99,
        "stop": ["END"],
        "stream": False,
        "reasoning_effort": "low",
    }
    await answer(faults, token_limit="max_completion_tokens")
    assert faults.last(CHAT).body["max_completion_tokens"] == 16


async def test_cached_tokens_are_priced_apart(faults: FaultServer) -> None:
    """Tokens read from a cache are not input too; without any usage every direction is unknown."""
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}}
    faults.tell(CHAT, said(usage=usage))
    got = (await answer(faults)).usage
    assert (got.input, got.cache_read, got.output, got.total) == (36, 64, 5, 105)
    faults.tell(CHAT, said(usage=None))
    assert (await answer(faults)).usage == Usage()


@pytest.mark.parametrize(
    ("finish", "stop"), [("stop", "stop"), ("length", "length"), ("tool_calls", "stop"), ("function_call", "stop")]
)
async def test_how_an_answer_ended_is_read(faults: FaultServer, finish: str, stop: str) -> None:
    """Without a call in it, an answer that claims to end in one just stopped."""
    faults.tell(CHAT, said(finish=finish))
    assert (await answer(faults)).stop == stop


async def test_a_refusal_by_the_model_is_its_answer(faults: FaultServer) -> None:
    """What the model says instead of answering is the subject's own behaviour."""
    faults.tell(CHAT, said({"role": "assistant", "content": None, "refusal": "I won't"}))
    got = await answer(faults)
    assert (got.text, got.details["refusal"]) == ("I won't", True)


async def test_tool_calls_come_back_parsed_and_go_out_again(faults: FaultServer) -> None:
    """Arguments that do not parse are None with their raw text, which goes out again as it was."""
    calls = [
        {"id": "a", "type": "function", "function": {"name": "write", "arguments": '{"path": "x"}'}},
        {"id": "b", "type": "function", "function": {"name": "write", "arguments": '{"path": '}},
        {"id": "c", "type": "function", "function": {"name": "write", "arguments": "[1]"}},
    ]
    faults.tell(CHAT, said({"role": "assistant", "content": None, "tool_calls": calls}, finish="tool_calls"))
    got = await answer(faults, request(tools=(WRITE,)))
    assert (got.stop, got.text) == ("tool_calls", "")
    assert [(call.id, call.arguments, call.raw) for call in got.tool_calls] == [
        ("a", {"path": "x"}, '{"path": "x"}'),
        ("b", None, '{"path": '),
        ("c", None, "[1]"),
    ]
    assert faults.last(CHAT).body["tools"][0]["function"]["parameters"]["required"] == ["path", "text"]
    turn = conversation(
        Message(role="user", content="go"),
        Message(role="assistant", content="", tool_calls=(got.tool_calls[1],)),
        Message(role="assistant", content="", tool_calls=(ToolCall(id="d", name="write", arguments={"path": "y"}),)),
        Message(role="tool", content="no", tool_call_id="b", tool_name="write"),
    )
    await answer(faults, turn)
    sent = faults.last(CHAT).body["messages"]
    assert sent[1]["tool_calls"][0]["function"]["arguments"] == '{"path": '
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == '{"path": "y"}'
    assert sent[3] == {"role": "tool", "content": "no", "tool_call_id": "b"}


OVERFLOW = {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long"}}


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (said(finish="content_filter"), RequestRefused, "content_filter"),
        (said(finish=None), ModelServerError, "finish_reason is None"),
        (said(finish="odd"), ModelServerError, "finish_reason is 'odd'"),
        (said({"role": "assistant", "content": None}), ModelServerError, "neither content nor tool calls"),
        (said(choices=[]), ModelServerError, "choices"),
        (said(model=None), ModelServerError, "model"),
        (said(usage={"prompt_tokens": -1}), ModelServerError, "prompt_tokens"),
        (
            said(usage={"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 6}}),
            ModelServerError,
            "6 cached tokens of 5",
        ),
        (said(usage={"prompt_tokens": 0}), ModelServerError, "0 prompt tokens"),
        (said(usage={"prompt_tokens": 1}), ContextTruncated, "was cut to fit"),
        (Fault({"error": "out of memory"}), ModelServerError, "no chat completion"),
        (Fault(b""), ModelServerError, "no chat completion"),
        (Fault(b"[1]"), ModelServerError, "no chat completion"),
        (Fault(b'{"a": 1}\n{junk'), ModelServerError, "no chat completion"),
        (Fault(b"\xff\xfe"), ModelServerError, "no chat completion"),
        (Fault(b'{"a', cut=True), ModelServerError, "can't be reached"),
        (Fault({"error": {"message": "boom"}}, status=500), ModelServerError, "boom"),
        (Fault(b"gateway", status=502), ModelServerError, "status 502"),
        (Fault({"error": {"message": "slow down"}}, status=429), ModelServerError, "slow down"),
        (Fault({"error": {"message": "no such model"}}, status=404), RequestRefused, "no such model"),
        (Fault({"error": {"message": "bad key"}}, status=401), RequestRefused, "bad key"),
        (Fault({"error": {"message": "no tools"}}, status=400), ContentRefused, "no tools"),
        (Fault(OVERFLOW, status=400), WindowExceeded, "too long"),
        (Fault({"error": {"code": "context_length_exceeded", "message": "x"}}, status=400), WindowExceeded, "x"),
        (
            Fault({"error": {"message": "This model's maximum context length is 8192 tokens"}}, status=400),
            WindowExceeded,
            "8192",
        ),
    ],
)
async def test_each_fault_lands_in_its_error(
    faults: FaultServer, fault: Fault, kind: type[Blamed], message: str
) -> None:
    """Whatever the server does wrong is blamed on the server, once: nothing is retried behind the meter."""
    faults.tell(CHAT, fault)
    with pytest.raises(kind, match=message) as caught:
        await answer(faults)
    assert type(caught.value) is kind
    assert len(str(caught.value)) < 1000
    assert len([each for each in faults.seen if each.path == CHAT]) == 1


async def test_no_key_shows_anywhere(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that echoes the key, in an error or in a reply, gets it into no message, cause or detail."""
    monkeypatch.setenv("MY_KEY", KEY)
    for fault in (
        Fault({"error": {"message": f"Incorrect key {KEY}", "code": KEY}}, status=401),
        Fault({"error": {"message": f"Incorrect key {KEY}"}}, status=500),
        Fault({"echo": f"Bearer {KEY}"}),
    ):
        faults.tell(CHAT, fault)
        with pytest.raises(Blamed) as caught:
            await ask(OpenAIProvider(), model(faults, key_env="MY_KEY"), request())
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.__dict__)
        assert KEY not in shown
        assert caught.value.__cause__ is None
    assert faults.last(CHAT).headers["authorization"] == f"Bearer {KEY}"
    faults.tell(CHAT, said())
    got = (await ask(OpenAIProvider(), model(faults, key_env="MY_KEY"), request()))[0]
    assert KEY not in repr(got)
    faults.tell("/v1/models", Fault({"error": {"message": f"bad {KEY}"}}, status=403))
    with pytest.raises(RequestRefused) as refused:
        await OpenAIProvider().identify(model(faults, key_env="MY_KEY"))
    assert KEY not in "".join(traceback.format_exception(refused.value))


async def test_only_the_named_key_goes_out(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client would take from the environment for its own API is kept from other servers."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await answer(faults)
    headers = faults.last(CHAT).headers
    assert headers["authorization"] == "Bearer none"
    assert not {"openai-organization", "openai-project"} & headers.keys()


async def test_the_identity_says_whether_the_server_lists_the_model(faults: FaultServer) -> None:
    """There is no digest on this wire, which is shown; a server without a list is not refused for that."""
    provider = OpenAIProvider()
    identity = await provider.identify(model(faults))
    assert (identity.served, identity.digest, identity.details["listed"]) == (MODEL, None, True)
    faults.tell("/v1/models", Fault({"object": "list", "data": []}))
    assert (await provider.identify(model(faults))).details["listed"] is False
    faults.tell("/v1/models", Fault({"error": "no such path"}, status=404))
    assert (await provider.identify(model(faults))).details["listed"] is None


@pytest.mark.parametrize("fault", [Fault(b"junk"), Fault(b""), Fault([1]), Fault({"data": [1]}), Fault({}, status=500)])
async def test_a_list_that_is_none_is_blamed(faults: FaultServer, fault: Fault) -> None:
    """Identification fails as the server's failure, never as a crash."""
    faults.tell("/v1/models", fault)
    with pytest.raises(ModelServerError):
        await OpenAIProvider().identify(model(faults))


async def test_nobody_there_is_the_server_s_failure() -> None:
    """A refused connection is blamed on the server."""
    gone = ModelSpec(name="subject", provider="openai", model="m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ModelServerError, match="can't be reached"):
        await ask(OpenAIProvider(), gone, request())


async def test_a_server_that_hangs_is_left(faults: FaultServer) -> None:
    """No reply within `timeout_s` is the server's failure."""
    faults.tell(CHAT, Fault(hang=True))
    with pytest.raises(ModelServerError):
        await answer(faults, timeout_s=0.3)


async def test_cancellation_returns_at_once(faults: FaultServer) -> None:
    """A limit ends a call to a server that hangs."""
    faults.tell(CHAT, Fault(hang=True))
    started = time.monotonic()
    with anyio.move_on_after(0.3) as scope:
        await answer(faults)
    assert scope.cancelled_caught
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"extra": {"seed": 1}}}, r"`extra` sets \['seed'\]"),
        ({"options": {"tokenlimit": "max_tokens"}}, "Did you mean 'token_limit'"),
        ({"base_url": "http://user:hunter2@127.0.0.1/v1"}, "carries a credential"),
        ({"base_url": None}, "expected a `base_url`"),
        ({"key_env": "NOT_SET_ANYWHERE"}, "'NOT_SET_ANYWHERE' is not set"),
    ],
)
async def test_a_wrong_specification_is_refused(changes: dict[str, Any], message: str) -> None:
    """It stops at the door, before anything is sent."""
    known = {"name": "subject", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    with pytest.raises(UsageError, match=message) as caught:
        await ask(OpenAIProvider(), ModelSpec(**{**known, **changes}), request())
    assert "hunter2" not in str(caught.value)


async def test_a_request_that_no_server_could_answer_is_not_sent(faults: FaultServer) -> None:
    """Impossible sampling is refused here, with the value and what was expected."""
    for wrong in ({"temperature": -1}, {"top_p": 0}, {"num_predict": 0}, {"temperature": float("nan")}):
        with pytest.raises(RequestRefused, match=rf"{next(iter(wrong))} = .*expected"):
            await answer(faults, request(**wrong))
    with pytest.raises(RequestRefused, match="expected text that UTF-8 can say"):
        await answer(faults, request("half \ud800"))
    assert not faults.seen


def test_extra_is_checked_when_identified_too() -> None:
    """A registration must not be made from options that a run would refuse."""
    wrong = ModelSpec(
        name="s", provider="openai", model="m", base_url="http://127.0.0.1:9", options={"extra": {"model": "x"}}
    )
    with pytest.raises(ExperimentError, match="`extra` sets"):
        anyio.run(OpenAIProvider().identify, wrong)
