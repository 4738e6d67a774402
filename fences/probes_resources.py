"""
Probes of what a workspace may use up: processes, memory, CPU time, descriptors, core files, the engine's log.

Each attempt tries to pass a limit of the *policy*, whatever fence it meets, and is stopped a little beyond it: with the
limit raised in its control it must get there, and nothing more is taken from the host. What it made is gone when it
ends.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from fences.classifier import DENIED, Try, weigh
from fences.programs import PATIENCE_S, ProgramProbe, program
from fences.weakenings import NotMeasuredError, walls_changed
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site

__all__ = [
    "CoreFilesProbe",
    "FileSizeProbe",
    "ForkBombProbe",
    "LimitProbe",
    "LogFloodProbe",
    "MemoryBombProbe",
    "OpenFilesProbe",
    "available_bytes",
]

_LIMITS = frozenset({"EFBIG", "EDQUOT", "ENOMEM", "SIGKILL", "LIMIT"})
"""How a limit says no, beside a wall's own words. `LIMIT` is one that was met without a call that failed."""

_UNLIMITED = resource.RLIM_INFINITY


class LimitProbe(ProgramProbe):
    """An attempt to pass one cap of the policy; its control raises that very cap, which stays finite."""

    holds: frozenset[Finding] = frozenset({Finding.DENIED})
    denied: ClassVar[frozenset[str]] = DENIED | _LIMITS
    structural: ClassVar[bool] = False
    guarantee: ClassVar[str]
    """The promise of the backend that this probe tests: where it isn't kept, nothing is tried."""
    cap: ClassVar[str]
    """The field of `Caps` that the attempt tries to pass, which the program is told as `cap`."""
    more: ClassVar[int] = 4
    """How many times the cap its control has."""
    own_limit: ClassVar[int | None] = None
    """The limit of this very process that bounds what a backend without an engine can hand on."""

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """The policy's cap."""
        del fence
        return {"cap": getattr(site.caps, self.cap)}

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The cap raised."""
        del site
        return _raised(fence, {self.cap: self.more * getattr(fence.walls.caps, self.cap)}, self.own_limit)


def _raised(fence: Fence, caps: Mapping[str, Any], own_limit: int | None = None) -> Fence:
    """The fence with some caps raised. Raises `NotMeasuredError` where this process may not hand that much on."""
    if own_limit is not None:
        hard, most = resource.getrlimit(own_limit)[1], max(caps.values())
        if hard != _UNLIMITED and hard < most:
            raise NotMeasuredError(f"this process may itself have no more than {hard}, so no more can be handed on")
    return walls_changed(fence, caps=replace(fence.walls.caps, **caps))


class ForkBombProbe(LimitProbe):
    """As many children at once as the policy allows processes in all, so that they are one more with their parent."""

    name = "fork-bomb"
    threat = "the seat takes every process number and nothing on the host can start any more"
    guarantee, cap = "processes", "pids"
    own_limit = resource.RLIMIT_NPROC
    body = """
import time
def bomb():
    hold, release = os.pipe()
    children, until = [], time.monotonic() + 20
    try:
        while len(children) < args["cap"]:
            if time.monotonic() > until:
                return {"signature": "TIMEOUT"}
            pid = os.fork()
            if pid == 0:
                os.close(release)
                os.read(hold, 1)
                os._exit(0)
            children.append(pid)
        return {"fact": "more processes than the policy allows were alive at once"}
    finally:
        os.close(release)
        for pid in children:
            os.waitpid(pid, 0)
attempt("processes", bomb)
"""


class MemoryBombProbe(LimitProbe):
    """
    More memory than the policy allows, held by four processes at once, each of them far below the limit: what limits a
    process by itself does not limit the sum. Swap counts, since what is swapped out is still held.
    """

    name = "memory-bomb"
    threat = "the seat takes the host's memory, and the host's kernel ends other people's programs"
    guarantee, cap, more = "memory_total", "memory_bytes", 2
    body = """
import mmap, select, signal, time
STEP = 8 << 20
def hold(size, up, held):
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
        memory = mmap.mmap(-1, size)
        if hasattr(memory, "madvise") and hasattr(mmap, "MADV_HUGEPAGE"):
            try:
                memory.madvise(mmap.MADV_HUGEPAGE)  # fewer, larger pages: the same memory in less time
            except OSError:
                pass
        for start in range(0, size, STEP):
            memory[start : start + STEP : 4096] = b"x" * (STEP // 4096)
            os.write(up, b"+")
        os.read(held, 1)
    except (OSError, ValueError):
        os.write(up, b"!")
    finally:
        os._exit(0)
def fate(status):
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"signature": "SIGKILL" if killed else "a child ended by itself"}
def bomb():
    steps = args["cap"] * 11 // 10 // STEP // 4 + 1
    down, up = os.pipe()
    held, release = os.pipe()
    children = []
    try:
        for _ in range(4):
            pid = os.fork()
            if pid == 0:
                os.close(release)
                hold(steps * STEP, up, held)
            children.append(pid)
        done, until = 0, time.monotonic() + 50
        while done < 4 * steps:
            if time.monotonic() > until:
                return {"signature": "TIMEOUT"}
            if select.select([down], [], [], 0.02)[0]:
                said = os.read(down, 65536)
                if b"!" in said:
                    return {"signature": "ENOMEM"}
                done += len(said)
            elif (ended := os.waitpid(-1, os.WNOHANG))[0]:
                children.remove(ended[0])
                return fate(ended[1])
        # One that was killed may have held its part before, and made room for another's: all must hold theirs still.
        time.sleep(0.5)
        ended = os.waitpid(-1, os.WNOHANG)
        if ended[0]:
            children.remove(ended[0])
            return fate(ended[1])
        return {"fact": "more memory than the policy allows was held at once"}
    finally:
        os.close(release)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
attempt("memory of four processes", bomb)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Twice the memory. Raises `NotMeasuredError` on a host that has not so much to spare."""
        weak = super().weaken(fence, site)
        spare = available_bytes(Path("/proc/meminfo").read_text("ascii"))
        if spare < weak.walls.caps.memory_bytes:
            raise NotMeasuredError("this host has less memory to spare than its control would allow")
        return weak


def available_bytes(meminfo: str) -> int:
    """What a host's `/proc/meminfo` says can be had without swapping. Raises `NotMeasuredError` if it does not say."""
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    raise NotMeasuredError("this host does not say how much memory it has to spare")


class OpenFilesProbe(LimitProbe):
    """More open files in one process than the policy allows, after it raised its own limit as far as it may."""

    name = "open-files"
    threat = "the seat opens files until the host's table of them is full"
    guarantee, cap = "open_files", "open_files"
    own_limit = resource.RLIMIT_NOFILE
    body = """
import resource
def many():
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (args["cap"] * 2, args["cap"] * 2))
    except (OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    held = [os.open("/dev/null", os.O_RDONLY)]
    try:
        while len(held) <= args["cap"]:
            held.append(os.dup(held[0]))
        return {"fact": "more files than the policy allows were open at once"}
    finally:
        for fd in held:
            os.close(fd)
attempt("descriptors", many)
"""


class FileSizeProbe(LimitProbe):
    """One byte beyond the largest file that the policy allows: a file with a hole, which takes no room."""

    name = "file-size"
    threat = "the seat makes one file that whoever copies, reads or archives it chokes on"
    guarantee, cap = "file_bytes", "file_bytes"
    own_limit = resource.RLIMIT_FSIZE
    body = """
import resource
path = "/workspace/proctor-size-%d" % os.getpid()
def beyond():
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.pwrite(fd, b"x", args["cap"])
        return {"fact": "a file is longer than the policy allows"}
    finally:
        os.close(fd)
        os.unlink(path)
attempt("a byte beyond", beyond)
"""


class CoreFilesProbe(LimitProbe):
    """
    A process that crashes in a folder of the seat's, and the file that its memory would be left in.

    Where the host's kernel hands such memory to a program of the host's own, no limit of a workspace holds it back and
    none leaves a file: that is "not measured", and a host's owner can turn it off (`kernel.core_pattern`).
    """

    name = "core-files"
    threat = "a crash fills the workspace with memory that nobody asked for"
    guarantee, cap = "core_files", "core_bytes"
    own_limit = resource.RLIMIT_CORE
    pattern: ClassVar[Path] = Path("/proc/sys/kernel/core_pattern")
    body = """
import resource, shutil, signal
folder = "/workspace/proctor-core-%d" % os.getpid()
def crash():
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    os.mkdir(folder)
    try:
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            signal.signal(signal.SIGABRT, signal.SIG_DFL)
            os.abort()
        status = os.waitpid(pid, 0)[1]
        if os.listdir(folder):
            return {"fact": "a crash left a file with the process's memory"}
        if not os.WIFSIGNALED(status):
            return {"signature": "it did not crash"}
        return {"signature": "LIMIT" if hard == 0 else "no file, and no limit that forbids one"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
attempt("crash", crash)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Core files allowed, as large as a file may be. Raises `NotMeasuredError` where the host takes them all."""
        del site
        pattern = self.pattern.read_text("utf-8").strip()
        if pattern.startswith(("|", "/", "@")):
            raise NotMeasuredError("this host's kernel.core_pattern takes core files away from where a process crashed")
        return _raised(fence, {"core_bytes": fence.walls.caps.file_bytes}, self.own_limit)


class LogFloodProbe(LimitProbe):
    """
    The first process's own output, which an engine keeps as a log on the host's disk. What comes back in the program's
    output in place of going there is held by the cap on outputs.
    """

    name = "log-flood"
    threat = "the seat fills the host's disk through the engine's log, or writes what reads like the engine's words"
    holds = frozenset({Finding.ABSENT, Finding.DENIED})
    guarantee, cap = "log", "file_bytes"
    MARK: ClassVar[str] = "proctor-log-line"
    body = """
for fd in (1, 2):
    def flood():
        out = os.open("/proc/1/fd/%d" % fd, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            os.write(out, (args["mark"] + "\\n").encode() * 200)
        finally:
            os.close(out)
        return {"fact": "it could be written to the first process's output"}
    attempt("/proc/1/fd/%d" % fd, flood)
"""

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """The line that is written."""
        del fence, site
        return {"mark": self.MARK}

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The first process run as the seat's own user."""
        del site
        return walls_changed(fence, keeper_apart=False)

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Write there, and look whether what was written is the program's own output in truth."""
        import json

        from fences.classifier import tries_of

        argv = ["python3", "-I", "-S", "-c", program(self.body), json.dumps(self.arguments(fence, site))]
        result = await workspace.exec(argv, timeout_s=PATIENCE_S)
        tries = tries_of(result)
        own = self.MARK.encode() in result.stdout + result.stderr
        if own and not fence.walls.keeper_apart:
            raise NotMeasuredError("this backend has no first process with a log of its own")
        if isinstance(tries, str):
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
        return weigh(_own_output(tries) if own else tries, canary=None, denied=self.denied)


def _own_output(tries: Sequence[Try]) -> list[Try]:
    """The same tries, where what was written came back as the program's own output: then there was no log."""
    return [item if item.fact is None else Try(what=item.what, signature="NOTHING") for item in tries]
