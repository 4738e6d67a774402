"""
Our `evalplus` referee, in sealed rooms, against EvalPlus 0.3.1: the same samples, the same workers, the same run.

    python3.11 -m venv ep && ep/bin/pip install evalplus==0.3.1
    export HUMANEVAL_OVERRIDE_PATH=... MBPP_OVERRIDE_PATH=...
    python bench/evalplus.py --evalplus ep/bin/python [--quick] [--backend bubblewrap --image host] [--json FILE]

For each workload both judge one after the other, all plus inputs being hidden, a tier up to its first violation; what
each computes once per task is there already. CPU and memory are those of all processes of each side, from control
groups, which takes root.
The floor is what the same calls, up to the first that is not accepted, take in one plain process.

Every sample on which the two differ is printed with its reason, which was tried out, see `evalplus_differences.py`.
Ends with status 1 when a difference has no reason, when the two tables of special rules differ, or, in a whole run,
when a target is missed. `--quick` judges a part of the tasks, and no target by the clock.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

if __name__ == "__main__":  # this file's own name would hide the package `evalplus`
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench.evalplus_differences import Explainer
from bench.evalplus_floor import Floor, measure_floor
from bench.evalplus_meter import end_at_sigterm
from bench.evalplus_ours import OurRun, Ours, run_ours
from bench.evalplus_peer import Peer
from bench.evalplus_report import Row, show_differences, show_rows, show_single, targets
from bench.evalplus_workloads import Benchmark, Sample, loops, mixes, mutant_samples, references
from harness import environment
from referees.evalplus_compare import rule_for

OPTIONS = {"hidden_cap": "all", "prelude": False}
WORKLOADS = {"references": references, "mix": mixes, "mutants": mutant_samples, "loops": loops}
LOOPED = 40
QUICK = {"humaneval": 16, "mbpp": 20}
SLOW = ("HumanEval/15", "HumanEval/83", "HumanEval/130", "HumanEval/139", "Mbpp/255", "Mbpp/599", "Mbpp/630")
"""Tasks that a quick run leaves out."""


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evalplus", required=True, metavar="PYTHON", help="an interpreter that has evalplus 0.3.1")
    parser.add_argument("--backend", default="bubblewrap", help="a registered workspace backend (default bubblewrap)")
    parser.add_argument("--image", help="the rooms' image; by default host for bubblewrap, else proctor-seat")
    parser.add_argument("--workers", type=int, default=2, help="candidates judged at a time, by each side (default 2)")
    parser.add_argument("--benchmark", action="append", choices=sorted(QUICK), help="default: both")
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS), help="default: all")
    parser.add_argument(
        "--public-tier",
        default="to-first-violation",
        choices=("to-first-violation", "full"),
        help="as EvalPlus without --test-details (the default), or with a reading of each public test",
    )
    parser.add_argument("--quick", action="store_true", help="a part of the tasks; ends within four minutes")
    parser.add_argument("--cache", type=Path, help="where EvalPlus keeps its ground truth (1 GB)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured there")
    options = parser.parse_args()
    options.image = options.image or ("host" if options.backend == "bubblewrap" else "proctor-seat")
    options.cache = options.cache or environment.state_home() / "bench" / "evalplus"
    return options


def benchmarks(names: list[str] | None) -> dict[str, tuple[Benchmark, Path]]:
    """The data sets by name, and their files."""
    found = {}
    for name in names or QUICK:
        path = environment.evalplus_override(name)
        if path is None or not path.is_file():
            sys.exit(f"{name.upper()}_OVERRIDE_PATH must name a .jsonl or .jsonl.gz file of the benchmark, not {path}")
        found[name] = (Benchmark.read(name, path), path)
    return found


class Comparison:
    """One run of the bench, and what it has found so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.peer = Peer(python=options.evalplus, cache=options.cache)
        self.ours = Ours(
            backend=options.backend, image=options.image, workers=options.workers,
            options={**OPTIONS, "public_tier": options.public_tier},
        )  # fmt: skip
        self.rows: list[Row] = []
        self.single: OurRun | None = None

    def run(self, whole: Benchmark, path: Path) -> None:
        """All workloads of one data set."""
        name, options = whole.name, self.options
        benchmark = whole.part(QUICK[name], without=SLOW) if options.quick else whole
        self._warm(benchmark, path)
        chosen = [workload for workload in WORKLOADS if workload in (options.workload or WORKLOADS)]
        made = {workload: WORKLOADS[workload](benchmark) for workload in chosen if workload != "loops"}
        rows = [self._row(workload, benchmark, path, samples) for workload, samples in made.items()]
        if "loops" in chosen and name == "humaneval":
            part = whole.part(QUICK[name] if options.quick else LOOPED, without=SLOW)
            self._warm(part, path)
            rows.append(self._row("loops", part, path, loops(part)))
        self.rows += rows

    def _warm(self, benchmark: Benchmark, path: Path) -> None:
        """Have both sides compute what they compute once for each task."""
        print(f"{benchmark.name}: {len(benchmark.records)} tasks, computing what is expected", file=sys.stderr)
        self.peer.warm(benchmark)
        run_ours([Sample(task_id=task, kind="broken", solution="(") for task in benchmark.records], path, self.ours)

    def _row(self, workload: str, benchmark: Benchmark, path: Path, samples: list[Sample]) -> Row:
        print(f"{benchmark.name} {workload}: {len(samples)} samples", file=sys.stderr)
        ours = run_ours(samples, path, self.ours)
        # Right after it: a machine that others use as well is not as fast an hour later.
        floor = None if workload == "loops" else self._floor(benchmark, samples, ours)
        theirs = self.peer.evaluate(benchmark, samples, self.options.workers)
        explainer = Explainer(benchmark=benchmark, data=path, peer=self.peer, ours=self.ours)
        differences = [
            explainer.explain(sample, mine, row["reading"], yours)
            for sample, mine, row, yours in zip(samples, ours.outcomes(), ours.verdicts, theirs.outcomes, strict=True)
            if mine != yours
        ]
        took = f"EvalPlus {theirs.run.wall_s:.1f} s, CPU {theirs.run.cpu_s:.1f} s"
        took += f"; ours {ours.run.wall_s:.1f} s, CPU {ours.cpu_s:.1f} s; {len(differences)} verdicts differ"
        print(f"{benchmark.name} {workload}: {took}", file=sys.stderr)
        return Row(
            benchmark=benchmark.name, workload=workload, samples=samples, ours=ours, theirs=theirs,
            differences=differences, floor=floor,
        )  # fmt: skip

    def _floor(self, benchmark: Benchmark, samples: list[Sample], ours: OurRun) -> Floor:
        """The floor of all samples, shared out by what they took in our run."""
        weights = dict.fromkeys(benchmark.records, 0.0)
        for sample, verdict in zip(samples, ours.verdicts, strict=True):
            weights[sample.task_id] += verdict["cpu_s"] or 0.0
        floors = measure_floor(benchmark, samples, ours=self.ours, weights=weights)
        return sum((floors[one.task_id, one.solution] for one in samples), Floor())

    def one(self, whole: Benchmark, path: Path) -> None:
        """A single sample in a fresh process and a fresh room, five times; kept is the middle one."""
        sample = references(whole)[:1]
        runs = sorted((run_ours(sample, path, self.ours) for _ in range(5)), key=lambda run: run.first_verdict_s)
        self.single = runs[2]

    def rules(self, benchmark: Benchmark) -> list[str]:
        """The tasks whose special rule is not the one that EvalPlus's own code has."""
        theirs = self.peer.ask(benchmark, {"ask": "rules"})
        mine = {task: rule_for(task, record["entry_point"]) for task, record in benchmark.records.items()}
        wrong = [f"{task}: {mine[task]}, EvalPlus {theirs[task]}" for task in mine if mine[task] != theirs[task]]
        print(f"{benchmark.name}: special rules of {len(mine)} tasks compared with EvalPlus's, {len(wrong)} differ")
        return wrong


def main() -> int:
    """Measure, print, and judge."""
    options = arguments()
    comparison = Comparison(options)
    version = comparison.peer.check()
    print(f"evalplus 0.3.1 on Python {version}; ours on {options.backend}, image {options.image}")
    wrong: list[str] = []
    for benchmark, path in benchmarks(options.benchmark).values():
        wrong += comparison.rules(benchmark)
        if benchmark.name == "humaneval":
            comparison.one(benchmark, path)
        comparison.run(benchmark, path)
    show_rows(comparison.rows)
    show_single(comparison.single)
    unexplained = show_differences(comparison.rows)
    missed = targets(comparison.rows, comparison.single, by_the_clock=not options.quick)
    for line in wrong + missed:
        print(line)
    if options.json:
        told = {"rows": [row.as_json() for row in comparison.rows], "missed": missed, "rules": wrong}
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    return int(bool(wrong or missed or unexplained))


if __name__ == "__main__":
    end_at_sigterm()
    sys.exit(main())
