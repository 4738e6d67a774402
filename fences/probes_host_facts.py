"""Probes of what /proc, /sys and the kernel's names tell of the host, and of its settings."""

from __future__ import annotations

from types import MappingProxyType

from fences.programs import ProgramProbe
from fences.weakenings import UNMASKED, NotMeasuredError, walls_changed
from harness.views import Fence, Finding, Site

__all__ = ["ControlGroupProbe", "HostFactsProbe", "HostNameProbe", "KernelSettingsProbe"]


class HostFactsProbe(ProgramProbe):
    """
    Files of /proc and folders of /sys that tell of the host and that no program needs. One that is covered opens and
    holds no byte; one that holds some is served.
    """

    name = "host-facts"
    threat = "the seat learns which machine it is on and what else runs there, and times its neighbours by it"
    body = """
files = ("buddyinfo", "bus/pci/devices", "cmdline", "config.gz", "diskstats", "interrupts", "iomem", "ioports",
         "kallsyms", "kcore", "key-users", "keys", "kmsg", "kpagecount", "kpageflags", "loadavg", "modules",
         "pagetypeinfo", "partitions", "sched_debug", "schedstat", "slabinfo", "softirqs", "swaps", "timer_list",
         "vmallocinfo", "vmstat", "zoneinfo")
folders = ("/proc/acpi", "/proc/scsi", "/proc/driver", "/sys/block", "/sys/bus", "/sys/class",
           "/sys/firmware", "/sys/kernel", "/sys/module", "/sys/power")
def told(path):
    length = len(read(path))
    return {"fact": "it tells something"} if length else {"signature": "NOTHING"}
def listed(path):
    return {"fact": "it lists something"} if os.listdir(path) else {"signature": "NOTHING"}
for name in files:
    attempt("/proc/" + name, lambda: told("/proc/" + name))
for path in folders:
    attempt(path, lambda: listed(path))
"""

    down = UNMASKED


class KernelSettingsProbe(ProgramProbe):
    """
    Settings of the kernel and files of control groups, opened for writing and closed again: nothing is written. A core
    pattern or a release agent that a seat can write is a program of its own that runs as the host's root.
    """

    name = "kernel-settings"
    threat = "the seat changes a setting of the host's kernel, some of which name a program that root runs"
    body = """
import glob
places = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
          "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger",
          "/proc/sys/net/ipv4/ip_forward", "/sys/kernel/uevent_helper", "/sys/power/state",
          "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/cgroup.procs", "/dev/mem", "/dev/port"]
places += glob.glob("/sys/fs/cgroup/*/release_agent") + glob.glob("/sys/fs/cgroup/*/cgroup.procs")
def use(path):
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY))
    return {"fact": "it could be opened for writing"}
for path in places:
    attempt(path, lambda: use(path))
"""

    down = MappingProxyType({"masked": False, "run_as_root": True, "keep_capabilities": True})


class ControlGroupProbe(ProgramProbe):
    """The names of the program's own control groups: in a namespace of their own each is the root of its tree."""

    name = "control-groups"
    threat = "the seat reads the number of its container, and finds its way in the host's tree of limits"
    holds = frozenset({Finding.ABSENT})
    body = """
def look():
    with open("/proc/self/cgroup") as lines:
        others = sum(line.rstrip("\\n").split(":", 2)[2] != "/" for line in lines)
    return {"fact": "a place in the host's tree is named"} if others else {"signature": "NOTHING"}
attempt("/proc/self/cgroup", look)
"""

    down = MappingProxyType({"host_namespaces": ("cgroup",)})


class HostNameProbe(ProgramProbe):
    """The machine's name, which is often its owner's or its task's."""

    name = "host-name"
    threat = "the seat learns the machine's name, or gives it another"
    holds = frozenset({Finding.ABSENT})
    places = ("host-name",)
    body = """
def look():
    told = {os.uname().nodename, read("/proc/sys/kernel/hostname").decode().strip(), socket.gethostname()}
    return {"fact": "it is the host's"} if args["host-name"] in told else {"signature": "NOTHING"}
attempt("host name", look)
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own name."""
        if "host-name" not in site.places:
            raise NotMeasuredError("this host has no name")
        return walls_changed(fence, host_namespaces=("uts",))
