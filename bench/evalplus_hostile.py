"""
The hostile candidates of the `evalplus` referee, shown to EvalPlus 0.3.1's own evaluator as a control, and to ours.

    python bench/evalplus_hostile.py --evalplus ep/bin/python [--only WORD] [--json FILE]

The candidates are those of tests/live/hostile. They are real attacks, and EvalPlus has no walls: each is judged by an
`evalplus.evaluate` of its own, in a sandbox of namespaces without network whose processes, memory, time and files are
bounded, and which is thrown away after. Only the 20 s pause of EvalPlus's watching thread is left out; nothing else of
it is changed. What is seen: what it says of base and plus tests, whether it ends, what outlives it, and whether the
ground truth that it will believe next time was altered.

Ends with status 1 when ours accepts a hostile candidate, or a reading of ours is not the one that the list has.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # a neighbour of this file would hide the package `evalplus`
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.evalplus_meter import Watched, end_at_sigterm
from bench.evalplus_ours import Ours, run_ours
from bench.evalplus_peer import Peer, scratch
from bench.evalplus_workloads import Benchmark, Sample
from tests.live.hostile.evalplus_candidates import CANDIDATES, CONTROLS, TASKS

PATIENCE_S = 100
"""EvalPlus gives each tier of these tasks at most seven seconds."""
OPTIONS = {"memory_bytes": 256 << 20, "min_time_s": 0.5}
"""Of ours, as in the test of the same list: its readings are for these limits."""
MOST_PIDS, MOST_BYTES = 400, 6 << 30
_KEEPER = Path(__file__).with_name("evalplus_keeper.py")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one candidate did to EvalPlus. `outlived` counts its processes that were alive after the evaluator."""

    base: str | None
    plus: str | None
    seconds: float
    ended: str
    outlived: int
    altered: bool

    @property
    def effect(self) -> str:
        """In a few words, the worst first."""
        said = f"{self.base}/{self.plus}" if self.base else ""
        words = ["WRONG PASS"] if self.base == self.plus == "pass" else []
        words += [] if said else [self.ended]
        words += [f"{self.outlived} processes left"] if self.outlived else []
        words += ["ground truth altered"] if self.altered else []
        return "; ".join([*words, *([said] if said and said != "pass/pass" else [])])


def sandbox(python: str, folder: Path) -> list[str]:
    """The words before a command: everything read-only, homes and /tmp hidden, no network, `folder` writable."""
    ask = "import sys; print(sys.prefix); print(sys.base_prefix)"
    prefixes = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True, cwd="/").stdout.split()
    words = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--die-with-parent"]
    words += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    for hidden in ("/tmp", "/root", "/home", "/run", "/var/lib"):  # noqa: S108 - it is hidden, not used
        words += ["--tmpfs", hidden]
    for prefix in dict.fromkeys(prefixes):
        words += ["--ro-bind", prefix, prefix]
    words += ["--bind", str(folder), str(folder), "--chdir", str(folder), "--clearenv"]
    for name, value in (("PATH", "/usr/bin:/bin"), ("HOME", str(folder)), ("XDG_CACHE_HOME", str(folder / "cache"))):
        words += ["--setenv", name, value]
    return [*words, "--setenv", "TMPDIR", str(folder)]


def shown(peer: Peer, task: Mapping[str, Any], source: str) -> Seen:
    """What EvalPlus makes of one candidate."""
    with scratch() as folder:
        (folder / "data.jsonl").write_text(json.dumps(task) + "\n")
        sample = {"task_id": task["task_id"], "solution": source}
        (folder / "samples.jsonl").write_text(json.dumps(sample) + "\n")
        argv = [*sandbox(peer.python, folder), "--setenv", "HUMANEVAL_OVERRIDE_PATH", str(folder / "data.jsonl")]
        log = folder / "log"
        run = Watched(most_pids=MOST_PIDS, most_bytes=MOST_BYTES).run(
            [*argv, peer.python, "-c", _KEEPER.read_text()], cwd=folder, log=log, timeout_s=PATIENCE_S
        )
        results, kept = folder / "samples_eval_results.json", folder / "kept.json"
        row = json.loads(results.read_text())["eval"][task["task_id"]][0] if results.exists() else {}
        told = json.loads(kept.read_text()) if kept.exists() else {}
    status = told.get("status")
    ended = "hangs" if run.timed_out else "all killed" if status is None else f"evaluator ended with {status}"
    return Seen(
        base=row.get("base_status"),
        plus=row.get("plus_status"),
        seconds=run.wall_s,
        ended=ended,
        outlived=told.get("outlived", 0),
        altered=told.get("altered", False),
    )


def ours_of(cases: Mapping[str, tuple[str, str, str]], ours: Ours) -> list[str]:
    """Our readings."""
    benchmark = Benchmark(name="humaneval", records=TASKS)
    samples = [Sample(task_id=task, kind=name, solution=source) for name, (task, source, _) in cases.items()]
    with scratch() as folder:
        data = folder / "hostile.jsonl"
        data.write_text(benchmark.text())
        return [row["reading"] for row in run_ours(samples, data, ours).verdicts]


def show(cases: Mapping[str, tuple[str, str, str]], mine: list[str], seen: list[Seen]) -> list[str]:
    """The table; what is wrong with our column."""
    print("| candidate | ours | EvalPlus 0.3.1 | s |\n|---|---|---|---:|")
    wrong = []
    for (name, (_, _, expected)), reading, theirs in zip(cases.items(), mine, seen, strict=True):
        effect = theirs.effect if name in CANDIDATES else theirs.effect.replace("WRONG PASS", "pass/pass")
        print(f"| {name} | {reading} | {effect} | {theirs.seconds:.0f} |")
        if reading != expected:
            wrong.append(f"{name}: ours {reading}, expected {expected}")
    hostile = [one for name, one in zip(cases, seen, strict=True) if name in CANDIDATES]
    counts = Counter(
        word
        for one in hostile
        for word, holds in (
            ("accepted", "WRONG PASS" in one.effect),
            ("ended the evaluator or hung it", one.base is None),
            ("left processes behind", one.outlived > 0),
            ("altered the ground truth", one.altered),
        )
        if holds
    )
    print(f"\nEvalPlus 0.3.1, of {len(hostile)} hostile candidates: {dict(counts)}")
    accepted = sum(reading == "PASS" for name, reading in zip(cases, mine, strict=True) if name in CANDIDATES)
    print(f"ours: {accepted} accepted, {len(wrong)} in another class than the list has")
    return wrong


def main() -> int:
    """Show all to both, print, judge our own column."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evalplus", required=True, metavar="PYTHON", help="an interpreter that has evalplus 0.3.1")
    parser.add_argument("--backend", default="bubblewrap", help="where ours has its rooms (default bubblewrap)")
    parser.add_argument("--image", help="the rooms' image; by default host for bubblewrap, else proctor-seat")
    parser.add_argument("--only", default="", help="only candidates whose name holds this word")
    parser.add_argument("--at-once", type=int, default=2, help="how many EvalPlus is shown at a time (default 2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write both columns there")
    options = parser.parse_args()
    if shutil.which("bwrap") is None:
        parser.error("no program 'bwrap' here: these candidates must not be run without a sandbox around EvalPlus")
    peer = Peer(python=options.evalplus, cache=Path())
    peer.check()
    image = options.image or ("host" if options.backend == "bubblewrap" else "proctor-seat")
    cases = {name: case for name, case in {**CANDIDATES, **CONTROLS}.items() if options.only in name}
    mine = ours_of(cases, Ours(backend=options.backend, image=image, options=OPTIONS))
    with ThreadPoolExecutor(options.at_once) as threads:
        seen = list(threads.map(lambda case: shown(peer, TASKS[case[0]], case[1]), cases.values()))
    wrong = show(cases, mine, seen)
    print("\n".join(wrong))
    if options.json:
        rows = {name: {"ours": mine[at], "evalplus": asdict(seen[at])} for at, name in enumerate(cases)}
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    end_at_sigterm()
    sys.exit(main())
