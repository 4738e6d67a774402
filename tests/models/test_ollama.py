"""The Ollama provider against a server that answers as told: each fault lands in the error that says whose it is."""

from __future__ import annotations

import time
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
from harness.models.ollama import OllamaProvider
from harness.values import Usage
from tests.models.asking import WRITE, ask, conversation, request, spec
from tests.models.fault_server import CHAT, DIGEST, MODEL, SHOW, Fault, FaultServer

pytestmark = pytest.mark.anyio


def model(server: FaultServer, name: str = "tiny", **options: Any) -> ModelSpec:
    """The model on the fault server."""
    return spec("ollama", name, base_url=server.address, **options)


async def answer(server: FaultServer, asked: Request | None = None, **options: Any) -> Completion:
    """The answer to one request."""
    return (await ask(OllamaProvider(), model(server, **options), asked or request(num_ctx=2048)))[0]


def chat(**changes: Any) -> Fault:
    """A good answer with some changes; None takes a key out."""
    body = {**CHAT, **changes}
    return Fault({key: value for key, value in body.items() if value is not None})


async def test_a_good_answer_comes_through(faults: FaultServer) -> None:
    """Text, counts, served model and durations are what the server said."""
    got = await answer(faults)
    assert (got.text, got.stop, got.served_model) == ("hello", "stop", MODEL)
    assert got.usage == Usage(input=12, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=3)
    assert got.details["load_duration_s"] == 0.001


async def test_everything_that_decides_the_answer_is_sent(faults: FaultServer) -> None:
    """Window, limit, sampling, seed and stop words go out in full; and the server is told never to cut."""
    asked = request("hi", seed=99, num_ctx=512, num_predict=20, temperature=0.3, top_p=0.5, stop=("END",))
    await answer(faults, asked, top_k=5, keep_alive="2m")
    body = faults.last("/api/chat").body
    expected = {"num_ctx": 512, "num_predict": 20, "temperature": 0.3, "top_p": 0.5, "seed": 99}
    assert body["options"] == {**expected, "stop": ["END"], "top_k": 5}
    assert (body["truncate"], body["shift"], body["stream"], body["keep_alive"]) == (False, False, False, "2m")
    assert body["model"] == MODEL


async def test_the_identity_is_the_exact_tag_and_digest(faults: FaultServer) -> None:
    """A name without a tag is `:latest`, as for the server; the digest has no prefix."""
    identity = await OllamaProvider().identify(model(faults))
    assert (identity.served, identity.digest) == (MODEL, DIGEST)
    assert identity.details["trained_ctx"] == 8192
    assert "not Ollama" in identity.details["version"]


@pytest.mark.parametrize("name", ["tin", "tiny:7b", "other/tiny"])
async def test_only_the_exact_model_is_taken(faults: FaultServer, name: str) -> None:
    """Another tag is another model: it is refused with the known ones."""
    with pytest.raises(ExperimentError, match=r"unknown Ollama model.*Known: tiny:latest"):
        await OllamaProvider().identify(model(faults, name))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"remote_host": "https://elsewhere.test"}, "runs elsewhere"),
        ({"remote_model": "big"}, "runs elsewhere"),
        ({"template": "{{ .Prompt }}"}, "has the template"),
    ],
)
async def test_models_that_are_not_what_they_seem_are_refused(
    faults: FaultServer, changes: dict[str, Any], message: str
) -> None:
    """No answers from elsewhere, and no chat without a chat template: neither identified nor opened."""
    faults.tell("/api/show", Fault({**SHOW, **changes}))
    with pytest.raises(ExperimentError, match=message):
        await OllamaProvider().identify(model(faults))
    with pytest.raises(ExperimentError, match=message):
        await answer(faults)


async def test_cloud_tags_are_refused(faults: FaultServer) -> None:
    """A cloud tag is refused by its name alone, for a server that does not tell."""
    faults.tell("/api/tags", Fault({"models": [{"name": "big:120b-cloud", "digest": DIGEST}]}))
    with pytest.raises(ExperimentError, match="a cloud tag"):
        await OllamaProvider().identify(model(faults, "big:120b-cloud"))


async def test_a_window_over_the_trained_one_is_refused(faults: FaultServer) -> None:
    """The server would lower it without a word; so it is never asked."""
    with pytest.raises(RequestRefused, match=r"num_ctx = 9000: expected 8192 at most"):
        await answer(faults, request(num_ctx=9000))
    assert not [each for each in faults.seen if each.path == "/api/chat"]


WORDS = "word " * 300


@pytest.mark.parametrize(
    ("asked", "changes", "message"),
    [
        (request(WORDS, num_ctx=256), {"prompt_eval_count": 256}, "was cut to fit"),
        (request("x" * 3000, num_ctx=256), {"prompt_eval_count": 256}, "filled the window"),
        (request(WORDS, num_ctx=4096), {"prompt_eval_count": 201}, "300 words"),
        (request("x" * 9000, num_ctx=4096), {"prompt_eval_count": 2050}, "where servers cut"),
        (request("x" * 3000, num_ctx=1024), {"prompt_eval_count": None}, "gave no prompt count"),
        (
            request("x" * 3000, num_ctx=1024),
            {"prompt_eval_count": 1020, "eval_count": 16},
            "dropped part of the prompt",
        ),
    ],
)
async def test_a_cut_prompt_is_never_an_answer(
    faults: FaultServer, asked: Request, changes: dict[str, Any], message: str
) -> None:
    """A server that cuts a prompt answers 200; each sign of it is a truncation, not a wrong answer."""
    faults.tell("/api/chat", chat(**changes))
    with pytest.raises(ContextTruncated, match=message):
        await answer(faults, asked)


async def test_the_same_counts_are_fine_where_nothing_can_be_cut(faults: FaultServer) -> None:
    """The check says yes too: a prompt that fits for certain may count half the window, or not at all."""
    faults.tell("/api/chat", chat(prompt_eval_count=2050))
    assert (await answer(faults, request("x" * 3000, num_ctx=4096))).text == "hello"
    faults.tell("/api/chat", chat(prompt_eval_count=None))
    assert (await answer(faults, request("short", num_ctx=4096))).usage.input is None


async def test_the_same_prompt_must_count_the_same(faults: FaultServer) -> None:
    """A second sample of a prompt with a smaller count was cut, or the first was."""
    counts = iter([40, 40, 39])
    faults.tell("/api/chat", lambda _: chat(prompt_eval_count=next(counts)))
    async with OllamaProvider().open(model(faults)) as opened:
        for seed in (1, 2):
            await opened.complete(request(num_ctx=2048, seed=seed))
        with pytest.raises(ContextTruncated, match="39 tokens for a prompt that it counted as 40"):
            await opened.complete(request(num_ctx=2048, seed=3))


async def test_missing_counts_are_unknown(faults: FaultServer) -> None:
    """A count that is missing is None, never 0."""
    faults.tell("/api/chat", chat(prompt_eval_count=None, eval_count=None))
    got = await answer(faults)
    assert (got.usage.input, got.usage.output, got.usage.total) == (None, None, None)


async def test_an_answer_ended_by_its_limit_is_marked(faults: FaultServer) -> None:
    """`length` is a valid answer, told apart from one that ended by itself; an empty one is valid too."""
    faults.tell("/api/chat", chat(done_reason="length", message={"role": "assistant", "content": ""}, eval_count=1))
    got = await answer(faults)
    assert (got.text, got.stop) == ("", "length")


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (chat(done=False), ModelServerError, "done is False"),
        (chat(done_reason="load"), ModelServerError, "done_reason is 'load'"),
        (chat(done_reason=None), ModelServerError, "done_reason is None"),
        (chat(model="other:latest"), ModelServerError, "the model is 'other:latest'"),
        (chat(message={"role": "assistant"}), ModelServerError, "neither content nor tool calls"),
        (chat(message=None), ModelServerError, "no answer"),
        (chat(eval_count=17), ModelServerError, "eval_count is 17"),
        (chat(eval_count=0), ModelServerError, "eval_count is 0 beside content"),
        (chat(prompt_eval_count=0), ModelServerError, "0 prompt tokens"),
        (Fault({"error": "out of memory"}), ModelServerError, "no answer"),
        (Fault(b""), ModelServerError, "no answer"),
        (Fault(b'{"model": "tiny"}\n{"junk'), ModelServerError, "no answer"),
        (Fault(b"[1, 2]"), ModelServerError, "no answer"),
        (Fault(b"<html>busy</html>"), ModelServerError, "no answer"),
        (Fault(b'{"done": true', cut=True), ModelServerError, "broke off"),
        (Fault({"error": "llama runner process has terminated"}, status=500), ModelServerError, "runner process"),
        (Fault({"error": {"message": "inner", "code": 503}}, status=503), ModelServerError, "inner"),
        (Fault(b"gateway", status=502), ModelServerError, "status 502"),
        (Fault({"error": "slow down"}, status=429), ModelServerError, "slow down"),
        (Fault({}, status=302, headers={"location": "/api/tags"}), ModelServerError, "status 302"),
        (Fault({"error": "model 'tiny' not found"}, status=404), RequestRefused, "not found"),
        (Fault({"error": "tiny does not support tools"}, status=400), ContentRefused, "does not support tools"),
        (Fault({"error": "input exceeds the context length"}, status=400), WindowExceeded, "context length"),
        (
            Fault({"error": {"type": "exceed_context_size_error", "message": "no"}}, status=400),
            WindowExceeded,
            "does not fit",
        ),
    ],
)
async def test_each_fault_lands_in_its_error(
    faults: FaultServer, fault: Fault, kind: type[Blamed], message: str
) -> None:
    """Whatever the server does wrong is blamed on the server, with its own words."""
    faults.tell("/api/chat", fault)
    with pytest.raises(kind, match=message) as caught:
        await answer(faults)
    assert type(caught.value) is kind
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("path", ["/api/version", "/api/tags", "/api/show"])
@pytest.mark.parametrize(
    "fault", [Fault(b""), Fault(b"[]"), Fault({"models": [{}]}), Fault({"error": "x"}, status=500)]
)
async def test_a_server_that_can_t_say_what_it_has_is_blamed(faults: FaultServer, path: str, fault: Fault) -> None:
    """Identification fails as the server's failure, or as a model that is not there; never as a crash."""
    faults.tell(path, fault)
    if path == "/api/show" and fault.status == 200 and isinstance(fault.body, dict):
        assert (await OllamaProvider().identify(model(faults))).details["trained_ctx"] is None
        return
    with pytest.raises(ModelServerError):
        await OllamaProvider().identify(model(faults))


async def test_nobody_there_is_the_server_s_failure() -> None:
    """A refused connection is blamed on the server, when identified and when opened."""
    gone = spec("ollama", "tiny", base_url="http://127.0.0.1:9")
    with pytest.raises(ModelServerError, match="can't be reached"):
        await OllamaProvider().identify(gone)
    with pytest.raises(ModelServerError, match="can't be reached"):
        await ask(OllamaProvider(), gone, request())


async def test_a_server_that_hangs_is_left(faults: FaultServer) -> None:
    """No reply within `timeout_s` is the server's failure."""
    async with OllamaProvider().open(model(faults, timeout_s=0.3)) as opened:
        faults.tell("/api/chat", Fault(hang=True))
        with pytest.raises(ModelServerError):
            await opened.complete(request(num_ctx=2048))


async def test_cancellation_returns_at_once(faults: FaultServer) -> None:
    """A limit ends a call to a server that hangs."""
    async with OllamaProvider().open(model(faults)) as opened:
        faults.tell("/api/chat", Fault(hang=True))
        started = time.monotonic()
        with anyio.move_on_after(0.2) as scope:
            await opened.complete(request(num_ctx=2048))
    assert scope.cancelled_caught
    assert time.monotonic() - started < 10
    assert faults.hung == 1


async def test_tool_calls_come_back_parsed_and_go_out_again(faults: FaultServer) -> None:
    """A native call has its arguments; the next turn carries the call and the tool's answer."""
    call = {"function": {"name": "write", "arguments": {"path": "a"}}}
    faults.tell("/api/chat", chat(message={"role": "assistant", "content": "", "tool_calls": [call]}))
    got = await answer(faults, request(num_ctx=2048, tools=(WRITE,)))
    assert (got.stop, got.tool_calls[0].name, got.tool_calls[0].arguments) == ("tool_calls", "write", {"path": "a"})
    assert faults.last("/api/chat").body["tools"][0]["function"]["name"] == "write"
    turn = (
        Message(role="user", content="go"),
        Message(role="assistant", content="", tool_calls=(ToolCall(id="c", name="write", arguments={"path": "a"}),)),
        Message(role="tool", content="done", tool_call_id="c", tool_name="write"),
    )
    await answer(faults, conversation(*turn, num_ctx=2048))
    sent = faults.last("/api/chat").body["messages"]
    assert sent[1]["tool_calls"] == [call]
    assert (sent[2]["content"], sent[2]["tool_name"]) == ("done", "write")


async def test_tools_are_offered_only_where_the_template_has_a_place(faults: FaultServer) -> None:
    """A model without native tools is not refused for them: the answer says that none were offered."""
    asked = request(num_ctx=2048, tools=(WRITE,))
    assert (await answer(faults, asked)).details["tools_offered"] is True
    faults.tell("/api/show", Fault({**SHOW, "capabilities": ["completion"]}))
    assert (await answer(faults, asked)).details["tools_offered"] is False
    assert faults.last("/api/chat").body["tools"] == []


async def test_no_key_but_the_named_one_goes_out(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """OLLAMA_API_KEY is meant for its own host; a key goes out only when `key_env` names it."""
    monkeypatch.setenv("OLLAMA_API_KEY", "leaked-key")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    await answer(faults)
    assert all("authorization" not in each.headers for each in faults.seen)
    monkeypatch.setenv("MY_KEY", "right-key")
    named = ModelSpec(name="subject", provider="ollama", model="tiny", base_url=faults.address, key_env="MY_KEY")
    faults.tell("/api/chat", Fault({"error": "bad key right-key"}, status=401))
    with pytest.raises(RequestRefused) as caught:
        await ask(OllamaProvider(), named, request(num_ctx=2048))
    assert all(each.headers["authorization"] == "Bearer right-key" for each in faults.seen[-4:])
    assert "right-key" not in f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"tempratur": 1}}, "unknown option 'tempratur'"),
        ({"options": {"min_p": 2}}, "min_p"),
        ({"base_url": "ftp://x"}, "no address of a server"),
        ({"base_url": "http://user:hunter2@127.0.0.1"}, "carries a credential"),
        ({"base_url": "http://127.0.0.1:notaport"}, "can't be read"),
    ],
)
async def test_a_wrong_specification_is_refused(changes: dict[str, Any], message: str) -> None:
    """Misspelt options and bad addresses stop at the door, and no credential shows in the message."""
    wrong = ModelSpec(**{"name": "subject", "provider": "ollama", "model": "tiny", **changes})
    with pytest.raises(UsageError, match=message) as caught:
        await OllamaProvider().identify(wrong)
    assert "hunter2" not in str(caught.value)
