"""
Answers that were written beforehand: for tests, controls, and runs that must cost nothing.

What is answered depends on the request alone (unless `pick = "order"`), so a resumed or concurrent run gets what an
undisturbed one gets.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TypeAlias

import anyio
import anyio.lowlevel

from harness.canonical import digest_json
from harness.clock import Clock, SystemClock
from harness.errors import Blamed, ContextTruncated, ModelServerError, RequestRefused
from harness.messages import Completion, Message, ModelIdentity, ModelSpec, Request, ToolCall
from harness.models.blame import reply_within
from harness.models.options import Options, read_options, refuse_fields
from harness.models.script import Reply, ScriptedCall, ScriptedOptions, ScriptedUsage
from harness.ports import Model
from harness.seeds import seed
from harness.values import Usage

__all__ = ["Answer", "ScriptedProvider"]

Answer: TypeAlias = Callable[[Request], Completion | str | Exception]
"""A script in Python: an answer, its text, or an exception that is then raised."""

CAUSES: dict[str, type[Blamed]] = {kind.cause: kind for kind in (ModelServerError, RequestRefused, ContextTruncated)}


class ScriptedProvider:
    """
    Makes scripted models: from the options of the experiment file, or from a callable.

    `ScriptedProvider(lambda request: "return 1")` answers each request in Python; then the options but `timeout_s` are
    refused, and the identity has no digest.
    """

    name = "scripted"

    def __init__(self, answer: Answer | None = None, *, clock: Clock | None = None) -> None:
        self._answer = answer
        self._clock = clock or SystemClock()

    async def identify(self, spec: ModelSpec) -> ModelIdentity:
        """The script's name and the SHA-256 of its options. Raises `ExperimentError` for options that are not right."""
        await anyio.lowlevel.checkpoint()
        options = self._options(spec)
        if not isinstance(options, ScriptedOptions):
            return ModelIdentity(served=spec.model, digest=None, details={"scripted": True})
        digest = digest_json(options.model_dump(mode="json", exclude={"timeout_s"}))
        return ModelIdentity(served=options.served_model or spec.model, digest=digest, details={"scripted": True})

    @asynccontextmanager
    async def open(self, spec: ModelSpec) -> AsyncIterator[Model]:
        """A model that answers as written. Raises `ExperimentError` for options that are not right."""
        options = self._options(spec)
        if isinstance(options, ScriptedOptions):
            yield _Scripted(spec, options, clock=self._clock)
        elif self._answer is not None:
            yield _Answering(spec, options, self._answer, clock=self._clock)

    def _options(self, spec: ModelSpec) -> Options:
        refuse_fields(spec, "base_url", "key_env")
        return read_options(ScriptedOptions if self._answer is None else Options, spec)


class _Scripted:
    """One opened script. It counts its own calls, for `pick = "order"` and `times` only."""

    def __init__(self, spec: ModelSpec, options: ScriptedOptions, *, clock: Clock) -> None:
        self._served = options.served_model or spec.model
        self._options = options
        self._clock = clock
        self._calls = 0
        self._failed = [0] * len(options.fail)

    async def complete(self, request: Request) -> Completion:
        """The scripted answer. Raises the scripted failure, or `RequestRefused` when nothing was written for it."""
        started = self._clock.monotonic()
        with reply_within(self._options.timeout_s, "the script"):
            self._fail(request)
            reply = self._reply(request)
            self._calls += 1
            await anyio.sleep(self._options.delay_s if reply.delay_s is None else reply.delay_s)
        return self._completion(request, reply, self._clock.monotonic() - started)

    def _fail(self, request: Request) -> None:
        for index, failure in enumerate(self._options.fail):
            if failure.times is not None and self._failed[index] >= failure.times:
                continue
            if not any(re.search(failure.match, text) for text in _told(request)):
                continue
            if seed(f"fail|{index}|{request.seed}") % failure.one_in == 0:
                self._failed[index] += 1
                raise CAUSES[failure.cause](failure.message)

    def _reply(self, request: Request) -> Reply:
        replies = self._matching(request) or self._options.replies
        if not replies:
            if not self._options.tool_calls:
                raise RequestRefused(
                    f"nothing is scripted for {request.messages[-1].content!r:.200}: expected a message that matches "
                    f"one of {sorted(self._options.by_task)}, or `replies` for all others"
                )
            replies = (Reply(),)
        index = {
            "turn": sum(message.role == "assistant" for message in request.messages),
            "seed": request.seed,
            "order": self._calls,
        }[self._options.pick]
        return replies[index % len(replies)]

    def _matching(self, request: Request) -> tuple[Reply, ...]:
        """The replies of the first pattern that fits the latest message which any pattern fits."""
        for text in _told(request):
            for pattern, replies in self._options.by_task.items():
                if re.search(pattern, text):
                    return replies
        return ()

    def _completion(self, request: Request, reply: Reply, latency_s: float) -> Completion:
        turn = len(request.messages)
        wanted = reply.tool_calls or self._options.tool_calls
        calls = tuple(_tool_call(f"call-{turn}-{index}", call) for index, call in enumerate(wanted))
        said = self._options.usage if reply.usage is None else reply.usage
        return Completion(
            text=reply.text,
            stop=reply.stop or self._options.stop or ("tool_calls" if calls else "stop"),
            usage=_usage(said, request, Message(role="assistant", content=reply.text, tool_calls=calls)),
            served_model=self._served,
            latency_s=latency_s,
            tool_calls=calls,
            details={"scripted": True},
        )


class _Answering:
    """A script in Python."""

    def __init__(self, spec: ModelSpec, options: Options, answer: Answer, *, clock: Clock) -> None:
        self._spec = spec
        self._options = options
        self._answer = answer
        self._clock = clock

    async def complete(self, request: Request) -> Completion:
        """What the callable answers; an exception that it returns or raises comes up as it is."""
        started = self._clock.monotonic()
        with reply_within(self._options.timeout_s, "the script"):
            await anyio.lowlevel.checkpoint()
        said = self._answer(request)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Completion):
            return said
        return Completion(
            text=said,
            stop="stop",
            usage=_usage(None, request, Message(role="assistant", content=said)),
            served_model=self._spec.model,
            latency_s=self._clock.monotonic() - started,
            details={"scripted": True},
        )


def _told(request: Request) -> Iterator[str]:
    """What the model was told, the last message first; its own words are no cue to it."""
    return (message.content for message in reversed(request.messages) if message.role != "assistant")


def _tool_call(identifier: str, call: ScriptedCall) -> ToolCall:
    if call.raw is not None:
        return ToolCall(id=identifier, name=call.name, arguments=None, raw=call.raw)
    return ToolCall(id=identifier, name=call.name, arguments=call.arguments, raw=json.dumps(call.arguments))


def _words(message: Message) -> int:
    """The scripted tokens of a message: its words, and those of its calls."""
    return len(message.content.split()) + sum(1 + len(call.raw.split()) for call in message.tool_calls)


def _usage(said: ScriptedUsage | str | None, request: Request, answer: Message) -> Usage:
    if isinstance(said, ScriptedUsage):
        return Usage(**said.model_dump())
    if said == "unknown":
        return Usage()
    counted = {"input": sum(map(_words, request.messages)), "output": _words(answer)}
    return Usage(**{**asdict(Usage.zero()), **counted})
