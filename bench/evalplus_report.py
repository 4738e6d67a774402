"""What the comparison with EvalPlus has found, as tables, and held against its targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.evalplus_differences import RULES, Difference
from bench.evalplus_floor import Floor
from bench.evalplus_ours import OurRun
from bench.evalplus_peer import PeerRun
from bench.evalplus_workloads import Sample

__all__ = ["Row", "show_differences", "show_rows", "show_single", "targets"]

CPU_OVER_FLOOR = 1.25
HELD_TO_THE_FLOOR = ("references", "mix")
"""Where calls are most of the work. A mutant ends at its first call, and one that never ends is run twice by rule."""
FIRST_VERDICT_S = 0.5
PEAK_BYTES = 1 << 30
NEEDS_MORE = "Mbpp/255"
"""The one task whose values alone take more."""
WALL_RATIO = {
    ("humaneval", "references"): 3.0,
    ("mbpp", "references"): 3.0,
    ("humaneval", "mix"): 5.0,
    ("mbpp", "mix"): 7.0,
    ("humaneval", "mutants"): 14.0,
    ("mbpp", "mutants"): 14.0,
    ("humaneval", "loops"): 1.0,
}
"""How many times as long EvalPlus must take, at least."""


@dataclass(kw_only=True)
class Row:
    """One workload of one data set, judged by both."""

    benchmark: str
    workload: str
    samples: Sequence[Sample]
    ours: OurRun
    theirs: PeerRun
    differences: Sequence[Difference]
    floor: Floor | None = None

    @property
    def peak(self) -> int:
        """Our most bytes at a time, but for the moments at which the one large task was judged."""
        pairs = zip(self.samples, self.ours.verdicts, strict=True)
        return self.ours.run.peak([told["between"] for sample, told in pairs if sample.task_id == NEEDS_MORE])

    @property
    def wall_ratio(self) -> float:
        """How many times as long EvalPlus took, as its user waits for it."""
        return self.theirs.run.wall_s / self.ours.run.wall_s

    @property
    def over_floor(self) -> float | None:
        """Our CPU time in units of the floor's."""
        return self.ours.cpu_s / self.floor.all_s if self.floor else None

    def as_json(self) -> dict[str, Any]:
        """Everything that was measured."""
        ours, theirs = self.ours, self.theirs
        return {
            "benchmark": self.benchmark,
            "workload": self.workload,
            "samples": len(self.samples),
            "ours": {
                "wall_s": ours.run.wall_s,
                "cpu_s": ours.cpu_s,
                "judge_cpu_s": ours.judge_cpu_s,
                "first_verdict_s": ours.first_verdict_s,
                "peak_bytes": ours.run.peak(),
                "peak_bytes_without_the_large_task": self.peak,
                "load": ours.run.load,
                "readings": Counter(row["reading"] for row in ours.verdicts),
            },
            "evalplus": {
                "wall_s": theirs.run.wall_s,
                "answer_s": theirs.answer_s,
                "cpu_s": theirs.run.cpu_s,
                "peak_bytes": theirs.run.peak(),
                "load": theirs.run.load,
                "passed": sum(outcome.all for outcome in theirs.outcomes),
            },
            "floor": self.floor and {"calls_s": self.floor.calls_s, "all_s": self.floor.all_s, "made": self.floor.made},
            "differences": [
                {"task": one.sample.task_id, "kind": one.sample.kind, "rule": one.rule, "evidence": one.evidence}
                for one in self.differences
            ],
        }


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    for line in lines:
        print(f"| {' | '.join(line)} |")
    print()


def show_rows(rows: Sequence[Row]) -> None:
    """Times, processor time and memory, as tables in Markdown."""
    print("\nWall time in seconds; in brackets when EvalPlus had written its results, before its idle thread ended\n")
    head = ("workload", "samples", "EvalPlus", "ours", "ratio", "load, EvalPlus", "load, ours")
    _table(
        head,
        (
            (
                f"{row.benchmark} {row.workload}",
                f"{len(row.samples)}",
                f"{row.theirs.run.wall_s:.1f} ({row.theirs.answer_s:.1f})",
                f"{row.ours.run.wall_s:.1f}",
                f"{row.wall_ratio:.1f} ({row.theirs.answer_s / row.ours.run.wall_s:.1f})",
                f"{row.theirs.run.load[0]:.1f} to {row.theirs.run.load[1]:.1f}",
                f"{row.ours.run.load[0]:.1f} to {row.ours.run.load[1]:.1f}",
            )
            for row in rows
        ),
    )
    print("CPU time in seconds and memory in MB; the floor in brackets is that of the calls alone\n")
    shares = ("floor", "EvalPlus", "ours", "of it judge", "ours / floor", "EvalPlus / ours")
    _table(("workload", *shares, "MB EvalPlus", "MB ours"), map(_usage, rows))


def _usage(row: Row) -> Sequence[str]:
    floor = row.floor
    return (
        f"{row.benchmark} {row.workload}",
        f"{floor.all_s:.1f} ({floor.calls_s:.1f})" if floor else "",
        f"{row.theirs.run.cpu_s:.1f}" + (f" ({row.theirs.run.cpu_s / floor.all_s:.1f} x)" if floor else ""),
        f"{row.ours.cpu_s:.1f}",
        f"{row.ours.judge_cpu_s:.1f}",
        f"{row.over_floor:.2f}" if row.over_floor else "",
        f"{row.theirs.run.cpu_s / row.ours.cpu_s:.1f}",
        f"{row.theirs.run.peak() / 1e6:.0f}",
        f"{row.peak / 1e6:.0f}" + (f" ({row.ours.run.peak() / 1e6:.0f})" if row.peak != row.ours.run.peak() else ""),
    )


def show_single(single: OurRun | None) -> None:
    """The time to one verdict."""
    if single is not None:
        print(
            f"a single sample: verdict {single.first_verdict_s:.3f} s after the tasks were read, room and interpreter "
            f"included; {single.run.wall_s:.2f} s from the start of the process to its end\n"
        )


def show_differences(rows: Sequence[Row]) -> int:
    """Each difference with its reason; how many have none."""
    found = [(row, one) for row in rows for one in row.differences]
    compared = sum(len(row.samples) for row in rows)
    print(f"{compared} verdicts compared, {len(found)} differ")
    for row, one in found:
        theirs = f"base {'pass' if one.theirs.base else 'fail'}, all {'pass' if one.theirs.all else 'fail'}"
        print(f"  {one.sample.task_id} ({row.workload}, {one.sample.kind}): ours {one.reading}, EvalPlus {theirs}")
        print(f"    {one.rule or 'UNEXPLAINED'}: {one.evidence}")
    for rule, count in Counter(one.rule for _, one in found if one.rule).items():
        print(f"  {count} x {rule}: {RULES[rule]}")
    return sum(one.rule is None for _, one in found)


def targets(rows: Sequence[Row], single: OurRun | None, *, by_the_clock: bool) -> list[str]:
    """The targets that were missed."""
    missed = []
    for row in rows:
        label = f"missed: {row.benchmark} {row.workload}"
        if row.peak > PEAK_BYTES:
            missed.append(f"{label}: {row.peak / 1e6:.0f} MB at its peak, target {PEAK_BYTES / 1e6:.0f}")
        if not by_the_clock:
            continue
        if row.workload in HELD_TO_THE_FLOOR and (row.over_floor or 0.0) > CPU_OVER_FLOOR:
            missed.append(f"{label}: {row.over_floor:.2f} times the floor's CPU time, target {CPU_OVER_FLOOR}")
        wanted = WALL_RATIO.get((row.benchmark, row.workload))
        if wanted is not None and row.wall_ratio < wanted:
            missed.append(f"{label}: {row.wall_ratio:.1f} times as fast, target {wanted:g}")
    if by_the_clock and single is not None and single.first_verdict_s > FIRST_VERDICT_S:
        missed.append(f"missed: a single sample took {single.first_verdict_s:.2f} s, target {FIRST_VERDICT_S}")
    return missed
