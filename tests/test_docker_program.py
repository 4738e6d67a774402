"""A program in a container: its frames, its outputs, and what an engine says instead, without an engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.stapled import StapledByteStream

from harness.clock import SystemClock
from harness.errors import WorkspaceError
from harness.workspaces.docker import DockerBackend
from harness.workspaces.docker_engine import Engine
from harness.workspaces.docker_exec import run_program
from harness.workspaces.docker_kill import kill_everything
from harness.workspaces.docker_program import Container, Frames, Program


def frame(kind: int, data: bytes) -> bytes:
    """One frame as an engine sends it."""
    return bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@dataclass
class Chunks:
    """A byte stream that gives these chunks, and then its end."""

    chunks: list[bytes]

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        """The next chunk."""
        if not self.chunks:
            raise anyio.EndOfStream
        return self.chunks.pop(0)

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 1000])
async def test_frames_come_apart_wherever_they_are_cut(size: int) -> None:
    """The outputs are told apart however the engine's bytes arrive, and a broken last frame is no output's end."""
    data = frame(1, b"out") + frame(2, b"") + frame(2, b"error") + frame(1, b"put") + frame(1, b"x" * 50)[:20]
    framed = Frames(Chunks([data[start : start + size] for start in range(0, len(data), size)]))
    got = {1: b"", 2: b""}
    while (found := await framed.next()) is not None:
        got[found[0]] += found[1]
    assert got == {1: b"output" + b"x" * 12, 2: b"error"}


@dataclass
class FakeEngine:
    """An engine that runs nothing: each program answers with these bytes and its state, the last one again and again."""

    answer: bytes
    states: list[dict[str, Any]]
    started: list[str] = field(default_factory=list)
    killers: list[dict[str, Any]] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    base_url = "http://engine"
    api_version = "1.41"

    async def call(self, ask: Callable[[Any], Any]) -> Any:
        """What `ask` makes of the fake's own client."""
        return ask(self)

    def exec_create(self, container: str, argv: list[str], **options: Any) -> dict[str, str]:
        """Note the program."""
        killer = any("kill -KILL" in word for word in argv)
        self.started.append("killer" if killer else argv[-1])
        return {"Id": self.started[-1]}

    def exec_inspect(self, number: str) -> dict[str, Any]:
        """A killer has done its work, unless told otherwise; another program is in the next of the states."""
        if number == "killer":
            return self.killers.pop(0) if self.killers else {"Running": False, "ExitCode": 0, "Pid": 1}
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def post(self, url: str, json: dict[str, int]) -> FakeEngine:
        """Note a new limit of processes."""
        assert url == "http://engine/v1.41/containers/c/update"
        self.limits.append(json["PidsLimit"])
        return self

    def raise_for_status(self) -> None:
        """All is well."""

    @asynccontextmanager
    async def attach(self, number: str) -> AsyncIterator[StapledByteStream]:
        """A stream of the answer, whose input goes nowhere."""
        yield StapledByteStream(send_stream=Sink(), receive_stream=Chunks([self.answer]))


class Sink:
    """Takes everything."""

    async def send(self, item: bytes) -> None:
        """Take it."""

    async def aclose(self) -> None:
        """Nothing to close."""


async def ran(engine: FakeEngine, output_bytes: int = 100) -> Any:
    """What one program does on a fake engine."""
    container = Container(engine=engine, id="c", user="20001:20001", pids=8)
    program = Program(argv=["prog"])
    return await run_program(container, program, stdin=b"", timeout_s=5, output_bytes=output_bytes, clock=SystemClock())


@pytest.mark.anyio
async def test_the_engines_own_complaint_is_never_output() -> None:
    """The same words with the same status are an error when nothing ran, and output when a program printed them."""
    words = frame(1, b"OCI runtime exec failed: no such thing")
    with pytest.raises(WorkspaceError, match="could not start 'prog': OCI runtime exec failed"):
        await ran(FakeEngine(words, [{"Running": False, "ExitCode": 126, "Pid": 0}]))
    told = await ran(FakeEngine(words, [{"Running": False, "ExitCode": 126, "Pid": 4711}]))
    assert (told.status, told.stdout) == (126, b"OCI runtime exec failed: no such thing")


@pytest.mark.anyio
async def test_a_program_that_finds_no_place_is_tried_again_after_a_kill() -> None:
    """A seat that has taken every place for a process loses its processes, and the harness's program runs."""
    refused, ran_well = {"Running": False, "ExitCode": 126, "Pid": 0}, {"Running": False, "ExitCode": 0, "Pid": 5}
    engine = FakeEngine(frame(1, b"out"), [refused, ran_well])
    told = await ran(engine)
    assert (told.status, engine.started) == (0, ["prog", "killer", "prog"])


@pytest.mark.anyio
async def test_a_killer_that_finds_no_place_gets_one() -> None:
    """
    The limit of processes is raised until the killer starts, the killer is run until it says that nothing is left, and
    the limit is put back.
    """
    refused, killed = {"Running": False, "ExitCode": 126, "Pid": 0}, {"Running": False, "ExitCode": 137, "Pid": 9}
    engine = FakeEngine(b"", [], killers=[refused, refused, killed])
    await kill_everything(Container(engine=engine, id="c", user="20001:20001", pids=8))
    assert (engine.limits, engine.started) == ([40, 72, 8], ["killer"] * 4)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "argv", [[], ["echo", "a\0b"], ["echo", "x" * (128 << 10)], ["echo", "\udc80"], ["x" * 1000] * 1100]
)
async def test_arguments_that_no_kernel_takes_are_the_commands_failure(argv: list[str]) -> None:
    """A model's words that can't be a command give status 126 and a reason; the engine is not even asked."""
    engine = FakeEngine(b"", [])
    container = Container(engine=engine, id="c", user="20001:20001", pids=8)
    told = await run_program(
        container, Program(argv=argv), stdin=b"", timeout_s=5, output_bytes=100, clock=SystemClock()
    )
    assert (told.status, told.stdout, told.stderr != b"", engine.started) == (126, b"", True, [])


@pytest.mark.anyio
async def test_outputs_are_cut_each_by_itself() -> None:
    """Both outputs are cut at the cap and said to be; exactly the cap is no cut."""
    data = frame(1, b"a" * 30) + frame(2, b"b" * 5) + frame(1, b"a" * 3000)
    told = await ran(FakeEngine(data, [{"Running": False, "ExitCode": 0, "Pid": 1}]), output_bytes=5)
    assert (told.stdout, told.stdout_cut, told.stderr, told.stderr_cut) == (b"aaaaa", True, b"bbbbb", False)


@pytest.mark.anyio
async def test_a_dead_engine_says_what_to_do(tmp_path: Path) -> None:
    """Making a backend needs no engine; asking a dead one is a workspace's error, with address and next step."""
    backend = DockerBackend(url=f"unix://{tmp_path}/none.sock")
    with pytest.raises(WorkspaceError, match=r"none\.sock does not answer .*start it"):
        await backend.engine()
    with pytest.raises(WorkspaceError, match="does not answer"):
        async with Engine(f"unix://{tmp_path}/none.sock").attach("x"):
            pass
    with pytest.raises(WorkspaceError, match="expected unix:///PATH or tcp://HOST:PORT"):
        async with Engine("ssh://somewhere").attach("x"):
            pass


@pytest.mark.anyio
@pytest.mark.parametrize("head", [b"HTTP/1.1 101 UPGRADED\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"])
async def test_the_first_bytes_of_an_output_are_not_lost(head: bytes, tmp_path: Path) -> None:
    """What an engine sends in one go with the head of its answer belongs to the program's stream."""

    async def serve(peer: anyio.abc.SocketStream) -> None:
        async with peer:
            assert b"POST /exec/abc/start HTTP/1.1" in await peer.receive()
            await peer.send(head + frame(1, b"first"))

    async with (
        await anyio.create_unix_listener(tmp_path / "engine.sock") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        async with Engine(f"unix://{tmp_path}/engine.sock").attach("abc") as stream:
            assert await Frames(stream).next() == (1, b"first")
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_an_engine_that_refuses_to_start_a_program_is_an_error(tmp_path: Path) -> None:
    """An answer that is no stream is the engine's refusal, and its reason is passed on."""

    async def serve(peer: anyio.abc.SocketStream) -> None:
        async with peer:
            await peer.receive()
            await peer.send(b'HTTP/1.1 409 Conflict\r\n\r\n{"message":"container is paused"}')

    async with (
        await anyio.create_unix_listener(tmp_path / "engine.sock") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, serve)
        with pytest.raises(WorkspaceError, match="container is paused"):
            async with Engine(f"unix://{tmp_path}/engine.sock").attach("abc"):
                pass
        tasks.cancel_scope.cancel()
