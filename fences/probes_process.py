"""Probes of what a program in the workspace is and sees: privileges, processes, the host's environment."""

from __future__ import annotations

from fences.classifier import ABSENT
from fences.policy import SECRET_LIKE
from fences.programs import ProgramProbe
from fences.weakenings import HOST_PIDS, NEW_PRIVILEGES, UNCONFINED, walls_changed
from harness.views import Fence, Finding, Site

__all__ = [
    "CapabilitiesProbe",
    "HostEnvironmentProbe",
    "HostProcessesProbe",
    "MountCallProbe",
    "PrivilegesProbe",
    "UserNamespaceProbe",
]


_LIBC = """
libc = ctypes.CDLL(None, use_errno=True)
def check(status):
    if status != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
"""


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


class CapabilitiesProbe(ProgramProbe):
    """The five capability sets of a program that the seat runs, and what a root user id would give."""

    name = "capabilities"
    threat = "a capability that was kept takes down a wall from inside"
    holds = frozenset({Finding.DENIED})
    absent = ABSENT | {"EINVAL"}  # in a user namespace without a root, there is no such user to become
    body = """
with open("/proc/self/status") as lines:
    status = dict(line.rstrip("\\n").split(":\\t", 1) for line in lines if ":\\t" in line)
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    none = int(status[name], 16) == 0
    tries.append({"what": name, "signature": "EPERM"} if none else {"what": name, "fact": status[name]})
def become_root():
    os.setresuid(0, 0, 0)
    return {"fact": "the program could become root"}
attempt("setresuid(0)", become_root)
"""

    down = UNCONFINED


class PrivilegesProbe(ProgramProbe):
    """Whether a set-user-id program could raise the seat: the kernel's own flag that forbids it for good."""

    name = "new-privileges"
    threat = "a set-user-id program in the image makes the seat root"
    holds = frozenset({Finding.DENIED})
    body = """
def flag():
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith("NoNewPrivs:"):
                locked = line.split()[1] == "1"
                return {"signature": "EPERM"} if locked else {"fact": "NoNewPrivs is 0"}
    return {"signature": "no NoNewPrivs line"}
attempt("NoNewPrivs", flag)
"""

    down = NEW_PRIVILEGES


class MountCallProbe(ProgramProbe):
    """The mount system call on a folder of the seat's own, as it is and from inside a user namespace of its own."""

    name = "mount-call"
    threat = "the seat mounts over the programs or files that others will use"
    holds = frozenset({Finding.DENIED})
    body = (
        _LIBC
        + """
import tempfile
target = tempfile.mkdtemp(dir="/tmp").encode()
def mount():
    check(libc.mount(b"none", target, b"tmpfs", 0, None))
    libc.umount2(target, 2)
    return {"fact": "a file system could be mounted"}
def inside():
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            check(libc.unshare(0x10020000))
            check(libc.mount(b"none", target, b"tmpfs", 0, None))
            os.write(writer, b"mounted")
        except OSError as error:
            os.write(writer, sign(error).encode())
        finally:
            os._exit(0)
    os.wait()
    said = os.read(reader, 100).decode()
    return {"fact": "a file system could be mounted"} if said == "mounted" else {"signature": said}
attempt("mount", mount)
attempt("mount in a user namespace", inside)
"""
    )
    down = UNCONFINED


class UserNamespaceProbe(ProgramProbe):
    """A user namespace of the seat's own, in which it would hold every capability over what is in it."""

    name = "user-namespace"
    threat = "the seat becomes root of a namespace of its own and reaches kernel code that is closed to others"
    holds = frozenset({Finding.DENIED})
    body = (
        _LIBC
        + """
def unshare():
    check(libc.unshare(0x10000000))
    return {"fact": "a user namespace could be made"}
attempt("unshare", unshare)
"""
    )

    down = UNCONFINED
