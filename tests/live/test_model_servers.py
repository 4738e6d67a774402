"""The contract of the Ollama and OpenAI-compatible providers, against servers that really generate."""

from __future__ import annotations

import time

import anyio
import pytest

from harness.errors import ContextTruncated, ExperimentError, RequestRefused
from harness.messages import Completion, Message, ModelSpec, Request
from harness.models.ollama import OllamaProvider
from harness.models.openai import OpenAIProvider
from tests.live.real_ollama import MODEL, ServerUnderTest
from tests.models.asking import ask, conversation, request, spec

pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.timeout(120)]


def native(server: ServerUnderTest) -> ModelSpec:
    """The model over the native API."""
    return spec("ollama", MODEL, base_url=server.address, num_thread=1, timeout_s=60)


def compatible(server: ServerUnderTest, model: str = MODEL) -> ModelSpec:
    """The model over the chat-completions endpoint."""
    return spec("openai", model, base_url=f"{server.address}/v1", timeout_s=60)


async def answer(server: ServerUnderTest, asked: Request) -> Completion:
    """One answer over the native API."""
    return (await ask(OllamaProvider(), native(server), asked))[0]


async def test_the_identity_is_pinned_by_digest(model_server: ServerUnderTest) -> None:
    """Tag, digest, version and trained window are known before the first call, and a stand-in says what it is."""
    identity = await OllamaProvider().identify(native(model_server))
    assert identity.served == MODEL
    assert identity.digest is not None
    assert len(identity.digest) == 64
    assert identity.details["trained_ctx"] == 2048
    assert ("stand-in, not Ollama" in identity.details["version"]) is not model_server.is_real


async def test_the_same_seed_gives_the_same_text(model_server: ServerUnderTest) -> None:
    """Seeds reach the sampler; the counts are the server's own and the same for the same prompt."""
    asked = [request("Say hello.", seed=seed, num_ctx=512) for seed in (1, 2, 1)]
    first, other, again = await ask(OllamaProvider(), native(model_server), *asked)
    assert first.text == again.text
    assert first.text != other.text
    assert first.usage.input == other.usage.input
    assert first.usage.total is not None


async def test_an_answer_ended_by_its_limit_is_marked(model_server: ServerUnderTest) -> None:
    """`num_predict` is honoured and told."""
    got = await answer(model_server, request(num_ctx=512, num_predict=3, seed=2))
    assert (got.stop, got.usage.output) == ("length", 3)


async def test_a_stop_word_ends_an_answer(model_server: ServerUnderTest) -> None:
    """`stop` is honoured: the answer ends before the word that it would have said."""
    whole = await answer(model_server, request(num_ctx=512, num_predict=64, seed=2))
    word = next(each for each in whole.text if each.isascii() and each.isprintable() and not each.isspace())
    cut = await answer(model_server, request(num_ctx=512, num_predict=64, seed=2, stop=(word,)))
    assert cut.text == whole.text[: whole.text.index(word)]
    assert cut.stop == "stop"


@pytest.mark.parametrize("count", [1, 8])
async def test_a_prompt_over_the_window_is_never_answered(model_server: ServerUnderTest, count: int) -> None:
    """Refused or cut without a word, in one message or in many: it is a truncation, and no answer."""
    said = [Message(role="user", content="Do you know my name? " * (64 // count)) for _ in range(count)]
    with pytest.raises(ContextTruncated):
        await answer(model_server, conversation(*said, num_ctx=256))


async def test_unknown_models_and_windows_are_refused(model_server: ServerUnderTest) -> None:
    """A model that is not there, and a window over the trained one."""
    with pytest.raises(ExperimentError, match="unknown Ollama model"):
        await OllamaProvider().identify(spec("ollama", "no-such-model", base_url=model_server.address))
    with pytest.raises(RequestRefused, match="expected 2048 at most"):
        await answer(model_server, request(num_ctx=4096))


async def test_a_cancelled_call_frees_the_server(model_server: ServerUnderTest) -> None:
    """The call returns at once, and the next one is answered."""
    async with OllamaProvider().open(native(model_server)) as opened:
        await opened.complete(request(num_ctx=2048, num_predict=1))
        started = time.monotonic()
        with anyio.move_on_after(0.05) as scope:
            while True:
                await opened.complete(request("x" * 1500, num_ctx=2048, num_predict=400))
        assert scope.cancelled_caught
        assert time.monotonic() - started < 10
        assert (await opened.complete(request(num_ctx=2048, num_predict=1))).usage.output == 1


async def test_the_compatible_endpoint_answers(model_server: ServerUnderTest) -> None:
    """The same model over the other wire: listed, without a digest, with counts and the name that was served."""
    identity = await OpenAIProvider().identify(compatible(model_server))
    assert (identity.digest, identity.details["listed"]) == (None, True)
    asked = [request(seed=seed, num_predict=3) for seed in (2, 2)]
    first, again = await ask(OpenAIProvider(), compatible(model_server), *asked)
    assert (first.text, first.stop, first.usage.output, first.served_model) == (again.text, "length", 3, MODEL)


async def test_the_compatible_endpoint_never_answers_a_cut_prompt(model_server: ServerUnderTest) -> None:
    """It has its own window, whatever `num_ctx` says: a prompt beyond it is a truncation."""
    with pytest.raises(ContextTruncated):
        await ask(OpenAIProvider(), compatible(model_server), request("word " * 3000))


async def test_the_compatible_endpoint_refuses_unknown_models(model_server: ServerUnderTest) -> None:
    """The server's own refusal comes up as one."""
    with pytest.raises(RequestRefused, match="not found"):
        await ask(OpenAIProvider(), compatible(model_server, "no-such-model"), request())
