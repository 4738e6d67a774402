"""
One execution: one bwrap with namespaces of its own, from the start of it until nothing of it is alive.

bwrap tells on a status descriptor which process is its process 1 and, when the program has ended, how. Process 1 is
held by a pidfd: when it is gone the kernel has ended everything else in its PID namespace, whatever that had forked,
detached or stopped. A weakened fence without a PID namespace is swept by its mount namespace instead.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import anyio
import anyio.to_thread

from harness.errors import WorkspaceError
from harness.workspaces.bubblewrap_options import Option, SmallFile
from harness.workspaces.namespaces import Kind, Namespace, parent_of

__all__ = ["Command", "Execution", "Pipe", "in_memory", "start"]

KILL_DEADLINE_S = 10.0
"""How long ending an execution may take."""

CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """
    What is started: `name` is what its process is called on the host, `user` the uid and gid to drop to first (None
    stays who we are), `seccomp` the assembled filter. Without `own_pids` it shares the host's process tree.
    """

    name: str
    bwrap: str
    options: Sequence[Option]
    argv: Sequence[str]
    user: int | None
    seccomp: bytes | None
    own_pids: bool = True


class Pipe:
    """Our end of a pipe, without blocking. `read` gives b"" at the end of it."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd

    async def read(self, size: int = CHUNK) -> bytes:
        """The next bytes, once there are some."""
        while True:
            try:
                return os.read(self._fd, size)
            except BlockingIOError:
                await anyio.wait_readable(self._fd)

    async def write(self, data: bytes) -> None:
        """All of `data`. Raises `BrokenPipeError` when nobody will read it."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)

    def close(self) -> None:
        """Close it, once."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def in_memory(data: bytes) -> int:
    """A descriptor of a nameless file that holds `data`, read from its start."""
    fd = os.memfd_create("proctor", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class Execution:
    """A running bwrap. Made by `start`; `finish` must be called whatever happens."""

    def __init__(
        self, process: subprocess.Popen[bytes], status: Pipe, pipes: tuple[Pipe, Pipe, Pipe], *, own_pids: bool
    ) -> None:
        self.stdin, self.stdout, self.stderr = pipes
        self.exit_code: int | None = None
        self.ended = False
        self.survivors = 0
        self._process = process
        self._outer = os.pidfd_open(process.pid)
        self._status = status
        self._kind: Kind = "pid" if own_pids else "mnt"
        self._inner: int | None = None
        self._hold: int | None = None
        self._namespace: Namespace | None = None
        self._buffer = b""

    async def wait(self) -> None:
        """Until the program has ended, or bwrap has. `exit_code` is None when bwrap did not tell how."""
        while not self.ended:
            await self._follow()

    async def finish(self) -> None:
        """
        End everything that is alive and wait until it is gone; what outlives that is counted in `survivors`.

        Can't be cancelled, is over within its own deadline, and does nothing the second time.
        """
        if self._outer < 0:
            return
        with anyio.move_on_after(KILL_DEADLINE_S, shield=True) as scope:
            await self._end_all()
        if scope.cancelled_caught:
            self.survivors = max(1, len(self._members()))
        self._close()

    async def _follow(self) -> None:
        data = await self._status.read()
        if not data:
            self.ended = True
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "child-pid" in said:
                self._adopt(int(said["child-pid"]))
            if "exit-code" in said:
                self.exit_code = int(said["exit-code"])
                self.ended = True

    def _adopt(self, pid: int) -> None:
        """Hold on to process 1 and its namespace. It may be gone already: then there is nothing to hold."""
        with suppress(ProcessLookupError):
            self._inner = os.pidfd_open(pid)
            if parent_of(pid) != self._process.pid:
                os.close(self._inner)
                self._inner = None
                return
        with suppress(OSError):
            self._hold = os.open(f"/proc/{pid}/ns/{self._kind}", os.O_RDONLY | os.O_CLOEXEC)
            self._namespace = Namespace(kind=self._kind, inode=os.fstat(self._hold).st_ino)

    async def _end_all(self) -> None:
        # A kill of the outer process alone can leave the inner one alive while it is being set up: wait for its number.
        while self._inner is None and not self.ended:
            await self._follow()
        if self._inner is not None:
            _kill(self._inner)
            await anyio.wait_readable(self._inner)
        _kill(self._outer)
        await anyio.wait_readable(self._outer)
        self._process.wait()
        while await anyio.to_thread.run_sync(self._members):
            if self._namespace is not None and self._kind == "mnt":
                self._namespace.kill()
            await anyio.sleep(0.01)

    def _members(self) -> list[int]:
        return [] if self._namespace is None else self._namespace.members()

    def _close(self) -> None:
        for fd in (self._inner, self._hold, self._outer):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._inner, self._hold, self._outer = None, None, -1
        self._status.close()
        if self._process.returncode is None:
            self._process.poll()


def _kill(pidfd: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


@contextmanager
def _handed_over(options: Sequence[Option], seccomp: bytes | None) -> Iterator[tuple[list[str], list[int]]]:
    """The options as words, and the descriptors that they name."""
    with ExitStack() as stack:
        fds: list[int] = []

        def held(data: bytes) -> str:
            fd = in_memory(data)
            stack.callback(os.close, fd)
            fds.append(fd)
            return str(fd)

        words = [held(option.data) if isinstance(option, SmallFile) else option for option in options]
        if seccomp is not None:
            words += ["--seccomp", held(seccomp)]
        # The options go through a descriptor: the command line can be read by the seat, as /proc/1/cmdline.
        fds.append(fd := in_memory(b""))
        stack.callback(os.close, fd)
        yield words, fds


def start(command: Command) -> Execution:
    """
    Start it. Called on the event loop's own thread, which lives as long as anything: the kernel takes the end of the
    thread that started a sandbox for the end of its parent.
    """
    with ExitStack() as stack, _handed_over(command.options, command.seccomp) as (words, fds):
        ends = [_pipe(stack) for _ in range(4)]
        (stdin_r, stdin_w), (stdout_r, stdout_w), (stderr_r, stderr_w), (status_r, status_w) = ends
        words += ["--json-status-fd", str(status_w)]
        _fill(fds[-1], words)
        try:
            process = subprocess.Popen(
                [command.name, "--args", str(fds[-1]), "--", *command.argv],
                executable=command.bwrap,
                stdin=stdin_r,
                stdout=stdout_w,
                stderr=stderr_w,
                pass_fds=[*fds, status_w],
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                user=command.user,
                group=command.user,
                extra_groups=None if command.user is None else [],
            )
        except OSError as error:
            raise WorkspaceError(
                f"{command.bwrap} can't be started: {error}. Install bubblewrap 0.8 or later."
            ) from error
        ours = [stdin_w, stdout_r, stderr_r, status_r]
        stack.pop_all()
    for fd in (stdin_r, stdout_w, stderr_w, status_w):
        os.close(fd)
    pipes = [Pipe(fd) for fd in ours]
    return Execution(process, pipes[3], (pipes[0], pipes[1], pipes[2]), own_pids=command.own_pids)


def _pipe(stack: ExitStack) -> tuple[int, int]:
    ends = os.pipe2(os.O_CLOEXEC)
    for fd in ends:
        stack.callback(os.close, fd)
    return ends


def _fill(fd: int, words: Sequence[str]) -> None:
    os.write(fd, b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words))
    os.lseek(fd, 0, os.SEEK_SET)
