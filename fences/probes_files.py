"""Probes of the file system's walls: what of the host, of the sealed half or of another cell can be read or written."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import anyio

from fences.classifier import weigh
from fences.programs import ProgramProbe, run_program
from fences.weakenings import WRITABLE_ROOT, mounted
from fences.witnesses import vouch
from harness.clock import fresh_token
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site

__all__ = [
    "EngineSocketProbe",
    "HostFileProbe",
    "HostWriteProbe",
    "MountsProbe",
    "OtherCellProbe",
    "RootWriteProbe",
    "SealedHalfProbe",
    "SymlinkProbe",
]


class _DecoyProbe(ProgramProbe):
    """A probe of a decoy that stands on the host's file system; the host confirms that it is there."""

    shown: ClassVar[str]
    """The name in `Site.places` of the path that the control shows in the workspace."""

    async def witness(self, site: Site) -> str | None:
        """The decoy must answer the host with its canary."""
        assert self.canary is not None  # each of these probes names one
        return await vouch(site, self.places[:1], self.canary)

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's path shown in the workspace."""
        return mounted(fence, site.places[self.shown])


class HostFileProbe(_DecoyProbe):
    """A file of the host, by its own path and through every root that /proc offers."""

    name = "host-file"
    threat = "the seat reads the host's files: keys, histories, other people's work"
    places = ("host-file",)
    canary = "host-file"
    shown = "host-file-path"
    body = """
path = args["host-file"].split(" ", 1)[1]
for what, root in (("path", ""), ("/proc/1/root", "/proc/1/root"), ("/proc/self/root", "/proc/self/root")):
    attempt(what, lambda: read(root + path))
"""


class SealedHalfProbe(_DecoyProbe):
    """A decoy task's sealed tests and solution: by their path, and by a search of the whole file system for a name."""

    name = "sealed-half"
    threat = "the seat reads the tests or the reference that judge it"
    places = ("sealed-file", "sealed-solution")
    canary = "sealed-file"
    shown = "sealed-path"
    body = """
tests = args["sealed-file"].split(" ", 1)[1]
attempt("tests", lambda: read(tests))
attempt("solution", lambda: read(args["sealed-solution"].split(" ", 1)[1]))
def search(name):
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders[:] = [item for item in folders if item not in ("proc", "sys")]
        if name in names:
            return read(os.path.join(folder, name))
    return {"signature": "NOTHING"}
attempt("search", lambda: search(os.path.basename(tests)))
"""


class OtherCellProbe(_DecoyProbe):
    """
    The files of a second workspace that is open at the same time. It wrote them itself, to its own folders and to one
    that the host shows to it alone; the control shows that one to both.
    """

    name = "other-cell"
    threat = "two seats see each other's work, or leave each other messages"
    places = ("neighbour-file", "neighbour-name")
    canary = "neighbour-file"
    shown = "neighbour-path"
    body = """
name = args["neighbour-name"]
for folder in ("/workspace", "/tmp", "/dev/shm", "/var/tmp"):
    attempt(folder, lambda: read(folder + "/" + name))
attempt("shared folder", lambda: read(args["neighbour-file"].split(" ", 1)[1]))
"""


class EngineSocketProbe(_DecoyProbe):
    """
    The container engine's socket, and a decoy of one that answers with a canary. A socket that is in the workspace and
    turns the seat down is not held: one group or one user away, it is the host's root.
    """

    name = "engine-socket"
    threat = "the seat asks the container engine for a container with the host's disk in it"
    holds = frozenset({Finding.ABSENT})
    places = ("engine-socket",)
    canary = "engine-socket"
    shown = "engine-socket-path"
    body = """
def ping(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(path)
        client.sendall(b"GET /_ping HTTP/1.0\\r\\n\\r\\n")
        answer = client.recv(4096)
    if answer.startswith(b"HTTP/") and b"Api-Version" in answer:
        return {"fact": "an engine answered"}
    return answer or {"signature": "EMPTY"}
attempt("decoy", lambda: ping(args["engine-socket"].split(" ", 1)[1]))
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"):
    attempt(path, lambda: ping(path))
"""


class SymlinkProbe(_DecoyProbe):
    """Links from the seat's own folder to a file of the host: absolute, relative, through a folder, and magic ones."""

    name = "symlink-out"
    threat = "a link in the workspace leads whoever follows it to the host's files"
    places = ("host-file",)
    canary = "host-file"
    shown = "host-file-path"
    body = """
import shutil, tempfile
path = args["host-file"].split(" ", 1)[1]
home = tempfile.mkdtemp(dir="/workspace")
def through(target, rest=""):
    link = os.path.join(home, "link")
    os.symlink(target, link)
    try:
        return read(link + rest)
    finally:
        os.unlink(link)
attempt("absolute", lambda: through(path))
attempt("relative", lambda: through("../" * 20 + path.lstrip("/")))
attempt("folder", lambda: through(os.path.dirname(path), "/" + os.path.basename(path)))
attempt("magic", lambda: through("/proc/self/root", path))
shutil.rmtree(home)
"""


class MountsProbe(ProgramProbe):
    """
    Every mount of the workspace against the list of those that it is made of: by its place, its kind of file system,
    and whether it shows a whole one or a part of one. Anything else is something of the host's.
    """

    name = "mounts"
    threat = "something of the host's is mounted in a place that no other probe knows to look at"
    holds = frozenset({Finding.ABSENT})
    body = """
image = {"/", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}
files = {"/etc/alternatives", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd", "/etc/group",
         "/sbin/docker-init", "/usr/sbin/docker-init"}
nodes = {"/null", "/zero", "/full", "/random", "/urandom", "/tty", "/console", "/ptmx"}
def inside(root):
    return place == root or place.startswith(root + "/")
def belongs():
    if place == "/workspace":
        return True
    if place in ("/tmp", "/dev/shm"):
        return kind == "tmpfs" and part == "/"
    if place in image or place in files:
        return read_only
    if inside("/proc") or inside("/sys"):
        if kind == "tmpfs" and part == "/" and place != "/sys/fs/cgroup":
            return not os.listdir(place)  # an empty folder that covers what was there
        return kind in ("proc", "sysfs", "cgroup", "cgroup2") or part == "/null" or place == "/sys/fs/cgroup"
    if inside("/dev"):
        return place in ("/dev", "/dev/pts", "/dev/mqueue") or part in nodes
    return False
with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
    for line in lines:
        left, _, right = line.partition(" - ")
        part, place, options = left.split(" ")[3:6]
        kind, read_only = right.split(" ")[0], "ro" in options.split(",")
        if not belongs():
            tries.append({"what": place, "fact": kind + (" read-only" if read_only else " writable")})
if not tries:
    tries.append({"what": "mounts", "signature": "NOTHING"})
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A folder of the host shown in the workspace."""
        return mounted(fence, site.places["sealed-path"])


class RootWriteProbe(ProgramProbe):
    """Files made outside the seat's folders: in well-known places, and wherever a walk finds a folder to write in."""

    name = "root-write"
    threat = "the seat changes the programs that the file tool, the referee or the next seat will run"
    holds = frozenset({Finding.DENIED})
    body = """
def make(folder):
    path = os.path.join(folder, ".proctor-probe")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
    return {"fact": "a file could be made"}
fixed = ("/", "/etc", "/usr/bin", "/usr/local/bin", "/usr/lib", "/var", "/var/tmp", "/opt", "/srv", "/root", "/home")
for folder in fixed:
    attempt(folder, lambda: make(folder))
for folder, folders, names in os.walk("/"):
    if folder == "/":
        folders[:] = [item for item in folders if item not in ("proc", "sys", "workspace", "tmp")]
    if folder == "/dev":
        folders[:] = [item for item in folders if item not in ("shm", "pts", "mqueue")]
    if folder not in fixed and os.access(folder, os.W_OK):
        attempt(folder, lambda: make(folder))
    if sum("fact" in item for item in tries) > 3:
        break
"""

    down = WRITABLE_ROOT


class HostWriteProbe(ProgramProbe):
    """A file written to a folder of the host. The evidence is the host's own: the nonce landed there or it did not."""

    name = "host-write"
    threat = "the seat writes to the host: a cron job, a shell's start file, another run's record"
    places = ("outside-path",)
    body = """
def write():
    with open(os.path.join(args["outside-path"], args["file"]), "w") as out:
        out.write(args["nonce"])
    return {"signature": "WROTE"}
attempt("host folder", write)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A folder of the host, writable."""
        return mounted(fence, site.places["outside-path"], read_only=False)

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Write, then look on the host's side."""
        del fence
        folder, name, nonce = site.places["outside-path"], f"landed-{fresh_token(4)}", fresh_token()
        tries = await run_program(workspace, self.body, {"outside-path": folder, "file": name, "nonce": nonce})
        landed = anyio.Path(folder) / name
        if await landed.exists() and await landed.read_text("utf-8", "replace") == nonce:
            await anyio.to_thread.run_sync(Path(landed).unlink)
            return Attempt(finding=Finding.SERVED, evidence="host folder: the nonce landed on the host")
        if isinstance(tries, str):
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
        return weigh(tries, canary=None)
