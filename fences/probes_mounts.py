"""Probes of what is mounted and which devices are there: whatever came by a way that no other probe knows of."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from fences.bodies import MOUNTS, WALK
from fences.programs import ProgramProbe
from fences.user_namespace import OutsideProbe
from fences.weakenings import NotMeasuredError, mounted, with_capability
from harness.views import Fence, Finding, Site
from harness.walls import GATEWAY_FOLDER, GATEWAY_SOCKET

__all__ = ["DeviceNodesProbe", "DevicesProbe", "MountFlagsProbe", "MountInfoProbe", "MountsProbe"]


class MountsProbe(ProgramProbe):
    """
    Every mount of the workspace against the list of those that it is made of: by its place, its kind of file system,
    and whether it shows a whole one or a part of one. Anything else is something of the host's.
    """

    name = "mounts"
    threat = "something of the host's is mounted in a place that no other probe knows to look at"
    holds = frozenset({Finding.ABSENT})
    body = (
        MOUNTS
        + """
image = {"/", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"}
files = {"/etc/alternatives", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd", "/etc/group",
         "/sbin/docker-init", "/usr/sbin/docker-init"}
nodes = {"/null", "/zero", "/full", "/random", "/urandom", "/tty", "/console", "/ptmx"}
def holds_only(place, names):
    try:
        return set(os.listdir(place)) <= set(names)
    except PermissionError:
        return True  # what can't be listed tells nothing; what is in it is called by its name elsewhere
def own_image():
    # An image that is put together folder by folder: all from the one place that /usr is from, which is not the host's.
    parts = [item["part"] for item in mounts() if item["place"] == "/usr" and item["part"].endswith("/usr")]
    return parts[-1][:-len("/usr")] if parts else ""
base = own_image()
def belongs(place, part, kind, read_only):
    if place == "/workspace":
        return kind in ("tmpfs", "ext4", "xfs", "btrfs", "overlay", "zfs")
    if place in ("/tmp", "/dev/shm"):
        return kind == "tmpfs" and part == "/"
    if args["gateway"] and place == args["gateway"]["folder"]:
        return read_only and holds_only(place, [args["gateway"]["socket"]])
    if place in image or place in files or base and part == base + place:
        return read_only
    if place == "/run":
        return kind == "tmpfs" and part == "/" and read_only and holds_only(place, ["gateway"])
    if inside(place, "/proc") or inside(place, "/sys"):
        if kind == "tmpfs" and part == "/" and place != "/sys/fs/cgroup":
            return not os.listdir(place)  # an empty folder that covers what was there
        return kind in ("proc", "sysfs", "cgroup", "cgroup2") or part == "/null" or place == "/sys/fs/cgroup"
    if inside(place, "/dev"):
        return place in ("/dev", "/dev/pts", "/dev/mqueue") or part in nodes
    return False
def check():
    for item in mounts():
        place, kind, read_only = item["place"], item["kind"], item["read_only"]
        if not belongs(place, item["part"], kind, "ro" in item["options"]):
            tries.append({"what": place, "fact": kind + (" read-only" if read_only else " writable")})
    return {"fact": "more than belongs here"} if tries else {"signature": "NOTHING"}
attempt("mounts", check)
"""
    )

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A folder of the host shown in the workspace."""
        return mounted(fence, site.places["sealed-path"])

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """The gateway's folder and what is in it, where the policy has one."""
        del site
        own = {"folder": GATEWAY_FOLDER, "socket": GATEWAY_SOCKET}
        return {"gateway": own if fence.walls.network == "gateway" else None}


class MountInfoProbe(ProgramProbe):
    """The kernel's list of mounts, which says where on the host each came from: it must name no folder of ours."""

    name = "mount-sources"
    threat = "the list of mounts tells the seat the harness's paths, and with them the run, the arm or the task"
    holds = frozenset({Finding.ABSENT})
    places = ("mark",)
    body = """
def look():
    mark = args["mark"].encode()
    for path in ("/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountstats"):
        try:
            with open(path, "rb") as told:
                if mark in told.read():
                    return {"fact": "a folder of the harness's is named"}
        except FileNotFoundError:
            continue
    return {"signature": "NOTHING"}
attempt("list of mounts", look)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A folder of the harness's, shown under a name that says nothing of it."""
        return mounted(fence, site.places["sealed-path"], target="/tmp/shown")  # noqa: S108 - in a workspace


class MountFlagsProbe(OutsideProbe):
    """
    The flags of every mount that can be written to: without `nosuid` a program in it may change the user, without
    `nodev` a file in it may be a device.
    """

    name = "mount-flags"
    threat = "the seat makes a file that runs as another user, or that is a device of the host's"
    holds = frozenset({Finding.ABSENT})
    core = (
        MOUNTS
        + """
def check():
    lacking = 0
    for item in mounts():
        free = {"nosuid", "nodev"} - set(item["options"])
        kernels = any(inside(item["place"], folder) for folder in ("/dev", "/proc", "/sys"))
        if item["read_only"] or not free or kernels and free == {"nodev"}:
            continue
        tries.append({"what": item["place"], "fact": "writable without " + " ".join(sorted(free))})
        lacking += 1
    return {"fact": "mounts lack flags"} if lacking else {"signature": "NOTHING"}
attempt("flags", check)
"""
    )

    down = MappingProxyType({"read_only_root": False})


class DevicesProbe(ProgramProbe):
    """Device nodes that are there: a workspace has a handful that every program needs, and its own terminals."""

    name = "devices"
    threat = "a device of the host's is in the workspace: a disk, memory, the kernel's log, a virtual machine's door"
    holds = frozenset({Finding.ABSENT})
    body = (
        MOUNTS
        + WALK
        + """
# null, zero, full, random, urandom, tty, console and ptmx
known = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 1), (5, 2)}
def scan():
    found = 0
    for path, info in entries():
        number = (os.major(info.st_rdev), os.minor(info.st_rdev))
        character = stat.S_ISCHR(info.st_mode)
        terminal = character and 136 <= number[0] <= 143
        if (character or stat.S_ISBLK(info.st_mode)) and not terminal and not (character and number in known):
            tries.append({"what": path, "fact": "device %d:%d" % number})
            found += 1
            if found == 5:
                break
    return {"fact": "devices are there"} if found else {"signature": "NOTHING"}
attempt("devices", scan)
"""
    )

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A device of the host's shown in the workspace."""
        if "device-path" not in site.places:
            raise NotMeasuredError("this host has none of the devices that a control could show")
        return mounted(fence, site.places["device-path"], target="/tmp/device")  # noqa: S108 - in a workspace


class DeviceNodesProbe(OutsideProbe):
    """Device nodes made with `mknod`, in every folder that the seat may write to: the null device, and a disk's."""

    name = "device-nodes"
    threat = "the seat makes itself a device: the host's disk, or its memory"
    holds = frozenset({Finding.DENIED})
    core = """
import stat
def make(folder, kind, number):
    path = folder + "/.node-" + os.urandom(8).hex()
    os.mknod(path, kind | 0o600, os.makedev(*number))
    os.unlink(path)
    return {"fact": "a device node could be made"}
for folder in ("/workspace", "/tmp", "/dev/shm"):
    attempt(folder + " null", lambda: make(folder, stat.S_IFCHR, (1, 3)))
    attempt(folder + " disk", lambda: make(folder, stat.S_IFBLK, (8, 0)))
"""

    down = with_capability("MKNOD")
