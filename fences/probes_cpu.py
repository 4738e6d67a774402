"""The probe of CPU time: measured, since a limit that an engine accepted is not yet one that is carried out."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import anyio
import anyio.to_thread

from fences.classifier import Try, weigh
from fences.probes_resources import LimitProbe
from fences.programs import run_program
from fences.weakenings import NotMeasuredError, walls_changed
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site

__all__ = ["CpuHogProbe", "Measured", "cores", "read_measured"]

_TRIES = 3
_SLACK = 1.15
"""What a limiter gives beyond the cap in a window as short as ours: it counts in periods of a tenth of a second."""
_NEAR = 0.75
"""How near to the cap what was used must be for the workspace's own counter to count: it tells of another cap too."""
_IDLE_CORES = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """
    One measurement: CPU seconds that the busy processes got in each second, how many cores the host left idle
    meanwhile, and whether the workspace's own counter says that they were held back (None where it has none).
    """

    used: float
    idle: float
    throttled: bool | None

    def judged(self, cap: float, beyond: float) -> Try | None:
        """
        What this says of a limit of `cap` cores, or None if it says nothing: the machine gave less than the cap because
        others had it. With a core idle that busy processes would have taken, it was the limit that held them.
        """
        if self.used > beyond:
            return Try(what="busy processes", fact="more CPU time than the policy allows was used")
        counted = self.throttled is True and self.used >= cap * _NEAR
        if self.used <= cap * _SLACK and (counted or self.idle >= _IDLE_CORES):
            return Try(what="busy processes", signature="LIMIT")
        return None


class CpuHogProbe(LimitProbe):
    """
    Busy processes, one more than the policy allows cores, and the CPU time that they get in a second.

    It needs a machine that has more cores than the policy allows, and time to spare on them; without that it is "not
    measured". Others would disturb it: it is taken when nothing else is.
    """

    name = "cpu-hog"
    threat = "the seat takes the CPU time of other cells, and so decides how they end"
    guarantee, cap = "cpu", "cpus"
    quiet: ClassVar[bool] = True
    body = """
import time
WARM, SPAN = 0.15, 0.6
def counter():
    for path in ("/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu.stat"):
        try:
            with open(path) as lines:
                return int(dict(line.split() for line in lines)["nr_throttled"])
        except (OSError, KeyError, ValueError):
            pass
def burn(out):
    def spin(seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
    spin(WARM)
    start, began = time.process_time(), time.monotonic()
    spin(SPAN)
    os.write(out, ("%f\\n" % ((time.process_time() - start) / (time.monotonic() - began))).encode())
    os._exit(0)
def hog():
    down, up = os.pipe()
    before = counter()
    children = []
    for _ in range(args["processes"]):
        pid = os.fork()
        if pid == 0:
            burn(up)
        children.append(pid)
    os.close(up)
    for pid in children:
        os.waitpid(pid, 0)
    shares = [float(line) for line in os.read(down, 65536).split()]
    if len(shares) != len(children):
        return {"signature": "a busy process was lost"}
    throttled = None if before is None else counter() > before
    return json.dumps({"used": sum(shares), "throttled": throttled}).encode()
attempt("busy processes", hog)
"""

    def arguments(self, fence: Fence, site: Site) -> dict[str, Any]:
        """How many processes: enough to use more than the policy allows."""
        del fence
        return {"processes": int(site.caps.cpus) + 1}

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """As many cores as this host has, four times as many at most."""
        del site
        return walls_changed(fence, caps=_more_cores(fence))

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Measure until it says something, three times at most. Raises `NotMeasuredError` when it never does."""
        cap, beyond = site.caps.cpus, _beyond(site.caps.cpus, cores())
        for _ in range(_TRIES):
            found = await self.measure(workspace, fence, site)
            if isinstance(found, Attempt):
                return found
            said = found.judged(cap, beyond)
            # A control has a cap too: on a busy machine its counter says nothing of the policy's.
            higher = fence.walls.caps.cpus > cap and found.idle < _IDLE_CORES
            if said is not None and (said.fact is not None or not higher):
                return weigh([said], canary=None, denied=self.denied)
        raise NotMeasuredError(
            "others used this machine, so that less CPU time was left than the policy allows: probe when it is quiet"
        )

    async def measure(self, workspace: Workspace, fence: Fence, site: Site) -> Measured | Attempt:
        """One measurement, with the host's own eye on what it left idle; or why there is none."""
        before = await anyio.to_thread.run_sync(_idle_seconds)
        start = anyio.current_time()
        tries = await run_program(workspace, self.body, self.arguments(fence, site))
        wall = anyio.current_time() - start
        idle = (await anyio.to_thread.run_sync(_idle_seconds) - before) / max(wall, 0.001)
        if isinstance(tries, str):
            return Attempt(finding=Finding.INCONCLUSIVE, evidence=tries)
        if tries[0].got is None:
            return weigh(tries, canary=None, denied=self.denied)
        return read_measured(tries[0].got, idle=idle)


def read_measured(report: bytes, *, idle: float) -> Measured | Attempt:
    """What the program measured, or an INCONCLUSIVE attempt for a report that is none."""
    try:
        said = json.loads(report)
        used, throttled = float(said["used"]), said["throttled"]
    except (ValueError, TypeError, KeyError) as error:
        why = f"the measurement can't be read: {type(error).__name__}"
        return Attempt(finding=Finding.INCONCLUSIVE, evidence=why)
    return Measured(used=used, idle=idle, throttled=throttled is True if throttled is not None else None)


def cores() -> int:
    """How many cores this host has."""
    return os.cpu_count() or 1


def _beyond(cap: float, available: int) -> float:
    """The CPU seconds a second from which on a cap was passed: a third more, or half way to what the control allows."""
    return min(cap * 1.3, cap + (min(available, 4 * cap) - cap) / 2)


def _more_cores(fence: Fence) -> Any:
    from dataclasses import replace

    caps = fence.walls.caps
    most = min(cores(), 4 * caps.cpus)
    if most < caps.cpus * 1.3:
        raise NotMeasuredError("the policy allows as many cores as this host has: there is no more to be had")
    return replace(caps, cpus=float(most))


def _idle_seconds() -> float:
    """For how long this host's cores have been idle, all together."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")
