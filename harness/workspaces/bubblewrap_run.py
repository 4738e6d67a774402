"""
One execution: one bwrap with namespaces of its own, from the start of it until nothing of it is alive.

bwrap tells on a status descriptor which process is its process 1 and, when the program has ended, how. Process 1 is
held by a pidfd, which the kernel makes readable only when everything else in its PID namespace has been ended and
reaped, whatever that had forked, detached or stopped: that is the proof, and no list of processes has to be read for
it. A weakened fence without a PID namespace is swept by its mount namespace instead.
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
from functools import partial

import anyio
import anyio.to_thread

from harness.errors import WorkspaceError
from harness.workspaces.bubblewrap_options import Option, SmallFile
from harness.workspaces.namespaces import Kind, Namespace, named, parent_of
from harness.workspaces.pipes import Pipe, in_memory, pipe_pair

__all__ = ["Command", "Execution", "UnstartableError", "Witness", "spawn"]

KILL_DEADLINE_S = 10.0
"""How long ending an execution may take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """
    What is started: `name` is what its process is called on the host, `token` a word in `argv` that no other execution
    has, `user` the uid and gid to drop to first (None
    stays who we are), `seccomp` the assembled filter. Without `own_pids` it shares the host's process tree.
    """

    name: str
    token: str
    bwrap: str
    options: Sequence[Option]
    argv: Sequence[str]
    user: int | None
    seccomp: bytes | None
    own_pids: bool = True


class UnstartableError(Exception):
    """A command that no kernel takes: too long, or with a NUL or something that is no text in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Witness:
    """
    An execution's namespace, the number of its process 1, and a descriptor of the namespace, which the witness' holder
    closes: as long as it is open no other namespace gets the same inode.
    """

    namespace: Namespace
    first: int
    hold: int


class Execution:
    """A bwrap. Made by `spawn`, it waits for `begin`; `finish` must be called whatever happens."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        status: Pipe,
        pipes: tuple[Pipe, Pipe, Pipe, Pipe],
        options: bytes,
        command: Command,
    ) -> None:
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr, self._gate = pipes
        self.exit_code: int | None = None
        self.ended = False
        self.cut_short = False
        self.survivors = 0
        self._options = options
        self._begun = False
        self._process = process
        self._outer = os.pidfd_open(process.pid)
        self._status = status
        self._command = command
        self._kind: Kind = "pid" if command.own_pids else "mnt"
        self._first = 0
        self._inner: int | None = None
        self._hold: int | None = None
        self._namespace: Namespace | None = None
        self._buffer = b""
        self._reading = anyio.Lock()
        self._ending = anyio.Lock()

    async def begin(self, join: Callable[[int], None] | None) -> None:
        """
        Hand bwrap its options, for which it waits, after its process was given to `join` (called in a worker thread):
        what it joins before that holds for everything that it starts.

        Nothing begins when it was ended meanwhile, by us or by the kernel. Raises `WorkspaceError` when it can't join.
        """
        async with self._ending:
            if self._outer < 0:
                return
            try:
                if join is not None:
                    with anyio.CancelScope(shield=True):
                        await anyio.to_thread.run_sync(join, self.pid)
            except OSError as error:
                raise WorkspaceError(f"bwrap could not be put behind its limits: {error}") from error
            with suppress(BrokenPipeError):
                await self._gate.write(self._options)
            self._begun = True
            self._gate.close()

    async def wait(self) -> None:
        """Until the program has ended, or bwrap has. `exit_code` is None when bwrap did not tell how."""
        while not self.ended:
            await self._follow(lambda: not self.ended)

    async def kill(self) -> None:
        """`finish` by somebody else's wish: what its program would have said is not known (`cut_short`)."""
        self.cut_short = True
        await self.finish()

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

    def witness(self) -> Witness | None:
        """Who can look for it from outside. None before bwrap has told its process 1, and when all is over."""
        if self._namespace is None or self._hold is None:
            return None
        return Witness(namespace=self._namespace, first=self._first, hold=os.dup(self._hold))

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
            self._first = pid
            self._namespace = Namespace(kind=self._kind, inode=os.fstat(self._hold).st_ino)

    async def _end_all(self) -> None:
        if not self._begun:
            # It has started nothing yet, and must not take the part of its options that it has for all of them.
            _kill(self._outer)
        self._gate.close()
        # A kill of the outer process alone can leave the inner one alive while it is being set up: wait for its number.
        while self._nameless():
            await self._follow(self._nameless)
        if self._inner is not None:
            _kill(self._inner)
            await anyio.wait_readable(self._inner)
        _kill(self._outer)
        await anyio.wait_readable(self._outer)
        self._process.wait()
        if self._kind == "mnt" and self._namespace is not None:
            await _sweep(self._namespace)
        if self._inner is None and self._begun:
            await self._end_orphan()
        # Whoever waits for what bwrap says next hears the end of it before the pipe is closed.
        await self.wait()

    async def _end_orphan(self) -> None:
        """
        Bwrap ended without a word on its process 1. Another may have ended it, as the kernel does for want of memory,
        when it had just cloned, and before the clone had bound its life to bwrap's. That has bwrap's command line.
        """
        orphans = partial(named, self._command.name, holding=self._command.token)
        while found := await anyio.to_thread.run_sync(orphans):
            for pid in found:
                with suppress(ProcessLookupError):
                    await _ended(pid)

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


async def _sweep(namespace: Namespace) -> None:
    """End the members of a namespace that ends nothing by itself."""
    while await anyio.to_thread.run_sync(namespace.members):
        await anyio.to_thread.run_sync(namespace.kill)
        await anyio.sleep(0.01)


async def _ended(pid: int) -> None:
    """End a process and wait for that. Raises `ProcessLookupError` when it is gone."""
    pidfd = os.pidfd_open(pid)
    try:
        _kill(pidfd)
        await anyio.wait_readable(pidfd)
    finally:
        os.close(pidfd)


def _kill(pidfd: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def spawn(command: Command) -> Execution:
    """
    bwrap, waiting for `begin`. Raises `UnstartableError` for a command that no kernel takes.

    To be called on the event loop's own thread, which lives as long as anything: the kernel takes the end of the thread
    that started a sandbox for the end of its parent.
    """
    with ExitStack() as held:
        words, fds = _handed_over(held, command)
        return _spawn(command, _encoded(words), fds)


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


def _spawn(command: Command, options: bytes, fds: Sequence[int]) -> Execution:
    """
    bwrap, waiting for its options and the word that names its status descriptor.

    The options go through a descriptor, since the seat can read the command line as /proc/1/cmdline.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        reading = [pipe_pair(ours, theirs, read=True) for _ in range(3)]
        writing = [pipe_pair(ours, theirs, read=False) for _ in range(2)]
        (stdout, stdout_w), (stderr, stderr_w), (status, status_w) = reading
        (stdin, stdin_r), (gate, gate_r) = writing
        try:
            process = subprocess.Popen(
                [command.name, "--args", str(gate_r), "--", *command.argv],
                executable=command.bwrap,
                stdin=stdin_r,
                stdout=stdout_w,
                stderr=stderr_w,
                pass_fds=[*fds, gate_r, status_w],
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
    pipes = (Pipe(stdin), Pipe(stdout), Pipe(stderr), Pipe(gate))
    all_options = options + _encoded(["--json-status-fd", str(status_w)])
    return Execution(process, Pipe(status), pipes, all_options, command)
