"""How many tokens a prompt has, asked before it is sent: by the model's own tokeniser where there is one to ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol, runtime_checkable

from harness.messages import Completion, ModelIdentity, ModelSpec, Request
from harness.models.checks import prompt_ceiling
from harness.models.options import Options
from harness.ports import Model

__all__ = ["CountsPrompts", "ServerOptions", "counted_by", "counting", "prompt_tokens"]


@runtime_checkable
class CountsPrompts(Protocol):
    """What a model has beside `complete` where it can count: the prompt's tokens as it would be sent."""

    async def prompt_tokens(self, request: Request) -> int:
        """The count, without generating anything."""


async def prompt_tokens(model: Model, request: Request) -> int:
    """
    The tokens of the prompt of `request`, its template included: by the model's own tokeniser, else an upper bound by
    bytes. Nothing is generated. Raises what the tokeniser does: `ModelServerError` where it can't be asked.
    """
    return await model.prompt_tokens(request) if isinstance(model, CountsPrompts) else prompt_ceiling(request)


class ServerOptions(Options):
    """What the options of a model behind a server have in common: such a server has no tokeniser to ask."""

    tokenizer: str | None = None
    """The model whose tokeniser and chat template count its prompts, as provider `local` calls it."""


class _CountedModel:
    """A model, and beside it an embedded one that is only ever asked to count."""

    def __init__(self, model: Model, counter: CountsPrompts) -> None:
        self._model = model
        self._counter = counter

    async def complete(self, request: Request) -> Completion:
        return await self._model.complete(request)

    async def prompt_tokens(self, request: Request) -> int:
        return await self._counter.prompt_tokens(request)


@asynccontextmanager
async def counting(model: Model, spec: ModelSpec, options: ServerOptions) -> AsyncIterator[Model]:
    """`model`, with the tokeniser that `options` declares for it, if any. Raises as provider `local` does."""
    from harness.models.local import LocalProvider

    if options.tokenizer is None:
        yield model
        return
    async with LocalProvider().open(_as_local(spec, options)) as counter:
        assert isinstance(counter, CountsPrompts)  # an embedded model is one
        yield _CountedModel(model, counter)


async def counted_by(identity: ModelIdentity, spec: ModelSpec, options: ServerOptions) -> ModelIdentity:
    """`identity`, with how prompts are counted if `options` declares a tokeniser. Raises as provider `local` does."""
    from harness.models.local import LocalProvider

    if options.tokenizer is None:
        return identity
    file = await LocalProvider().identify(_as_local(spec, options))
    return replace(identity, prompt_count=f"{file.prompt_count}, declared for it: {file.served}, SHA-256 {file.digest}")


def _as_local(spec: ModelSpec, options: ServerOptions) -> ModelSpec:
    """The declared tokeniser as a model of provider `local`."""
    assert options.tokenizer is not None  # who calls this has looked
    return ModelSpec(name=spec.name, provider="local", model=options.tokenizer)
