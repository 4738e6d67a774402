"""An Ollama server over its native chat API, with the window, the seed and every limit sent along explicitly."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from harness.clock import Clock, SystemClock
from harness.errors import ModelServerError, UsageError
from harness.messages import Completion, Message, ModelIdentity, ModelSpec, Request, ToolCall
from harness.models.blame import bounded, reply_within
from harness.models.chat_wire import wire_tools
from harness.models.checks import PromptCounts, check_request, check_window, fixed_seed
from harness.models.options import read_options
from harness.models.prompt_size import ServerOptions, counted_by, counting
from harness.ports import Model
from harness.values import Usage

if TYPE_CHECKING:
    from ollama import ChatResponse

    from harness.models.ollama_identity import Served
    from harness.models.ollama_wire import Wire

__all__ = ["OllamaOptions", "OllamaProvider"]

NANOSECONDS = 1e9
SAMPLING = ("top_k", "min_p", "repeat_penalty", "num_thread", "num_gpu")


class OllamaOptions(ServerOptions):
    """The options of a model on an Ollama server; the sampling ones are the model's own when left out."""

    keep_alive: float | str | None = None
    """How long the server keeps the model loaded after a reply, in seconds or as text like "10m"."""

    think: bool | Literal["low", "medium", "high"] | None = None
    """Whether a thinking model thinks."""

    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repeat_penalty: Annotated[float, Field(gt=0)] | None = None
    num_thread: Annotated[int, Field(ge=1)] | None = None
    num_gpu: Annotated[int, Field(ge=0)] | None = None


class OllamaProvider:
    """Models on the Ollama server at `base_url`, or at `OLLAMA_HOST`, or at its usual place on this machine."""

    name = "ollama"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    async def identify(self, spec: ModelSpec) -> ModelIdentity:
        """
        The exact tag and its digest, with the server's version, the template's digest and the trained window.

        Raises `ExperimentError` for a model that is not there, runs elsewhere or has no chat template.
        """
        options = read_options(OllamaOptions, spec)
        async with _served(spec, options) as (_, served):
            return await counted_by(served.identity, spec, options)

    @asynccontextmanager
    async def open(self, spec: ModelSpec) -> AsyncIterator[Model]:
        """A model that is known to be there. Raises as `identify` does."""
        options = read_options(OllamaOptions, spec)
        async with _served(spec, options) as (wire, served):
            model = _OllamaModel(wire, served, options, clock=self._clock)
            async with counting(model, spec, options) as counted:
                yield counted


@asynccontextmanager
async def _served(spec: ModelSpec, options: OllamaOptions) -> AsyncIterator[tuple[Wire, Served]]:
    try:
        from harness.models.ollama_identity import inspect
        from harness.models.ollama_wire import connect
    except ImportError as error:
        raise UsageError("provider 'ollama' needs its client: pip install \"proctor[ollama]\"") from error
    async with connect(spec, timeout_s=options.timeout_s) as wire:
        with reply_within(options.timeout_s, f"the server at {wire.address}"):
            served = await inspect(wire, spec)
        yield wire, served


class _OllamaModel:
    """One opened model."""

    def __init__(self, wire: Wire, served: Served, options: OllamaOptions, *, clock: Clock) -> None:
        self._wire = wire
        self._served = served
        self._options = options
        self._clock = clock
        self._counts = PromptCounts()

    async def complete(self, request: Request) -> Completion:
        """The server's answer. Raises `ModelServerError`, `RequestRefused` or `ContextTruncated`."""
        from harness.models.ollama_wire import blaming

        check_request(request, trained_ctx=self._served.trained_ctx)
        sent = self._sent(request)
        tools = wire_tools(request) if self._served.tools is not False else []
        started = self._clock.monotonic()
        with reply_within(self._options.timeout_s, f"the server at {self._wire.address}"), blaming(self._wire):
            reply = await self._wire.client.chat(
                model=self._served.tag,
                messages=[_message(message) for message in request.messages],
                tools=tools,
                stream=False,
                think=self._options.think,
                options=sent,
                keep_alive=self._options.keep_alive,
            )
        latency_s = self._clock.monotonic() - started
        self._check(request, reply)
        return _completion(reply, latency_s, {"sent": sent, "tools_offered": bool(tools), "client": version("ollama")})

    def _sent(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        chosen = {name: getattr(self._options, name) for name in SAMPLING}
        return {
            "num_ctx": decoding.num_ctx,
            "num_predict": decoding.num_predict,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "seed": fixed_seed(request.seed),
            **({"stop": list(decoding.stop)} if decoding.stop else {}),
            **{name: value for name, value in chosen.items() if value is not None},
        }

    def _check(self, request: Request, reply: ChatResponse) -> None:
        """Raises unless `reply` is a whole answer of the model asked for, to the whole prompt."""
        limit = request.decoding.num_predict
        wrong = {
            f"done is {reply.done!r}: expected true": reply.done is not True,
            f"done_reason is {reply.done_reason!r}: expected stop or length": (
                reply.done_reason not in {"stop", "length"}
            ),
            f"the model is {reply.model!r}: expected {self._served.tag!r}": reply.model != self._served.tag,
            "the message has neither content nor tool calls": (
                reply.message.content is None and not reply.message.tool_calls
            ),
            f"eval_count is {reply.eval_count}: expected 0 to num_predict = {limit}": (
                reply.eval_count is not None and not 0 <= reply.eval_count <= limit
            ),
            "eval_count is 0 beside content": reply.eval_count == 0 and bool(reply.message.content),
        }
        for words, is_so in wrong.items():
            if is_so:
                raise ModelServerError(f"the server's reply is no answer: {bounded(words)}")
        self._counts.check(request, reply.prompt_eval_count)
        check_window(request, prompt_tokens=reply.prompt_eval_count, output_tokens=reply.eval_count)


def _message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments or {})}} for call in message.tool_calls
        ]
    if message.tool_name is not None:
        wire["tool_name"] = message.tool_name
    return wire


def _completion(reply: ChatResponse, latency_s: float, details: dict[str, Any]) -> Completion:
    calls = tuple(
        ToolCall(
            id=f"call-{index}",
            name=call.function.name,
            arguments=dict(call.function.arguments),
            raw=json.dumps(dict(call.function.arguments)),
        )
        for index, call in enumerate(reply.message.tool_calls or ())
    )
    stop: Literal["stop", "length", "tool_calls"] = "tool_calls" if calls else "stop"
    durations = {
        f"{name}_s": value / NANOSECONDS
        for name in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
        if (value := getattr(reply, name)) is not None
    }
    return Completion(
        text=(reply.message.content or "").encode("utf-8", "replace").decode(),  # half a character can't be recorded
        stop="length" if reply.done_reason == "length" else stop,
        usage=_usage(reply.prompt_eval_count, reply.eval_count),
        served_model=reply.model or "",
        latency_s=latency_s,
        tool_calls=calls,
        details={**details, **durations},
    )


def _usage(prompt: int | None, output: int | None) -> Usage:
    """An Ollama server counts the whole prompt, cached or not, and has no cache of which it tells."""
    return Usage(input=prompt, cache_write_5m=0, cache_write_1h=0, cache_read=0, output=output)
