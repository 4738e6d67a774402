"""
A workspace without a sandbox, for fast tests of seats, referees and the runner. It is a fake and no mock: its files are
files, the file tool's far end is the real one, and only programs are scripted.

    from tests.fake_workspace import FakeWorkspace, ran

    room = FakeWorkspace(programs={"python3": lambda call: ran(stdout=b"ok")})
    await put(room, Tree.of({"a.py": "x = 1"}))
    assert room.files["a.py"] == b"x = 1"

It closes nothing in: whatever must be shown of a wall is shown on a live backend.
"""

from __future__ import annotations

import inspect
import io
import json
import shutil
import struct
import tempfile
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
from anyio.abc import ByteStream

from harness.errors import WorkspaceError
from harness.ports import Remains
from harness.tree import Tree
from harness.walls import ExecResult, KillProof, Walls
from harness.workspaces import cell_helper
from harness.workspaces.frames import helper_argv
from tests.resting import Rest

__all__ = ["Call", "FakeBackend", "FakeWorkspace", "FarEnd", "Program", "ran"]

HOME = "/workspace"


def ran(
    *, stdout: bytes = b"", stderr: bytes = b"", status: int | None = 0, seconds: float = 0.01, timed_out: bool = False
) -> ExecResult:
    """What a scripted program did."""
    return ExecResult(stdout=stdout, stderr=stderr, status=status, seconds=seconds, timed_out=timed_out)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One `exec` that a test may look at; `workspace` lets a scripted program read and write files."""

    argv: tuple[str, ...]
    stdin: bytes
    timeout_s: float
    output_bytes: int
    env: Mapping[str, str]
    cwd: str
    workspace: FakeWorkspace


Program: TypeAlias = "Callable[[Call], ExecResult | Awaitable[ExecResult]]"
"""A scripted program. It may sleep (then the time limit works as in a real workspace) or raise `WorkspaceError`."""


class _Files:
    """The files below a folder as a mapping from relative path to bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, path: str) -> bytes:
        try:
            return (self._folder / path).read_bytes()
        except FileNotFoundError:
            raise KeyError(path) from None

    def __setitem__(self, path: str, data: bytes | str) -> None:
        target = self._folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)

    def __delitem__(self, path: str) -> None:
        (self._folder / path).unlink()

    def __contains__(self, path: str) -> bool:
        return (self._folder / path).is_file()

    def __iter__(self) -> Any:
        return iter(sorted(p.relative_to(self._folder).as_posix() for p in self._folder.rglob("*") if p.is_file()))

    def __len__(self) -> int:
        return len(list(iter(self)))


class FarEnd(ByteStream):
    """The file tool's far end at work in this process, as a stream."""

    def __init__(self, room: FakeWorkspace) -> None:
        self._room = room
        self._asked = b""
        self._said = b""
        self._news = anyio.Event()
        self._over = False

    async def send(self, item: bytes) -> None:
        """Some of a request; a whole one is answered."""
        if self._over:
            raise anyio.BrokenResourceError
        self._asked += item
        whole = 8 + sum(struct.unpack(">II", self._asked[:8])) if len(self._asked) >= 8 else 8
        if len(self._asked) >= whole:
            asked, self._asked = self._asked[:whole], self._asked[whole:]
            self.say(await anyio.to_thread.run_sync(self._room._helper, asked))

    def say(self, data: bytes) -> None:
        """What `receive` gives from now on."""
        self._said += data
        self._news.set()

    async def receive(self, max_bytes: int = 65536) -> bytes:
        """Some of the answers, once there are any."""
        while not self._said:
            if self._over:
                raise anyio.EndOfStream
            await self._news.wait()
            self._news = anyio.Event()
        data, self._said = self._said[:max_bytes], self._said[max_bytes:]
        return data

    async def send_eof(self) -> None:
        """No more requests."""
        await self.aclose()

    async def aclose(self) -> None:
        """It is over."""
        self._over = True
        self._news.set()


class FakeWorkspace:
    """
    A `Workspace` over a temporary folder. `programs` maps a command's name (`argv[0]`, or its last part) to what
    stands for it; an unknown one ends with 127, as a shell would have it. `calls` lists the programs that were run (the
    file tool is not among them), `kills` and `sweeps` count `kill()` and `sweep()`.
    """

    def __init__(
        self,
        files: Mapping[str, bytes | str] | Tree | None = None,
        *,
        programs: Mapping[str, Program] | None = None,
        name: str = "fake",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.gateway: Path | None = None
        self.walls: Walls | None = None
        self.programs: dict[str, Program] = dict(programs or {})
        self.calls: list[Call] = []
        self.kills = self.sweeps = 0
        self.left: int | None = 0
        self.streams: list[FarEnd] = []
        self.closed = False
        self._facts = dict(facts or {})
        self.folder = Path(tempfile.mkdtemp(prefix="fake-workspace-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.files = _Files(self.folder)
        given = {path: files[path] for path in files} if files is not None else {}
        for path, data in given.items():
            self.files[path] = data

    async def exec(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        timeout_s: float = 60.0,
        output_bytes: int = 1 << 20,
        env: Mapping[str, str] | None = None,
        cwd: str = HOME,
    ) -> ExecResult:
        """Run the file tool's far end for real, and anything else by its script."""
        if self.closed:
            raise WorkspaceError(f"workspace {self.name} is closed")
        if tuple(argv) == helper_argv():
            out = await anyio.to_thread.run_sync(self._helper, stdin)
            return _cut(ran(stdout=out), output_bytes)
        call = Call(
            argv=tuple(argv), stdin=stdin, timeout_s=timeout_s, output_bytes=output_bytes,
            env=dict(env or {}), cwd=cwd, workspace=self,
        )  # fmt: skip
        self.calls.append(call)
        program = self.programs.get(argv[0]) or self.programs.get(argv[0].rsplit("/", 1)[-1])
        if program is None:
            return ran(stderr=f"{argv[0]}: not found\n".encode(), status=127)
        with anyio.move_on_after(timeout_s) as scope:
            made = program(call)
            result = await made if inspect.isawaitable(made) else made
            return _cut(result, output_bytes)
        assert scope.cancelled_caught
        return ran(status=None, seconds=timeout_s, timed_out=True)

    @asynccontextmanager
    async def stream(self, argv: Sequence[str], *, cwd: str = "/workspace") -> AsyncIterator[ByteStream]:
        """The file tool's far end for real. No other long-lived program is scripted: bring your own fake for one."""
        if self.closed or tuple(argv) != helper_argv():
            raise WorkspaceError(f"the fake workspace streams nothing: {list(argv)!r}")
        far_end = FarEnd(self)
        self.streams.append(far_end)
        yield far_end
        await far_end.aclose()

    async def sweep(self) -> int | None:
        """Count it, and say that as many lived on after a call as the test put into `left`."""
        self.sweeps += 1
        return self.left

    @asynccontextmanager
    async def remains(self) -> AsyncIterator[Remains]:
        """The same room, in which nothing is alive."""
        await self.kill()
        yield Rest(self, KillProof(before=0, alive=0, witness="none is needed", seconds=0.0))

    async def kill(self) -> None:
        """Count it, and end the streams: nothing else is alive between two calls here."""
        self.kills += 1
        for far_end in self.streams:
            await far_end.aclose()

    async def facts(self) -> Mapping[str, Any]:
        """What the test said, over what a quiet workspace would say."""
        return {"processes_left": 0, "executions": len(self.calls), **self._facts}

    def _helper(self, stdin: bytes) -> bytes:
        out = io.BytesIO()
        cell_helper.serve(io.BytesIO(self._rooted(stdin)), out)
        return out.getvalue()

    def _rooted(self, stdin: bytes) -> bytes:
        """The requests with `/workspace` put where this workspace's folder is."""
        lengths = struct.Struct(">II")
        out, at = b"", 0
        while at < len(stdin):
            head, body = lengths.unpack_from(stdin, at)
            at += lengths.size
            ask = json.loads(stdin[at : at + head])
            root = ask.get("root", HOME)
            inside = root == HOME or root.startswith(HOME + "/")
            ask["root"] = str(self.folder) + root.removeprefix(HOME) if inside else "/nonexistent" + root
            text = json.dumps(ask).encode("ascii")
            out += lengths.pack(len(text), body) + text + stdin[at + head : at + head + body]
            at += head + body
        return out


def _cut(result: ExecResult, limit: int) -> ExecResult:
    return ExecResult(
        stdout=result.stdout[:limit],
        stderr=result.stderr[:limit],
        status=result.status,
        seconds=result.seconds,
        timed_out=result.timed_out,
        stdout_cut=result.stdout_cut or len(result.stdout) > limit,
        stderr_cut=result.stderr_cut or len(result.stderr) > limit,
    )


@dataclass(kw_only=True)
class FakeBackend:
    """
    A `WorkspaceBackend` of fake workspaces. `opened` keeps each for the test to look at after it is closed (its files
    stay until the test ends); `make` changes how one is made.
    """

    name: str = "fake"
    programs: Mapping[str, Program] = field(default_factory=dict)
    make: Callable[[str], FakeWorkspace] | None = None
    opened: list[FakeWorkspace] = field(default_factory=list)

    async def engine(self) -> Mapping[str, str]:
        """An engine that says it is none."""
        return {"engine": "fake", "version": "0"}

    async def image_digest(self, image: str) -> str:
        """A digest made of the image's name alone."""
        return f"sha256:fake-{image}"

    async def guarantees(self) -> Mapping[str, str | None]:
        """Every promise is said to be enforced, so that a gate's other side is what a test gets to see."""
        return dict.fromkeys(("network", "processes", "memory_total", "cpu", "workspace_bytes", "workspace_inodes"))

    def options(self, walls: Walls) -> Mapping[str, Any]:
        """The walls' own words."""
        return {"image": walls.image, "network": walls.network}

    @asynccontextmanager
    async def open(self, walls: Walls, *, run: str) -> AsyncIterator[FakeWorkspace]:
        """One fresh fake."""
        name = f"{run}-{len(self.opened)}"
        room = self.make(name) if self.make is not None else FakeWorkspace(programs=self.programs, name=name)
        room.walls = walls
        self.opened.append(room)
        try:
            yield room
        finally:
            room.closed = True

    async def reap(self) -> Sequence[str]:
        """Nothing is ever left over."""
        return ()
