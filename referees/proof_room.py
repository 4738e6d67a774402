"""
One program in one fresh room: what goes in, what it may use, how it ended, and the one file that is taken out.

No room is used twice. A program of the referee's own toolchain runs in each, but where it compiles what a seat wrote it
must be taken for the seat's: whatever such a room says or leaves is the seat's word, and only ever a reason to reject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import RefereeError
from harness.ports import RoomOpener, Workspace
from harness.tree import Tree
from harness.walls import ExecResult
from referees.proof_card import ProofLimits

__all__ = ["Lab", "Ran", "said"]

OWN_BYTES = 64 << 20
"""Bytes of memory that a room needs beside the program."""
OUTPUT_BYTES = 8 << 20
"""How much of a program's output is read; what says more can't be taken at its word."""

# The hard limit of the processor's time lies a second over the soft one, so that the signal tells which limit it was.
_LIMITED = 'ulimit -S -t "$1"; ulimit -H -t "$2"; ulimit -v "$3"; shift 3; exec "$@"'
_TAKE = 'if [ -f "$1" ] && [ ! -L "$1" ]; then head -c "$2" -- "$1"; else exit 44; fi'
_ABSENT = 44
_OVER_CPU = 128 + 24
_NOT_FOUND = 127
_KILLED = 128 + 9
_NO_COMPILER = b"native compiler exited"
"""`native_compute` without OCaml's compiler says so, and that a larger stack often helps."""
_STARVED = (b"out of memory", b"not enough memory", b"cannot allocate memory", b"stack overflow", b"std::bad_alloc")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """
    How a program ended. `limit` is TIMEOUT or MEMORY where it met a limit, and `why` says which; `by_clock` is whether
    that was the one of the clock. `whole` is whether all that it said was read, `taken` what was brought out.
    """

    status: int
    stdout: str
    stderr: str
    whole: bool = True
    limit: str | None = None
    why: str = ""
    by_clock: bool = False
    taken: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def ended_well(self) -> bool:
        """Exit status 0 and no limit met: a condition for everything, and enough for nothing."""
        return self.status == 0 and self.limit is None


class Lab:
    """Runs programs, each in a room of its own, under one set of limits. `install` says what gives the programs."""

    def __init__(
        self,
        rooms: RoomOpener,
        limits: ProofLimits,
        *,
        object_bytes: int,
        image: str,
        install: str,
        mapped_bytes: int = 0,
    ) -> None:
        self.limits = limits
        self.object_bytes = object_bytes
        self._rooms = rooms
        self._image = image or "the experiment's"
        self._install = install
        self._mapped = mapped_bytes

    def mapping(self, n_bytes: int) -> Lab:
        """The same for programs that reserve `n_bytes` of addresses and never fill them: so much more they may have."""
        return Lab(
            self._rooms,
            self.limits,
            object_bytes=self.object_bytes,
            image=self._image,
            install=self._install,
            mapped_bytes=n_bytes,
        )

    async def run(
        self, files: Mapping[str, bytes], argv: Sequence[str], *, take: Sequence[str] = (), ours: bool = True
    ) -> Ran:
        """
        `argv` in a fresh room that holds `files`; `take` are files that are brought out if they are regular ones, each
        cut one byte after the most that it may have.

        Raises `RefereeError` where nobody could say how the program ended and, for one that is `ours` (it compiles
        nothing that a seat wrote), where it is not there or was killed by someone else; and what the room raises where
        that is lost.
        """
        program = next(word for word in argv if word != "env" and "=" not in word)
        async with self._rooms() as room:
            await _fill(room, files)
            result = await room.exec(
                ["sh", "-c", _LIMITED, "proctor", *self._bounds(), *argv],
                timeout_s=self.limits.wall_s,
                output_bytes=OUTPUT_BYTES,
            )
            if _known(program, result) == _KILLED:
                await self._outlived(room, program)
            taken: dict[str, bytes] = {}
            if take and not result.timed_out:
                await room.sweep()  # nothing that it left running may change a file meanwhile
                for path in take:
                    taken |= await self._take(room, path)
        return self._ran(program, result, taken, ours=ours)

    def cut(self, ran: Ran) -> bool:
        """Whether a file that was brought out is larger than it may be, and so not whole."""
        return any(len(data) > self.object_bytes for data in ran.taken.values())

    def _bounds(self) -> list[str]:
        cpu = self.limits.cpu_s
        return [str(cpu), str(cpu + 1), str((self.limits.memory_bytes + self._mapped) >> 10)]

    async def _take(self, room: Workspace, path: str) -> dict[str, bytes]:
        most = self.object_bytes + 1
        result = await room.exec(["sh", "-c", _TAKE, "proctor", path, str(most)], output_bytes=most)
        if result.status == _ABSENT:
            return {}
        if result.status != 0:
            raise RefereeError(
                f"{path} could not be taken out of its room: {result.stderr.decode('utf-8', 'replace')[-200:]}"
            )
        return {path: result.stdout}

    async def _outlived(self, room: Workspace, program: str) -> None:
        """
        Whether a room goes on in which a program was killed, and has the memory that the program was promised: else it
        was none of the program's doing. Raises `RefereeError`, and what the room raises.
        """
        alive = await room.exec(["true"])
        if alive.status != 0:
            raise RefereeError(f"the room was lost while {program} ran in it")
        allowed, promised = (await room.facts()).get("memory_bytes"), self.limits.memory_bytes + OWN_BYTES
        if isinstance(allowed, int) and 0 < allowed < promised:
            raise RefereeError(
                f"{program} was killed in a room that has {allowed} bytes of memory: expected {promised} or more, for "
                "`memory_bytes` and what the room needs itself; raise memory_bytes of [referee.limits], or lower the "
                "referee's"
            )

    def _ran(self, program: str, result: ExecResult, taken: Mapping[str, bytes], *, ours: bool) -> Ran:
        status = _known(program, result)
        if ours and status == _NOT_FOUND:
            last = result.stderr.decode("utf-8", "replace").strip()[-200:]
            raise RefereeError(f"the rooms' image ({self._image}) lacks a program ({last}): {self._install}")
        if ours and status == _KILLED:
            raise RefereeError(f"{program} was killed in its room, and by no limit of the referee's: is memory short?")
        limit, why = self._limit(program, result, status)
        return Ran(
            status=status,
            stdout=result.stdout.decode("utf-8", "replace"),
            stderr=result.stderr.decode("utf-8", "replace"),
            whole=not (result.stdout_cut or result.stderr_cut),
            limit=limit,
            why=why,
            by_clock=result.timed_out,
            taken=taken,
        )

    def _limit(self, program: str, result: ExecResult, status: int) -> tuple[str | None, str]:
        """Which limit a program that failed met: by the clock, the signal that ended it, or its own word."""
        if result.timed_out:
            return "TIMEOUT", f"{program} was not done after {self.limits.wall_s:g} s by the clock"
        if status == _OVER_CPU:
            return "TIMEOUT", f"{program} used its {self.limits.cpu_s} s of the processor"
        last = result.stderr[-4096:].lower()
        starved = _NO_COMPILER not in last and any(word in last for word in _STARVED)
        if status == _KILLED or (status != 0 and starved):
            return "MEMORY", f"{program} ran out of its {self.limits.memory_bytes} bytes of memory, or of its stack"
        return None, ""


async def _fill(room: Workspace, files: Mapping[str, bytes]) -> None:
    result = await room.exec(["tar", "-x", "-f", "-", "-C", "/workspace"], stdin=Tree.of(files).to_tar())
    if result.status != 0:
        raise RefereeError(f"files could not be laid into a room: {result.stderr.decode('utf-8', 'replace')[-500:]}")


def _known(program: str, result: ExecResult) -> int:
    """The exit status; that of a program ended by the clock says nothing, and is -1."""
    if result.timed_out:
        return -1
    if result.status is None:
        raise RefereeError(f"nobody could say how {program} ended: the rooms' engine lost its exit status")
    return result.status


def said(ran: Ran, most: int = 1500) -> str:
    """The end of what a program said, for people."""
    return (ran.stderr.strip() or ran.stdout.strip())[-most:]
