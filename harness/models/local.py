"""An embedded engine on a GGUF file, in a child process of its own: no server to install, nothing to reach."""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any

import anyio
import anyio.to_thread
from pydantic import Field

from harness.canonical import digest_bytes
from harness.clock import Clock, SystemClock
from harness.errors import (
    Blamed,
    ContentRefused,
    ExperimentError,
    IntegrityError,
    ModelServerError,
    UsageError,
    WindowExceeded,
)
from harness.messages import Completion, ModelIdentity, ModelSpec, Request
from harness.models.blame import bounded, reply_within
from harness.models.catalogue import ModelFile, model_file
from harness.models.chat_wire import is_overflow, read_reply, wire_messages, wire_tools
from harness.models.checks import PromptCounts, check_request, fixed_seed
from harness.models.gguf import GgufFacts, file_digest, read_facts
from harness.models.local_engine import Engine
from harness.models.options import Options, read_options, refuse_fields
from harness.ports import Model

__all__ = ["LocalOptions", "LocalProvider"]

ENGINE = "xllamacpp"
COUNTED = f"{ENGINE}'s own tokeniser and the file's chat template"
SAMPLING = ("top_k", "min_p", "repeat_penalty")


class LocalOptions(Options):
    """The options of an embedded model; the sampling ones are the engine's own when left out."""

    threads: Annotated[int, Field(ge=1)] | None = None
    """Threads that generate, by default as many as this process may have cores."""

    gpu_layers: Annotated[int, Field(ge=0)] = 0
    """Layers to put on a graphics processor, where the engine was built for one."""

    top_k: Annotated[int, Field(ge=0)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repeat_penalty: Annotated[float, Field(gt=0)] | None = None


class LocalProvider:
    """
    Models from GGUF files: a name of the catalogue whose file was fetched, or `file:/path/to.gguf`.

    One slot and no prompt cache, so the same file, engine, request and seed give the same text.
    """

    name = "local"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    async def identify(self, spec: ModelSpec) -> ModelIdentity:
        """
        The file's SHA-256, with the engine's version and what the file says of itself.

        Raises `ExperimentError` for a file that is not there, is no GGUF or has no chat template, `IntegrityError` for
        a catalogue's file with another digest, and `UsageError` when the engine is not installed.
        """
        read_options(LocalOptions, spec)
        file, facts, digest = await anyio.to_thread.run_sync(_inspect, spec)
        details = {
            "engine": ENGINE,
            "engine_version": version(ENGINE),
            "architecture": facts.architecture,
            "trained_ctx": facts.trained_ctx,
            "template_sha256": digest_bytes((facts.chat_template or "").encode()),
            "tools": facts.tools,
            "licence": file.entry.licence if file.entry is not None else None,
        }
        return ModelIdentity(served=file.served, digest=digest, details=details, prompt_count=COUNTED)

    @asynccontextmanager
    async def open(self, spec: ModelSpec) -> AsyncIterator[Model]:
        """A model whose engine starts with the first request, and is killed in the end. Raises as `identify` does."""
        options = read_options(LocalOptions, spec)
        file, facts, _ = await anyio.to_thread.run_sync(_inspect, spec)
        engine = Engine(path=file.path, threads=options.threads, gpu_layers=options.gpu_layers)
        try:
            yield _LocalModel(file, facts, options, engine, clock=self._clock)
        finally:
            await engine.stop()


def _inspect(spec: ModelSpec) -> tuple[ModelFile, GgufFacts, str]:
    """The file of a specification, what it says of itself, and its digest."""
    refuse_fields(spec, "base_url", "key_env")
    if importlib.util.find_spec(ENGINE) is None:
        raise UsageError(
            f"model {spec.name!r}: provider 'local' needs its engine: pip install \"proctor[local-model]\""
        )
    file = model_file(spec)
    digest = file_digest(file.path)
    if file.entry is not None and digest != file.entry.sha256:
        raise IntegrityError(
            f"{file.path} has SHA-256 {digest}: expected {file.entry.sha256} for {file.served}; delete it and fetch it "
            "again"
        )
    facts = read_facts(file.path)
    if facts.chat_template is None:
        raise ExperimentError(
            f"model {spec.name!r}: {file.path} has no chat template, so a chat would reach it in a format it was not "
            "trained on: use an instruct model's file"
        )
    return file, facts, digest


class _LocalModel:
    """One opened model. Its requests are answered one after another."""

    def __init__(
        self, file: ModelFile, facts: GgufFacts, options: LocalOptions, engine: Engine, *, clock: Clock
    ) -> None:
        self._file = file
        self._facts = facts
        self._options = options
        self._engine = engine
        self._clock = clock
        self._counts = PromptCounts()
        self._turn = anyio.Lock()

    async def complete(self, request: Request) -> Completion:
        """The engine's answer. Raises `ModelServerError`, `RequestRefused` or `ContextTruncated`."""
        check_request(request, trained_ctx=self._facts.trained_ctx)
        body = self._body(request)
        async with self._turn:
            started = self._clock.monotonic()
            with reply_within(self._options.timeout_s, "the embedded engine"):
                answer = await self._engine.ask(body, num_ctx=request.decoding.num_ctx)
            latency_s = self._clock.monotonic() - started
        if answer.error is not None:
            raise _blame(answer.error)
        reply = read_reply(answer.reply)
        self._counts.check(request, reply.prompt_tokens)
        sent = {key: value for key, value in body.items() if key not in {"messages", "tools"}}
        return Completion(
            text=reply.text,
            stop=reply.stop,
            usage=reply.usage,
            served_model=self._file.served,
            latency_s=latency_s,
            tool_calls=reply.tool_calls,
            details={"sent": sent, "tools_offered": "tools" in body, "load_s": answer.load_s},
        )

    async def prompt_tokens(self, request: Request) -> int:
        """The tokens of the prompt as `complete` would send it. Raises `ModelServerError` or `RequestRefused`."""
        body = {key: value for key, value in self._body(request).items() if key in {"messages", "tools"}}
        async with self._turn:
            with reply_within(self._options.timeout_s, "the embedded engine"):
                count = await self._engine.count(body, num_ctx=request.decoding.num_ctx)
        if isinstance(count, int):
            return count
        raise _blame(count)

    def _body(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        chosen = {name: getattr(self._options, name) for name in SAMPLING}
        body: dict[str, Any] = {
            "messages": wire_messages(request),
            "max_tokens": decoding.num_predict,
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "seed": fixed_seed(request.seed),
            "cache_prompt": False,
            **{name: value for name, value in chosen.items() if value is not None},
        }
        if decoding.stop:
            body["stop"] = list(decoding.stop)
        if request.tools and self._facts.tools:
            body["tools"] = wire_tools(request)
        return body


def _blame(error: Mapping[str, Any]) -> Blamed:
    """The error of ours for an error that the engine answered with."""
    words, code = bounded(error.get("message", error)), error.get("code")
    if is_overflow(error.get("type"), words):
        return WindowExceeded(f"the engine refused a prompt that does not fit num_ctx: {words}")
    if isinstance(code, int) and 400 <= code < 500:
        # The embedded engine knows no keys and no other models: what it refuses is what the request says.
        return ContentRefused(f"the engine refused the request: {words}")
    return ModelServerError(f"the engine failed: {words}")
