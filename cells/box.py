"""How busy the machine is while a cell is played: a measured time means little without it."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["BoxLoad", "box_load"]

_LOAD = Path("/proc/loadavg")
_MEMORY = Path("/proc/meminfo")


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxLoad:
    """
    The load average of one minute, the threads that run or wait for a CPU, the CPUs that this process may use, the
    bytes of memory that could be had, and how many cells of this run are under way. None where the machine says none.
    """

    load_1m: float | None
    runnable: int | None
    cpus: int
    free_memory_bytes: int | None
    cells: int

    def to_json(self) -> dict[str, Any]:
        """The load as JSON data, for the record."""
        return asdict(self)


def box_load(cells: int, *, load: Path = _LOAD, memory: Path = _MEMORY) -> BoxLoad:
    """The load now, with `cells` of this run under way. Source: proc(5)."""
    averages = re.match(r"([\d.]+) [\d.]+ [\d.]+ (\d+)/", _text(load))
    available = re.search(r"^MemAvailable:\s+(\d+) kB$", _text(memory), re.MULTILINE)
    return BoxLoad(
        load_1m=None if averages is None else float(averages[1]),
        runnable=None if averages is None else int(averages[2]),
        cpus=len(os.sched_getaffinity(0)),
        free_memory_bytes=None if available is None else int(available[1]) * 1024,
        cells=cells,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
