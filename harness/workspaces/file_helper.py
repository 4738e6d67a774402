"""
The helper: one long-lived process in a workspace, as the seat's user, through which every file of it is reached.

It is non-dumpable, so that nothing of its user's can write into its streams or memory; it can still be killed, stopped
and crowded out, and it has no more rights than the seat has. So what it says is never taken for more than that: each
answer is bounded before memory is taken for it, repeats its request's number, and has a deadline. A helper that fails
in this is an event, and is started again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, Literal, Protocol, TypeAlias

import anyio
from anyio.abc import ByteStream, TaskGroup, TaskStatus

from harness.clock import fresh_token
from harness.errors import Blamed, WorkspaceError, unwrapped
from harness.ports import Workspace
from harness.workspaces.frames import FileFailed, FileToolError, FrameError, Frames, helper_argv, request, served

__all__ = ["Asking", "Cause", "Helper", "at_hand", "open_helper"]

Cause: TypeAlias = Literal["killed", "forged", "late", "crowded"]
"""
What befell a helper:

- `killed`: its stream ended;
- `forged`: what came was no answer to what was asked;
- `late`: no answer came in time;
- `crowded`: it could not be started until everything that the seat ran was ended.
"""

REPEATABLE = frozenset({"ping", "read", "lines", "list", "search", "stat", "write", "put"})
"""What may be asked once more when nobody knows whether it was done: done twice, it is the same."""

PING_S = 10.0
START_S = 30.0
PROOF_S = 30.0


class Asking(Protocol):
    """What the file tools talk to: a helper, or one that is watched."""

    async def ask(
        self, header: Mapping[str, Any], body: bytes = b"", *, room: int = 0, timeout_s: float = 20.0, what: str
    ) -> tuple[Mapping[str, Any], bytes]:
        """The answer to one request; see `Helper`."""

    async def sweep(self) -> int | None:
        """End what programs that are over have left alive; see `Helper`."""


class _LostError(Exception):
    """The helper can't be talked to any more."""

    def __init__(self, cause: Cause, said: str) -> None:
        super().__init__(said)
        self.cause = cause


class _Line:
    """One running far end. Its stream is entered and left by a task of its own, whoever may be talking to it."""

    def __init__(self) -> None:
        self._stream: ByteStream
        self._frames: Frames
        self._over = anyio.Event()
        self._ended = anyio.Event()
        self._fault: Exception | None = None

    async def keep(self, workspace: Workspace, *, task_status: TaskStatus[None]) -> None:
        """Hold the stream open until `drop`. Raises what kept it from starting; what ends it is kept for `gone`."""
        started = False
        try:
            async with workspace.stream(helper_argv(), cwd="/") as self._stream:
                self._frames = Frames(self._stream)
                started = True
                task_status.started()
                await self._over.wait()
        except Exception as error:
            if not started:
                raise
            self._fault = error
        finally:
            self._ended.set()

    def drop(self) -> None:
        """Nobody will talk to it again."""
        self._over.set()

    async def gone(self) -> None:
        """Wait until it is over. Raises `WorkspaceError` when it could not be ended."""
        await self._ended.wait()
        if self._fault is not None:
            leaf = unwrapped(self._fault) if isinstance(self._fault, BaseExceptionGroup) else self._fault
            raise leaf if isinstance(leaf, Blamed) else WorkspaceError(f"the helper's stream broke: {leaf!r}")

    async def exchange(self, frame: bytes, number: str, room: int, timeout_s: float) -> tuple[Mapping[str, Any], bytes]:
        """Ask, and take the answer. Raises `_LostError` when there is none."""
        try:
            with anyio.fail_after(timeout_s):
                await self._stream.send(frame)
                header, body = await self._frames.next(room)
        except TimeoutError:
            raise _LostError("late", f"it did not answer within {timeout_s:g} s") from None
        except FrameError as error:
            raise _LostError("forged", f"it answered {error}") from None
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            raise _LostError("killed", "it was ended") from None
        if header.get("id") != number or not self._frames.quiet:
            raise _LostError("forged", "it answered what was not asked")
        return header, body


class Helper:
    """
    The helper of one workspace, made by `open_helper`. It is started when it is first needed, or by `start`; one
    request is under way at a time.
    """

    def __init__(self, workspace: Workspace, tasks: TaskGroup, event: Callable[[Cause, str], None] | None) -> None:
        self._workspace = workspace
        self._tasks = tasks
        self._event = event
        self._lock = anyio.Lock(fast_acquire=True)
        self._line: _Line | None = None
        self._ending: list[_Line] = []
        self._swept = False

    async def start(self) -> None:
        """Start it now, before anything of the seat's does. Raises `WorkspaceError` when that can't be done."""
        try:
            await self.ask({"op": "ping"}, what="start the file tool", timeout_s=START_S)
        except FileToolError as fault:
            raise WorkspaceError(str(fault)) from fault

    async def ask(
        self, header: Mapping[str, Any], body: bytes = b"", *, room: int = 0, timeout_s: float = 20.0, what: str
    ) -> tuple[Mapping[str, Any], bytes]:
        """
        The answer to one request: its header, and a body of at most `room` bytes.

        A helper that is lost meanwhile is started again, once, and asked again if asking twice does no harm; each try
        may take `timeout_s` seconds. Raises the `FileToolError` that was answered, or that says why there is no answer;
        `WorkspaceError` when the workspace itself failed.
        """
        async with self._lock:
            answered, data = await self._through(header, body, room, timeout_s, what)
        served(answered, what)
        return answered, data

    async def sweep(self) -> int | None:
        """
        End what programs that are over have left alive, and say how many there were, or None where nobody can tell.

        That may end the helper too, which is then started again without a word. One that was lost before is an event.
        """
        async with self._lock:
            if self._line is not None:
                try:
                    await self._exchange({"op": "ping"}, b"", 0, PING_S)
                except _LostError as lost:
                    await self._note(lost, "between two calls")
            self._swept = True
            return await self._workspace.sweep()

    def close(self) -> None:
        """Nobody will ask again."""
        self._drop()

    async def gone(self) -> None:
        """Wait until nothing of it is alive. Raises `WorkspaceError` when it could not be ended."""
        while self._ending:
            await self._ending[-1].gone()
            self._ending.pop()

    async def _through(
        self, header: Mapping[str, Any], body: bytes, room: int, timeout_s: float, what: str
    ) -> tuple[Mapping[str, Any], bytes]:
        """The answer, at the first or at the second try."""
        repeatable = header["op"] in REPEATABLE
        said = ""
        for _ in range(2):
            asked = False
            try:
                await self._ready(sure=not repeatable)
                asked = True
                return await self._exchange(header, body, room, timeout_s)
            except _LostError as lost:
                await self._note(lost, what)
                said = str(lost)
                if asked and not repeatable:
                    raise FileFailed(
                        f"{what}: the file tool was lost on the way ({said}), and this may or may not have been done: "
                        "look at the file before another try"
                    ) from lost
        raise FileFailed(f"{what}: the file tool was lost twice ({said}): end what you run in the background first")

    async def _ready(self, *, sure: bool) -> None:
        """
        See that there is a helper. After a sweep it is looked for, and so it is if the caller must be `sure`.

        Raises `_LostError` for one that was lost, but for one that may have gone with the sweep.
        """
        if self._line is not None and (sure or self._swept):
            swept, self._swept = self._swept, False
            try:
                await self._exchange({"op": "ping"}, b"", 0, PING_S)
            except _LostError:
                if not swept:
                    raise
        self._swept = False
        if self._line is None:
            self._line = await self._started()
            await self._exchange({"op": "ping"}, b"", 0, START_S)

    async def _started(self) -> _Line:
        """A fresh far end. The seat may have taken every place for a process: then it loses what it runs."""
        await self.gone()
        try:
            return await self._begun()
        except WorkspaceError:
            await self._workspace.kill()
            line = await self._begun()
        self._tell("crowded", "it found no place among the processes of the workspace")
        return line

    async def _begun(self) -> _Line:
        line = _Line()
        await self._tasks.start(line.keep, self._workspace)
        return line

    async def _exchange(
        self, header: Mapping[str, Any], body: bytes, room: int, timeout_s: float
    ) -> tuple[Mapping[str, Any], bytes]:
        """One request over the line, which is dropped when anything goes wrong: a late answer must meet nobody."""
        assert self._line is not None
        number = fresh_token(8)
        try:
            return await self._line.exchange(request({**header, "id": number}, body), number, room, timeout_s)
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._line is not None:
            self._line.drop()
            self._ending.append(self._line)
            self._line = None

    async def _note(self, lost: _LostError, what: str) -> None:
        """
        Tell of a lost helper, once the workspace has shown that it works itself and has a python3.

        Raises `WorkspaceError` when it doesn't: then it is not the seat that is to blame.
        """
        proof = ["python3", "-I", "-S", "-c", ""]
        try:
            ran = await self._workspace.exec(proof, timeout_s=PROOF_S, cwd="/")
        except WorkspaceError:
            await self._workspace.kill()
            ran = await self._workspace.exec(proof, timeout_s=PROOF_S, cwd="/")
        if ran.status in {126, 127}:
            said = ran.stderr.decode("utf-8", "replace").strip()[:300]
            raise WorkspaceError(f"{what}: the workspace has no usable python3 ({said!r}): add python3 to its image")
        self._tell(lost.cause, f"{what}: {lost}")

    def _tell(self, cause: Cause, said: str) -> None:
        if self._event is not None:
            self._event(cause, said)


@asynccontextmanager
async def open_helper(
    workspace: Workspace, *, event: Callable[[Cause, str], None] | None = None
) -> AsyncIterator[Helper]:
    """
    The helper of a workspace, gone when the block is left. `event` is told of each one that was lost, and why.

    Raises `WorkspaceError` when it could not be ended.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        helper = Helper(workspace, tasks, event)
        try:
            yield helper
        except Exception as error:  # noqa: BLE001 - raised again below, as it is and not as a group
            failure = error
        finally:
            helper.close()
    if failure is not None:
        raise failure
    await helper.gone()


def at_hand(workspace: Workspace, helper: Asking | None) -> AbstractAsyncContextManager[Asking]:
    """A context with `helper`, or with one of its own for as long as it lasts."""
    return nullcontext(helper) if helper is not None else open_helper(workspace)
