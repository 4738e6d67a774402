"""
Two hundred programs near a limit, on either side of it: never closer than a tenth, where either word would be fair.

=========  =====================================  ===============  ====================================
kind       limit                                  within           beyond
=========  =====================================  ===============  ====================================
cpu        1 s of CPU time for a call             0.3 to 0.9       1.1 to 3.0 times: TIMEOUT
blocked    2 s of waiting in a call               0.3 to 0.9       1.25 to 2 times: TIMEOUT
memory     2 GiB of address space                 0.5 to 0.9       1.1 to 2 times: MEMORY
recursion  Python's own limit of 1000 frames      0.5 to 0.9       1.1 to 3 times: FAIL
tolerance  1e-6 + 1e-7 of the value, or 1e-4      0.3 to 0.9       1.1 to 3 times: FAIL
=========  =====================================  ===============  ====================================

Memory is asked for and not written to: to write to two gigabytes takes processor time that grows with the load of the
machine, and comes near another limit.

The call that is near the limit is one of four public ones, or a hidden one; where it is public, a verdict names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.evalplus_workloads import Benchmark, Sample

__all__ = ["BORDER", "Border", "borders"]

_PUBLIC, _HIDDEN = (0, 1, 2, 3), (4, 5)
_CALLS = (*_PUBLIC, *_HIDDEN)
_GIB = 1 << 30
_Band = tuple[float, float, int]
"""From which part of a limit to which, in how many steps."""


def _record(number: int, body: str, atol: float) -> dict[str, object]:
    return {
        "task_id": f"Border/{number}",
        "prompt": f"def near{number}(x):\n",
        "entry_point": f"near{number}",
        "canonical_solution": body,
        "contract": "",
        "base_input": [[x] for x in _PUBLIC],
        "plus_input": [[x] for x in _HIDDEN],
        "atol": atol,
    }


BORDER = Benchmark(
    name="humaneval",
    records={
        "Border/0": _record(0, "    return x\n", 0),
        "Border/1": _record(1, "    return x * 10.0 + 0.5\n", 0),
        "Border/2": _record(2, "    return x * 10.0 + 0.5\n", 1e-4),
    },
)
"""The tasks, in EvalPlus's schema; the name is the one under which EvalPlus can be shown them too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Border:
    """A program, the part of its limit that it uses, the call it does so in, and the reading that is right."""

    sample: Sample
    part: float
    call: int
    reading: str

    @property
    def first(self) -> int | None:
        """The call that a verdict must name: the first that is not accepted, if it is a public one."""
        return None if self.reading == "PASS" or self.call in _HIDDEN else self.call


def borders() -> list[Border]:
    """All two hundred."""
    return [
        *_made("cpu", ("Border/0", _CPU), (0.3, 0.9, 40), (1.1, 3.0, 40), "TIMEOUT"),
        *_made("blocked", ("Border/0", _BLOCKED), (0.3, 0.9, 6), (1.25, 2.0, 6), "TIMEOUT"),
        *_made("memory", ("Border/0", _AT_ONCE), (0.5, 0.9, 12), (1.1, 2.0, 12), "MEMORY"),
        *_made("memory", ("Border/0", _BIT_BY_BIT), (0.5, 0.9, 12), (1.1, 2.0, 12), "MEMORY"),
        *_made("recursion", ("Border/0", _RECURSION), (0.5, 0.9, 15), (1.1, 3.0, 15), "FAIL"),
        *_made("tolerance", ("Border/1", _DEFAULT), (0.3, 0.9, 8), (1.1, 3.0, 7), "FAIL"),
        *_made("tolerance", ("Border/2", _DECLARED), (0.3, 0.9, 8), (1.1, 3.0, 7), "FAIL"),
    ]


_CPU = """import time
def near0(x):
    if x == {call}:
        end = time.process_time() + 1.0 * {part}
        while time.process_time() < end:
            pass
    return x
"""
_BLOCKED = """import time
def near0(x):
    if x == {call}:
        time.sleep(2.0 * {part})
    return x
"""
_AT_ONCE = f"""def near0(x):
    if x == {{call}}:
        bytes(int({2 * _GIB} * {{part}}))
    return x
"""
_BIT_BY_BIT = f"""def near0(x):
    if x == {{call}}:
        [bytes(int({2 * _GIB} * {{part}} / 32)) for _ in range(32)]
    return x
"""
_RECURSION = """def deeper(left):
    return 0 if left <= 0 else deeper(left - 1)
def near0(x):
    if x == {call}:
        deeper(int(1000 * {part}))
    return x
"""
_DEFAULT = """def near1(x):
    right = x * 10.0 + 0.5
    return right + ({part} * (1e-6 + 1e-7 * right) if x == {call} else 0.0)
"""
_DECLARED = """def near2(x):
    right = x * 10.0 + 0.5
    return right - ({part} * (1e-4 + 1e-7 * right) if x == {call} else 0.0)
"""


def _made(kind: str, made_of: tuple[str, str], within: _Band, beyond: _Band, failing: str) -> Iterator[Border]:
    task, text = made_of
    for (low, high, count), reading in ((within, "PASS"), (beyond, failing)):
        for number in range(count):
            part = round(low + (high - low) * number / (count - 1), 4)
            call = _CALLS[number % len(_CALLS)]
            code = text.format(part=part, call=call)
            yield Border(sample=Sample(task_id=task, kind=kind, solution=code), part=part, call=call, reading=reading)
