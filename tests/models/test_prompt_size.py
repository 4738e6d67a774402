"""How many tokens a prompt has before it is sent: the model's own count, or an upper bound that says so."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import ExperimentError
from harness.messages import COUNTED_AS_BYTES, Completion, ModelIdentity, Request
from harness.models.checks import prompt_ceiling
from harness.models.local import LocalProvider
from harness.models.ollama import OllamaOptions
from harness.models.openai import OpenAIOptions
from harness.models.options import read_options
from harness.models.prompt_size import ServerOptions, counted_by, counting, prompt_tokens
from harness.models.scripted import ScriptedProvider
from tests.models.asking import request, spec

pytestmark = pytest.mark.anyio


class Plain:
    """A model that can't count."""

    async def complete(self, request: Request) -> Completion:
        """Never asked here."""
        raise AssertionError(request)


class Counting(Plain):
    """A model that counts words."""

    async def prompt_tokens(self, request: Request) -> int:
        """Its own count."""
        return sum(len(message.content.split()) for message in request.messages)


async def test_a_model_that_can_count_is_asked() -> None:
    """Any other prompt has as many tokens as it can have at most."""
    asked = request("three short words")
    assert await prompt_tokens(Counting(), asked) == 3
    assert await prompt_tokens(Plain(), asked) == prompt_ceiling(asked)
    assert prompt_ceiling(asked) > len("three short words")


async def test_without_a_declared_tokeniser_nothing_counts() -> None:
    """The model is the very one, and its identity says that bytes are counted."""
    model, identity = Plain(), ModelIdentity(served="m", digest=None)
    async with counting(model, spec("ollama", "m"), ServerOptions()) as same:
        assert same is model
    assert await counted_by(identity, spec("ollama", "m"), ServerOptions()) is identity
    assert identity.prompt_count == COUNTED_AS_BYTES
    assert (await ScriptedProvider(lambda _: "").identify(spec("scripted", "m"))).prompt_count == COUNTED_AS_BYTES


@pytest.mark.parametrize("kind", [OllamaOptions, OpenAIOptions])
async def test_a_declared_tokeniser_that_is_not_there_is_refused(kind: Any) -> None:
    """Before anything is asked, by the name of the model that it was declared for."""
    options = read_options(kind, spec("served", "m", tokenizer="file:/nowhere.gguf"))
    with pytest.raises(ExperimentError, match=r"model 'subject': there is no file /nowhere\.gguf"):
        await counted_by(ModelIdentity(served="m", digest=None), spec("served", "m"), options)
    with pytest.raises(ExperimentError, match=r"there is no file /nowhere\.gguf"):
        async with counting(Plain(), spec("served", "m"), options):
            pass
    with pytest.raises(ExperimentError, match="unknown option 'tokeniser'"):
        read_options(kind, spec("served", "m", tokeniser="x"))
    with pytest.raises(ExperimentError, match="tokenizer"):
        await LocalProvider().identify(spec("local", "m", tokenizer="x"))
