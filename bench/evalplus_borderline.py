"""
Are the verdicts on two hundred programs near a limit the same on an idle machine and with every core busy?

    python bench/evalplus_borderline.py [--backend bubblewrap --image host] [--kind memory] [--evalplus ep/bin/python]

The programs and how near they are: `evalplus_borders.py`. Two workers judge them in sealed rooms, first with nothing
else of ours running, then beside `--busy` endless loops for each core. Compared are class, tiers and the first call
that was not accepted; and the class with the one that is right by construction. With `--evalplus`, EvalPlus 0.3.1
judges the same programs both times as well, as a control. Ends with status 1 when a verdict of ours is another.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # a neighbour of this file would hide the package `evalplus`
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.evalplus_borders import BORDER, Border, borders
from bench.evalplus_meter import end_at_sigterm
from bench.evalplus_ours import Ours, run_ours
from bench.evalplus_peer import Peer, scratch
from bench.evalplus_workloads import Sample

_FIRST = re.compile(r"\bcall (\d+)\b")


@dataclass(frozen=True, slots=True)
class Said:
    """What of a verdict must not change: the class, the classes of the tiers, the first call not accepted."""

    reading: str
    tiers: tuple[tuple[str, str], ...]
    first: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Said:
        """Of a row that our run has written."""
        found = _FIRST.search(row["detail"])
        first = int(found[1]) if found and row["reading"] != "PASS" else None
        return cls(row["reading"], tuple(sorted(row["tiers"].items())), first)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Endless loops beside whatever runs inside."""
    program = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    started = [subprocess.Popen(program) for _ in range(loops)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def judged(samples: Sequence[Sample], ours: Ours, loops: int) -> list[Said]:
    """What ours says of `samples` beside so many loops."""
    with scratch() as folder, busy(loops) if loops else nullcontext():
        data = folder / "border.jsonl"
        data.write_text(BORDER.text())
        run = run_ours(samples, data, ours)
    print(f"  {loops} loops beside it: {run.run.wall_s:.0f} s, load {run.run.load[0]:.1f} to {run.run.load[1]:.1f}")
    return [Said.of(row) for row in run.verdicts]


def show(cases: Sequence[Border], idle: Sequence[Said], loaded: Sequence[Said]) -> int:
    """The table, and each verdict that is another; how many there are."""
    print("\n| kind | programs | within | beyond | right, idle | right, busy | same class and call |")
    print("|---|---:|---|---|---:|---:|---:|")
    for kind in dict.fromkeys(case.sample.kind for case in cases):
        rows = [row for row in zip(cases, idle, loaded, strict=True) if row[0].sample.kind == kind]
        counts = [
            sum(said.reading == case.reading and said.first == case.first for case, said in sides)
            for sides in ([(case, one) for case, one, _ in rows], [(case, other) for case, _, other in rows])
        ]
        parts = [sorted({case.part for case, *_ in rows if (case.reading == "PASS") is good}) for good in (True, False)]
        bands = " | ".join(f"{band[0]:g} to {band[-1]:g}" for band in parts)
        same = sum(one == other for _, one, other in rows)
        print(f"| {kind} | {len(rows)} | {bands} | {counts[0]} | {counts[1]} | {same} |")
    wrong = 0
    for case, one, other in zip(cases, idle, loaded, strict=True):
        if not one == other == Said(case.reading, one.tiers, case.first):
            wrong += 1
            print(f"  {case.sample.kind} {case.part:g}, call {case.call}: {case.reading}; idle {one}, busy {other}")
    return wrong


def control(samples: Sequence[Sample], peer: Peer, loops: int) -> None:
    """How many of EvalPlus's outcomes change under the same load."""
    peer.check()
    peer.warm(BORDER)
    idle = peer.evaluate(BORDER, samples, 2).outcomes
    with busy(loops):
        loaded = peer.evaluate(BORDER, samples, 2).outcomes
    changed = Counter(one.kind for one, a, b in zip(samples, idle, loaded, strict=True) if a != b)
    print(f"EvalPlus 0.3.1 as a control: {sum(changed.values())} of {len(samples)} outcomes change: {dict(changed)}")


def main() -> int:
    """Judge twice, print, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="bubblewrap", help="a registered workspace backend (default bubblewrap)")
    parser.add_argument("--image", help="the rooms' image; by default host for bubblewrap, else proctor-seat")
    parser.add_argument("--busy", type=int, default=1, help="endless loops for each core (default 1)")
    parser.add_argument("--kind", action="append", help="only this kind of limit; may be given again")
    parser.add_argument("--evalplus", metavar="PYTHON", help="an interpreter that has evalplus 0.3.1, as a control")
    parser.add_argument("--cache", type=Path, default=Path("build/evalplus"), help="where EvalPlus keeps its own")
    options = parser.parse_args()
    image = options.image or ("host" if options.backend == "bubblewrap" else "proctor-seat")
    ours, loops = Ours(backend=options.backend, image=image), options.busy * (os.cpu_count() or 1)
    cases = [case for case in borders() if case.sample.kind in (options.kind or case.sample.kind)]
    samples = [case.sample for case in cases]
    print(f"{len(cases)} programs near a limit, on {options.backend}")
    wrong = show(cases, judged(samples, ours, 0), judged(samples, ours, loops))
    if options.evalplus:
        control(samples, Peer(python=options.evalplus, cache=options.cache.absolute()), loops)
    print("verdicts are the same" if not wrong else f"{wrong} verdicts are not what they must be")
    return int(bool(wrong))


if __name__ == "__main__":
    end_at_sigterm()
    sys.exit(main())
