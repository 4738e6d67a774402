"""Probes of what a program in the workspace sees of other processes, and of what it was started with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from fences.bodies import LIBC
from fences.classifier import ABSENT, DENIED
from fences.policy import SECRET_LIKE
from fences.programs import ProgramProbe
from fences.weakenings import HOST_PIDS, KEEPER_NOT_APART, NotMeasuredError, mounted, walls_changed
from fences.witnesses import vouch
from harness.views import Fence, Finding, Site

__all__ = [
    "DescriptorsProbe",
    "HostEnvironmentProbe",
    "HostProcessesProbe",
    "KeeperProbe",
    "SharedMemoryProbe",
    "TerminalProbe",
]


class HostEnvironmentProbe(ProgramProbe):
    """
    A decoy variable that stands in the harness's own environment while probes run, where keys stand. It is looked for
    in the program's own environment and in that of every process it can see: a sandbox's first process often keeps what
    it was started with.

    A variable whose name sounds like a secret is a breach too. GPG_KEY alone is let be: widely used images of Python
    keep the public fingerprint of a release manager there.
    """

    name = "host-environment"
    threat = "the harness's environment, and the keys in it, reach the seat"
    places = ("variable",)
    canary = "variable"
    body = """
import re
name = args["variable"].encode() + b"="
def look(path):
    for item in read(path).split(b"\\0"):
        if item.startswith(name):
            return item
    return {"signature": "NOTHING"}
for variable in sorted(os.environ):
    if variable != "GPG_KEY" and re.search(SECRET_LIKE, variable, re.IGNORECASE):
        tries.append({"what": variable, "fact": "a variable that sounds like a secret"})
own = os.environb.get(name[:-1])
attempt("own", lambda: own if own is not None else {"signature": "NOTHING"})
for pid in ["1"] + sorted(item for item in os.listdir("/proc") if item.isdigit() and item != "1"):
    what = "/proc/1/environ" if pid == "1" else "others"
    attempt(what, lambda: look("/proc/" + pid + "/environ"))
""".replace("SECRET_LIKE", repr(SECRET_LIKE))

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The variable handed over, as a careless pass-through would."""
        handed = {**fence.walls.environment, site.places["variable"]: site.canaries["variable"]}
        return walls_changed(fence, environment=handed)


class HostProcessesProbe(ProgramProbe):
    """A process of the host with a marked command line, looked for among all that the workspace sees."""

    name = "host-processes"
    threat = "the seat sees the host's processes and their arguments, and may signal them"
    holds = frozenset({Finding.ABSENT})
    places = ("marker",)
    canary = "process"
    body = """
mark = (args["marker"] + "=").encode()
def look():
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                line = read("/proc/" + pid + "/cmdline")
            except OSError:
                continue
            if mark in line:
                return line
    return {"signature": "NOTHING"}
attempt("command lines", look)
"""

    down = HOST_PIDS

    async def witness(self, site: Site) -> str | None:
        """The process must be alive."""
        return await vouch(site, ("process",), "process")


class KeeperProbe(ProgramProbe):
    """
    The workspace's first process: a signal that it would heed, its open descriptors, its environment. Another user's
    turns all of them down; one that shares the seat's user must ignore signals and hold nothing that is not the seat's.
    """

    name = "keeper"
    threat = "the seat ends its own workspace from inside, or writes into the streams of the process that keeps it"
    denied = DENIED | {"IGNORED"}
    body = """
def status():
    with open("/proc/1/status") as lines:
        return dict(line.rstrip("\\n").split(":\\t", 1) for line in lines if ":\\t" in line)
def send():
    os.kill(1, 0)
    told = status()
    heeded = (int(told["SigCgt"], 16) | int(told["SigBlk"], 16)) & 1 << 14
    with open("/proc/1/syscall") as call:
        waiting = call.read().split(" ")[0] in ("128", "137")  # rt_sigtimedwait, on x86_64 and on aarch64
    return {"fact": "it heeds a signal of the seat's"} if heeded or waiting else {"signature": "IGNORED"}
def use(name):
    fd = os.open("/proc/1/fd/" + name, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY)
    os.close(fd)
    return {"fact": "a descriptor of its could be opened"}
def descriptors():
    own = {os.readlink("/proc/self/fd/%d" % number) for number in (0, 1, 2)} | {"/dev/null"}
    others = [name for name in os.listdir("/proc/1/fd") if os.readlink("/proc/1/fd/" + name) not in own]
    for name in others:
        attempt("descriptor " + name, lambda: use(name))
    return {"signature": "NOTHING"}
def variables():
    names = {item.partition(b"=")[0] for item in read("/proc/1/environ").split(b"\\0") if item}
    extra = names - {b"HOME", b"HOSTNAME", b"LANG", b"LC_ALL", b"PATH", b"PWD", b"TERM"}
    return {"fact": "its environment has more than a path"} if extra else {"signature": "NOTHING"}
attempt("signal", send)
attempt("descriptors", descriptors)
attempt("environment", variables)
"""

    down = KEEPER_NOT_APART


class SharedMemoryProbe(ProgramProbe):
    """Shared memory of the host: a segment by its key, and a file in the folder where others have theirs."""

    name = "shared-memory"
    threat = "the seat reads what programs of the host or of another cell share, or leaves messages there"
    places = ("segment", "shared-file")
    canary = "shared-memory"
    body = (
        LIBC
        + """
libc.shmat.restype = ctypes.c_ssize_t
def segment(key):
    place = libc.shmat(check(libc.shmget(key, 0, 0)), None, 0o10000)
    if place == -1:
        check(-1)
    try:
        return ctypes.string_at(place, 64)
    finally:
        libc.shmdt(ctypes.c_void_p(place))
if args["segment"]:
    attempt("segment", lambda: segment(int(args["segment"].split(" ")[1])))
if args["shared-file"]:
    attempt("/dev/shm", lambda: read(args["shared-file"].split(" ", 1)[1]))
"""
    )

    async def witness(self, site: Site) -> str | None:
        """Each of the two that this host has."""
        return await vouch(site, self.places, "shared-memory")

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own namespace of shared memory."""
        if not any(name in site.places for name in self.places):
            raise NotMeasuredError("this host has no shared memory to show")
        return walls_changed(fence, host_namespaces=("ipc",))


class _LaunchedProbe(ProgramProbe):
    """
    A probe of what a program is started with. The control starts it as a careless harness would, by a `careless`
    launcher in the workspace; the words that follow are what it starts.
    """

    careless: ClassVar[str]

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The decoys' folder shown, and programs started carelessly."""
        return replace(mounted(fence, site.places["home"]), lifted=(*fence.lifted, "clean-start"))

    def launcher(self, fence: Fence, site: Site) -> Sequence[str]:
        """As every program is started, or as none should be."""
        if "clean-start" not in fence.lifted:
            return ()
        return ("python3", "-I", "-S", "-c", self.careless, site.places["home"])


class DescriptorsProbe(_LaunchedProbe):
    """Descriptors that are open when a program starts: its three streams, and nothing that leads anywhere else."""

    name = "descriptors"
    threat = "a descriptor that the harness left open leads the seat past every mount and path"
    holds = frozenset({Finding.ABSENT})
    canary = "host-file"
    body = """
import stat
def through(number):
    fd = os.open("host-file", os.O_RDONLY, dir_fd=number)
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)
def look(number):
    mode = os.fstat(number).st_mode
    if stat.S_ISDIR(mode):
        attempt("through the folder", lambda: through(number))
    null = stat.S_ISCHR(mode) and os.readlink("/proc/self/fd/%d" % number) == "/dev/null"
    if number < 3 and (stat.S_ISFIFO(mode) or null):
        return {"signature": "NOTHING"}
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISREG, "a file"), (stat.S_ISSOCK, "a socket"),
             (stat.S_ISFIFO, "a pipe"))
    return {"fact": "it is open: " + next((kind for is_one, kind in kinds if is_one(mode)), "something else")}
def open_ones():
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the one by which the folder was listed
        yield int(name)
for number in sorted(open_ones()):
    attempt("descriptor %d" % number, lambda: look(number))
"""
    careless = """
import os, sys
os.dup2(os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY), 9, inheritable=True)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class TerminalProbe(_LaunchedProbe):
    """A terminal that the program was started on: whoever has it can push letters into what is typed there next."""

    name = "terminal"
    threat = "the seat types commands into the terminal that the harness was started from"
    holds = frozenset({Finding.ABSENT})
    absent = ABSENT | {"ENOTTY"}
    body = """
def controlling():
    os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    return {"fact": "it has a controlling terminal"}
def stream(number):
    return {"fact": "it is a terminal"} if os.isatty(number) else {"signature": "ENOTTY"}
attempt("/dev/tty", controlling)
for number in (0, 1, 2):
    attempt("descriptor %d" % number, lambda: stream(number))
"""
    careless = """
import os, pty, sys
os._exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[2:])))
"""
