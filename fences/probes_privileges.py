"""Probes of what a program in the workspace is and may become: users, capabilities, privileges, namespaces."""

from __future__ import annotations

from types import MappingProxyType

from fences.bodies import IN_CHILD, LIBC, MOUNTS
from fences.classifier import ABSENT
from fences.programs import ProgramProbe
from fences.weakenings import ANY_CALL, NEW_PRIVILEGES, ROOT, NotMeasuredError, mounted, walls_changed
from harness.views import Fence, Finding, Site

__all__ = [
    "CapabilitiesProbe",
    "MountCallProbe",
    "OwnUserProbe",
    "PrivilegesProbe",
    "SetUserIdProbe",
    "UserNamespaceProbe",
]


class OwnUserProbe(ProgramProbe):
    """
    The user and the groups of a program that the seat runs, and settings of the kernel that the host's root alone may
    read: a number can say one thing inside, and the kernel mean another.
    """

    name = "own-user"
    threat = "the seat runs as root, or as a user that is root outside"
    holds = frozenset({Finding.DENIED})
    body = """
def user():
    groups = {os.getgid(), os.getegid(), *os.getgroups()}
    if 0 in (os.getuid(), os.geteuid()):
        return {"fact": "it is root"}
    return {"fact": "it is in the group of root"} if 0 in groups else {"signature": "EPERM"}
def private(path):
    os.close(os.open(path, os.O_RDONLY))
    return {"fact": "a file for root alone could be opened"}
attempt("user", user)
for path in ("/proc/sys/kernel/cad_pid", "/proc/sys/kernel/usermodehelper/bset", "/proc/sys/vm/mmap_rnd_bits"):
    attempt(path, lambda: private(path))
"""

    down = ROOT


class CapabilitiesProbe(ProgramProbe):
    """The five capability sets of a program that the seat runs, and what a root user id would give."""

    name = "capabilities"
    threat = "a capability that was kept takes down a wall from inside"
    holds = frozenset({Finding.DENIED})
    absent = ABSENT | {"EINVAL"}  # in a user namespace without a root, there is no such user to become
    body = (
        IN_CHILD
        + """
with open("/proc/self/status") as lines:
    status = dict(line.rstrip("\\n").split(":\\t", 1) for line in lines if ":\\t" in line)
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    none = int(status[name], 16) == 0
    tries.append({"what": name, "signature": "EPERM"} if none else {"what": name, "fact": status[name]})
def become_root():
    os.setresuid(0, 0, 0)
    return {"fact": "the program could become root"}
attempt("setresuid(0)", lambda: in_child(become_root))
"""
    )

    down = MappingProxyType({"keep_capabilities": True})


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


class SetUserIdProbe(ProgramProbe):
    """
    Programs in the image that run as another user, each started for its version alone: what it ran as is read of it
    when it is over, before it is buried. The control shows one of the host's, since images are built without them.
    """

    name = "set-user-id"
    threat = "the image has a program that runs as root, and a mistake in it is the seat's"
    body = (
        MOUNTS
        + """
import signal, stat
FOLDERS = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/lib/openssh",
           "/usr/lib/dbus-1.0", "/usr/libexec")
def candidates():
    for folder in dict.fromkeys(map(os.path.realpath, FOLDERS)):
        if os.path.isdir(folder):
            with os.scandir(folder) as found:
                yield from (item.path for item in found)
    yield from (item["place"] for item in mounts())
def raises(path):
    try:
        info = os.lstat(path)
    except OSError:
        return False
    raised = info.st_mode & stat.S_ISUID and info.st_uid != os.getuid() or info.st_mode & stat.S_ISGID
    return stat.S_ISREG(info.st_mode) and bool(raised)
def start(path):
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            null = os.open("/dev/null", os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            os.execv(path, [path, "--version"])
        finally:
            os._exit(99)
    try:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        with open("/proc/%d/status" % child) as lines:
            users = [line.split()[1:] for line in lines if line.startswith(("Uid:", "Gid:"))]
    finally:
        os.waitpid(child, 0)
    own = [str(os.getuid()), str(os.getgid())]
    return {"signature": "EPERM"} if [ids[1] for ids in users] == own else {"fact": "it ran as another user"}
found = [path for path in candidates() if raises(path)]
for path in found[:5]:
    attempt(path, lambda: start(path))
if not found:
    tries.append({"what": "programs that run as another user", "signature": "NOTHING"})
"""
    )

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """Such a program of the host's, in a workspace where it works."""
        if "set-user-id" not in site.places:
            raise NotMeasuredError("this host has no program that runs as root whoever starts it")
        return mounted(walls_changed(fence, new_privileges=True), site.places["set-user-id"], target="/tmp/raising")  # noqa: S108 - in a workspace


class MountCallProbe(ProgramProbe):
    """The mount system call on a folder of the seat's own, as it is and from inside a user namespace of its own."""

    name = "mount-call"
    threat = "the seat mounts over the programs or files that others will use"
    holds = frozenset({Finding.DENIED})
    body = (
        LIBC
        + IN_CHILD
        + """
import tempfile
def mount(namespaces):
    target = tempfile.mkdtemp(dir="/tmp").encode()
    try:
        check(libc.unshare(namespaces))
        check(libc.mount(b"none", target, b"tmpfs", 0, None))
        libc.umount2(target, 2)
    finally:
        os.rmdir(target)
    return {"fact": "a file system could be mounted"}
attempt("mount", lambda: in_child(lambda: mount(0)))
attempt("mount in a namespace", lambda: in_child(lambda: mount(0x00020000)))
attempt("mount in a user namespace", lambda: in_child(lambda: mount(0x10020000)))
"""
    )
    down = ANY_CALL


class UserNamespaceProbe(ProgramProbe):
    """A user namespace of the seat's own, in which it would hold every capability over what is in it."""

    name = "user-namespace"
    threat = "the seat becomes root of a namespace of its own and reaches kernel code that is closed to others"
    holds = frozenset({Finding.DENIED})
    body = (
        LIBC
        + IN_CHILD
        + """
def unshare(kinds):
    check(libc.unshare(kinds))
    return {"fact": "a namespace could be made"}
for name, kinds in (("user", 0x10000000), ("network", 0x40000000), ("user and network", 0x50000000)):
    attempt(name, lambda: in_child(lambda: unshare(kinds)))
"""
    )

    down = ANY_CALL
