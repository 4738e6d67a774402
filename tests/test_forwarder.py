"""The forwarder, run as the program that it is: what goes through it, what it holds back, and how it ends."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness.walls import GATEWAY_FOLDER, GATEWAY_PORT
from harness.workspaces import forwarder
from harness.workspaces.forwarding import LISTENING, forwarder_argv


def free_port() -> int:
    """A port of the loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@contextmanager
def forwarding(path: Path, seconds: float = 60.0) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A forwarder in front of the socket `path`: its port and its process."""
    port = free_port()
    argv = [sys.executable, "-I", "-S", "-c", Path(forwarder.__file__).read_text(), str(path), str(port), str(seconds)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == LISTENING
            yield port, program
        finally:
            program.kill()


@contextmanager
def gateway(path: Path, answer: bytes = b"") -> Iterator[list[bytes]]:
    """A gateway that reads each connection to its end and then sends what it read, after `answer`."""
    seen: list[bytes] = []

    def serve(peer: socket.socket) -> None:
        with suppress(ConnectionError), peer:
            said = b"".join(iter(lambda: peer.recv(65536), b""))
            seen.append(said)
            peer.sendall(answer + said)

    def listen() -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(peer,), daemon=True).start()

    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(64)
    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        path.unlink()
        thread.join()


def asked(port: int, data: bytes) -> bytes:
    """What comes back for `data`, after which nothing more is said."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
        sender = threading.Thread(target=lambda: (peer.sendall(data), peer.shutdown(socket.SHUT_WR)))
        sender.start()
        came = b"".join(iter(lambda: peer.recv(65536), b""))
        sender.join()
        return came


def cpu_s(program: subprocess.Popen[bytes]) -> float:
    """Seconds of CPU time that a program has used."""
    fields = Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_everything_goes_through_in_both_directions(tmp_path: Path) -> None:
    """Bytes of any number arrive whole both ways, at once, and the end of the asking is passed on."""
    data = bytes(range(256)) * 40_000
    with forwarding(tmp_path / "s") as (port, _), gateway(tmp_path / "s", b"so: ") as seen:
        assert asked(port, data) == b"so: " + data
        assert asked(port, b"") == b"so: "
    assert seen == [data, b""]


def test_a_gateway_may_come_back(tmp_path: Path) -> None:
    """Without a gateway a connection waits and is hung up on; a new gateway at the same place is found."""
    with forwarding(tmp_path / "s") as (port, program):
        with gateway(tmp_path / "s"):
            assert asked(port, b"one") == b"one"
        begun = time.monotonic()
        with pytest.raises(ConnectionResetError):
            asked(port, b"nobody")
        assert time.monotonic() - begun >= forwarder.PATIENCE_S - 0.1
        with gateway(tmp_path / "s"):
            assert asked(port, b"two") == b"two"
        assert program.poll() is None


def test_connections_are_bounded_and_the_rest_waits(tmp_path: Path) -> None:
    """More than the most at once wait their turn; when idle ones are left, those that waited are served."""
    with forwarding(tmp_path / "s") as (port, program), gateway(tmp_path / "s") as seen:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(forwarder.CONNECTIONS)]
        for peer in idle:
            peer.sendall(b"x")
        with socket.create_connection(("127.0.0.1", port), timeout=1) as late:
            late.sendall(b"late")
            late.shutdown(socket.SHUT_WR)
            with pytest.raises(TimeoutError):
                late.recv(1)
            assert seen == []
            idle.pop().close()
            late.settimeout(20)
            assert late.recv(100) == b"late"
        assert program.poll() is None
        for peer in idle:
            peer.close()


def test_a_peer_that_reads_nothing_holds_no_more_than_a_chunk(tmp_path: Path) -> None:
    """A flood that nobody takes is not gathered in memory, and others are served meanwhile."""
    with forwarding(tmp_path / "s") as (port, program), gateway(tmp_path / "s", b"y" * (64 << 20)):
        deaf = socket.create_connection(("127.0.0.1", port))
        deaf.shutdown(socket.SHUT_WR)
        time.sleep(1)
        assert len(asked(port, b"")) == 64 << 20
        pages = int(Path(f"/proc/{program.pid}/statm").read_text().split()[1])
        assert pages * 4096 < 40 << 20
        deaf.close()


def test_broken_and_idle_peers_cost_nothing(tmp_path: Path) -> None:
    """Peers that are reset, or leave after they have asked, are let go; what only waits uses no CPU time."""
    with forwarding(tmp_path / "s") as (port, program), gateway(tmp_path / "s"):
        for _ in range(200):
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                peer.sendall(b"reset")
        waiting = socket.create_connection(("127.0.0.1", port))
        waiting.sendall(b"half")
        time.sleep(0.5)
        before = cpu_s(program)
        time.sleep(1)
        assert cpu_s(program) - before < 0.1
        assert len(list(Path(f"/proc/{program.pid}/fd").iterdir())) < 12
        assert asked(port, b"well") == b"well"
        waiting.close()


def test_it_ends_by_itself_and_is_its_own(tmp_path: Path) -> None:
    """When its time is over it is gone; until then nobody else gets its port."""
    with forwarding(tmp_path / "s", seconds=2) as (port, program):
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            for address in ("127.0.0.1", "0.0.0.0"):  # noqa: S104 - it must fail
                with pytest.raises(OSError, match="in use"):
                    thief.bind((address, port))
        assert program.wait(20) == 0


def test_the_command_carries_the_program() -> None:
    """What is run is the text itself, with the place of the socket, the port and the time."""
    argv = forwarder_argv(7200.0)
    assert argv[:4] == ["python3", "-I", "-S", "-c"]
    assert argv[5:] == [f"{GATEWAY_FOLDER}/model.sock", str(GATEWAY_PORT), "7200"]
    assert argv[4] == Path(forwarder.__file__).read_text()
