"""
One execution: one bwrap with namespaces of its own, from the start of it until nothing of it is alive.

bwrap tells on a status descriptor which process is its process 1 and, when the program has ended, how. Process 1 is
held by a pidfd: when it is gone the kernel has ended everything else in its PID namespace, whatever that had forked,
detached or stopped. A weakened fence without a PID namespace is swept by its mount namespace instead.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import anyio
import anyio.to_thread

from harness.errors import WorkspaceError
from harness.workspaces.bubblewrap_options import Option, SmallFile
from harness.workspaces.namespaces import Kind, Namespace, parent_of

__all__ = ["Command", "Execution", "Pipe", "UnstartableError", "in_memory", "start"]

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


class UnstartableError(Exception):
    """A command that no kernel takes: too long, or with a NUL or something that is no text in it."""


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
        self, process: subprocess.Popen[bytes], status: Pipe, pipes: tuple[Pipe, Pipe, Pipe, Pipe], *, own_pids: bool
    ) -> None:
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr, self._options = pipes
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
        self._reading = anyio.Lock()
        self._ending = anyio.Lock()

    async def release(self, options: bytes) -> None:
        """
        Let bwrap, which waits for its options, begin. What it joined before that holds for everything that it starts.
        """
        await self._options.write(options)
        self._options.close()

    async def wait(self) -> None:
        """Until the program has ended, or bwrap has. `exit_code` is None when bwrap did not tell how."""
        while not self.ended:
            await self._follow(lambda: not self.ended)

    async def finish(self) -> None:
        """
        End everything that is alive and wait until it is gone; what outlives that is counted in `survivors`.

        Can't be cancelled and is over within its own deadline. A second caller waits for the first.
        """
        with anyio.CancelScope(shield=True):
            async with self._ending:
                if self._outer < 0:
                    return
                with anyio.move_on_after(KILL_DEADLINE_S) as scope:
                    await self._end_all()
                if scope.cancelled_caught:
                    self.survivors = max(1, len(self._members()))
                self._close()

    async def _follow(self, needed: Callable[[], bool]) -> None:
        """Take in what bwrap says next, once no other task is about it and if it is `needed` then."""
        async with self._reading:
            if needed():
                self._take(await self._status.read())

    def _take(self, data: bytes) -> None:
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
        self._options.close()
        # A kill of the outer process alone can leave the inner one alive while it is being set up: wait for its number.
        while self._nameless():
            await self._follow(self._nameless)
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

    def _nameless(self) -> bool:
        return self._inner is None and not self.ended

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


async def start(command: Command, join: Callable[[int], None] | None) -> Execution:
    """
    Start it, after its process was given to `join` (called in a worker thread).

    bwrap itself is started on the event loop's own thread, which lives as long as anything: the kernel takes the end of
    the thread that started a sandbox for the end of its parent.
    """
    with ExitStack() as held:
        words, fds = _handed_over(held, command)
        options = _encoded(words)
        execution, status = _spawn(command, fds)
    try:
        if join is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(join, execution.pid)
        await execution.release(options + _encoded(["--json-status-fd", status]))
    except BaseException:
        await execution.finish()
        raise
    return execution


def _encoded(words: Sequence[str]) -> bytes:
    """Words as bwrap reads them. A NUL in one would make two of it, the second an option of somebody else's choice."""
    if any("\0" in word for word in words):
        raise UnstartableError("there is a NUL in a variable or a path")
    try:
        return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)
    except UnicodeEncodeError as error:
        raise UnstartableError(str(error)) from error


def _handed_over(held: ExitStack, command: Command) -> tuple[list[str], list[int]]:
    """The options as words, and the descriptors that they name, which `held` closes."""
    fds: list[int] = []

    def in_file(data: bytes) -> str:
        fds.append(in_memory(data))
        held.callback(os.close, fds[-1])
        return str(fds[-1])

    words = [in_file(option.data) if isinstance(option, SmallFile) else option for option in command.options]
    if command.seccomp is not None:
        words += ["--seccomp", in_file(command.seccomp)]
    return words, fds


def _spawn(command: Command, fds: Sequence[int]) -> tuple[Execution, str]:
    """
    bwrap, waiting for its options, and the word that names its status descriptor.

    The options go through a descriptor, since the seat can read the command line as /proc/1/cmdline.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        reading = [_pipe(ours, theirs, read=True) for _ in range(3)]
        writing = [_pipe(ours, theirs, read=False) for _ in range(2)]
        (stdout, stdout_w), (stderr, stderr_w), (status, status_w) = reading
        (stdin, stdin_r), (options, options_r) = writing
        try:
            process = subprocess.Popen(
                [command.name, "--args", str(options_r), "--", *command.argv],
                executable=command.bwrap,
                stdin=stdin_r,
                stdout=stdout_w,
                stderr=stderr_w,
                pass_fds=[*fds, options_r, status_w],
                env={"PATH": "/usr/bin:/bin"},
                cwd="/",
                user=command.user,
                group=command.user,
                extra_groups=None if command.user is None else [],
            )
        except ValueError as error:
            raise UnstartableError(str(error)) from error
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise UnstartableError("the command is longer than the kernel takes") from error
            raise WorkspaceError(f"{command.bwrap} can't be started: {error}. Is bubblewrap 0.8 installed?") from error
        ours.pop_all()
    pipes = (Pipe(stdin), Pipe(stdout), Pipe(stderr), Pipe(options))
    return Execution(process, Pipe(status), pipes, own_pids=command.own_pids), str(status_w)


def _pipe(ours: ExitStack, theirs: ExitStack, *, read: bool) -> tuple[int, int]:
    """A pipe as (our end, their end), each to be closed by its stack."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    mine, other = (reader, writer) if read else (writer, reader)
    ours.callback(os.close, mine)
    theirs.callback(os.close, other)
    return mine, other
