"""
The boundaries a seat works through. Each notes blame where it happens, on the meter, so that nothing is guessed later
from an exception that came up through a plugin's code, or that a plugin swallowed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import asdict, replace
from typing import Any

from anyio.abc import ByteStream

from harness.admission import Place
from harness.errors import Blamed, ContentRefused, ModelServerError, RefereeError, WindowExceeded
from harness.messages import Completion, Message, Request, ToolCall
from harness.meter import Meter, upper_estimate
from harness.models.prompt_size import prompt_tokens
from harness.ports import Model, PublicCheck, Remains, Workspace
from harness.seats.bounded import bounded_arguments
from harness.transcript import Transcript
from harness.values import Usage
from harness.views import PublicReading
from harness.walls import ExecResult
from harness.workspaces.file_helper import Asking

__all__ = ["MeteredModel", "WatchedCheck", "WatchedHelper", "WatchedWorkspace"]


class MeteredModel:
    """A model whose every call is admitted, written to the transcript, charged, and checked for who served it."""

    def __init__(self, model: Model, meter: Meter, transcript: Transcript, *, served: str) -> None:
        self._model = model
        self._meter = meter
        self._transcript = transcript
        self._expected = served
        self.served: dict[str, int] = {}

    async def complete(self, request: Request) -> Completion:
        """
        Ask the model. A call that a limit does not admit never reaches the server and never returns: by then the
        seat's scope is cancelled, and this is a place where the cancellation is delivered.
        """
        async with self._meter.call(upper_estimate(request)) as place:
            self._transcript.add("request", estimate=place.tokens, **_request_event(request, place.number))
            try:
                completion = await self._model.complete(request)
            except BaseException as error:
                self._failed(error, place)
                if isinstance(error, Exception) and not isinstance(error, Blamed):
                    raise ModelServerError(f"the provider raised {type(error).__name__}: {error}") from error
                raise
            # Charged before anything looks into it: what a model wrote may be such that looking fails.
            self.served[completion.served_model] = self.served.get(completion.served_model, 0) + 1
            self._meter.charge_call(
                completion.usage,
                estimate=place.tokens,
                output_bytes=_output_bytes(completion),
                served=completion.served_model,
            )
            self._transcript.add("completion", call=place.number, **_completion_event(completion))
            return completion

    async def prompt_tokens(self, request: Request) -> int:
        """The tokens of a prompt before it is sent, which costs the seat nothing."""
        with _noted(self._meter):
            try:
                return await prompt_tokens(self._model, request)
            except Exception as error:
                if isinstance(error, Blamed):
                    raise
                raise ModelServerError(f"the provider raised {type(error).__name__}: {error}") from error

    def _failed(self, error: BaseException, place: Place) -> None:
        """
        A call that failed or was cut off is charged too: what it used is known only if the error carries it.

        Nobody is to blame yet for a request that the server would not take as it stands: the seat may ask otherwise.
        """
        unread = isinstance(error, (ContentRefused, WindowExceeded))
        usage = getattr(error, "usage", Usage.zero() if unread else None)
        usage = usage if isinstance(usage, Usage) else Usage()
        told = {"error": type(error).__name__, "detail": str(error)[:2000], "usage": asdict(usage)}
        self._transcript.add("call_failed", call=place.number, **told)
        self._meter.charge_call(usage, estimate=place.tokens, output_bytes=0)
        if isinstance(error, Blamed):
            if not unread:
                self._meter.blame(error.cause, str(error))
        elif isinstance(error, Exception):
            self._meter.blame(ModelServerError.cause, f"the provider raised {type(error).__name__}: {error}")

    def findings(self) -> tuple[str, ...]:
        """A sentence for each served model that is not the condition's own."""
        return tuple(
            f"{count} calls were served by {name!r}: the condition's model is served as {self._expected!r}"
            for name, count in sorted(self.served.items())
            if name != self._expected
        )


def _output_bytes(completion: Completion) -> int:
    return len(completion.text.encode("utf-8", "replace")) + sum(len(call.raw) for call in completion.tool_calls)


def _request_event(request: Request, call: int) -> dict[str, Any]:
    return {
        "call": call,
        "seed": request.seed,
        "decoding": asdict(request.decoding),
        "messages": [_message_event(message) for message in request.messages],
        "tools": [tool.name for tool in request.tools],
    }


def _completion_event(completion: Completion) -> dict[str, Any]:
    return {
        "text": completion.text,
        "stop": completion.stop,
        "usage": asdict(completion.usage),
        "served_model": completion.served_model,
        "latency_s": round(completion.latency_s, 3),
        "tool_calls": [_call_event(call) for call in completion.tool_calls],
    }


def _call_event(call: ToolCall) -> dict[str, Any]:
    """A model's tool call as a transcript keeps it: bounded, and free of what JSON can't say."""
    return {"id": call.id, "name": call.name, "raw": call.raw[:100_000], "arguments": bounded_arguments(call.arguments)}


def _message_event(message: Message) -> dict[str, Any]:
    event = asdict(replace(message, tool_calls=()))
    return {**event, "tool_calls": [_call_event(call) for call in message.tool_calls]}


@contextmanager
def _noted(meter: Meter) -> Iterator[None]:
    """Whatever of ours fails in here is on the meter before the seat can swallow it."""
    try:
        yield
    except Blamed as error:
        meter.blame(error.cause, str(error))
        raise


class WatchedWorkspace:
    """The seat's workspace: its failures are noted as ours, and what it shows the seat is metered."""

    def __init__(self, workspace: Workspace, meter: Meter) -> None:
        self.name = workspace.name
        self.gateway = workspace.gateway
        self._workspace = workspace
        self._meter = meter

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 60.0,
        output_bytes: int = 1 << 20,
        env: Mapping[str, str] | None = None,
        cwd: str = "/workspace",
    ) -> ExecResult:
        """Run a program in the workspace; see `ports.Workspace`."""
        with _noted(self._meter):
            result = await self._workspace.exec(
                argv, stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes, env=env, cwd=cwd
            )
        self._meter.charge_output(len(result.stdout) + len(result.stderr))
        return result

    def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AbstractAsyncContextManager[ByteStream]:
        """Start a long-lived program; see `ports.Workspace`."""
        return self._watched_stream(argv, cwd)

    @asynccontextmanager
    async def _watched_stream(self, argv: Sequence[str], cwd: str) -> AsyncIterator[ByteStream]:
        with _noted(self._meter):
            async with self._workspace.stream(argv, cwd=cwd) as stream:
                yield _CountedStream(stream, self._meter)

    async def sweep(self) -> int | None:
        """End what is over and lives on; see `ports.Workspace`."""
        with _noted(self._meter):
            return await self._workspace.sweep()

    def remains(self) -> AbstractAsyncContextManager[Remains]:
        """End the workspace; see `ports.Workspace`."""
        return self._workspace.remains()

    async def kill(self) -> None:
        """End everything of the seat's; see `ports.Workspace`."""
        with _noted(self._meter):
            await self._workspace.kill()

    async def facts(self) -> Mapping[str, Any]:
        """What is observed of the workspace; see `ports.Workspace`."""
        with _noted(self._meter):
            return await self._workspace.facts()


class WatchedHelper:
    """
    The seat's way to its files: a failure of the workspace's is noted as ours, and what it takes out is metered. That
    is the contents, names and matching lines that an answer holds: the tools ask for no more than they show.
    """

    def __init__(self, helper: Asking, meter: Meter) -> None:
        self._helper = helper
        self._meter = meter

    async def ask(
        self, header: Mapping[str, Any], body: bytes = b"", *, room: int = 0, timeout_s: float = 20.0, what: str
    ) -> tuple[Mapping[str, Any], bytes]:
        """The answer to one request; see `Helper`."""
        with _noted(self._meter):
            answered, data = await self._helper.ask(header, body, room=room, timeout_s=timeout_s, what=what)
        self._meter.charge_output(len(data))
        return answered, data

    async def sweep(self) -> int | None:
        """End what programs that are over have left alive; see `Helper`."""
        with _noted(self._meter):
            return await self._helper.sweep()


class _CountedStream(ByteStream):
    """A stream out of the seat's workspace whose bytes are metered as they arrive."""

    def __init__(self, stream: ByteStream, meter: Meter) -> None:
        self._stream = stream
        self._meter = meter

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = await self._stream.receive(max_bytes)
        self._meter.charge_output(len(data))
        return data

    async def send(self, item: bytes) -> None:
        await self._stream.send(item)

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def aclose(self) -> None:
        await self._stream.aclose()


class WatchedCheck:
    """The public tier as the seat may call it: a failure of the referee's is noted as ours."""

    def __init__(self, check: PublicCheck, meter: Meter) -> None:
        self._check = check
        self._meter = meter

    async def __call__(self, code: str) -> PublicReading:
        """What the public tier says of `code`."""
        try:
            return await self._check(code)
        except Blamed as error:
            self._meter.blame(error.cause, str(error))
            raise
        except Exception as error:
            self._meter.blame(RefereeError.cause, f"the public check raised {type(error).__name__}: {error}")
            raise
