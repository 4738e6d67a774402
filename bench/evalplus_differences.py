"""
Why a verdict of ours is not EvalPlus's: by which written rule, and on what evidence. Nothing is excused by its name:
each reason is one that EvalPlus, or our referee, was asked about again with one thing changed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.evalplus_ours import Ours, run_ours
from bench.evalplus_peer import Outcome, Peer
from bench.evalplus_workloads import Benchmark, Sample
from referees.evalplus_compare import accepts, rule_for

__all__ = ["RULES", "Difference", "Explainer"]

RULES: Mapping[str, str] = {
    "alone": "EvalPlus says what we say when it judges the sample alone: load, or what its worker had judged before",
    "uncounted": "EvalPlus counts no test of this task, so that nothing passes (its oracle for `find_zero`)",
    "their-memory": "EvalPlus says what we say without its memory limit, which its own expected values use up",
    "their-clock": "EvalPlus says what we say with a minute for each call: its limits are by the wall clock",
    "nested-floats": "a float inside a dict or a mixed list is within the tolerance; EvalPlus compares such exactly",
    "sticky-tolerance": "a test fails in EvalPlus when judged by itself, and passes after one that expected a float",
    "our-memory": "the candidate needs more than 2 GiB, and passes with us too when it gets as much as in EvalPlus",
    "our-clock": "the candidate is over its limit of CPU time, and passes with us too when it gets ten times that",
    "unsteady": "EvalPlus contradicts itself on this sample from run to run: hash order, or random numbers",
}
"""By name, what a difference can be due to. The pages on the referee say why ours is right."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A sample on which the two differ. `rule` is a name in `RULES`, or None when nothing explains it."""

    sample: Sample
    ours: Outcome
    reading: str
    theirs: Outcome
    rule: str | None
    evidence: str


@dataclass(frozen=True, kw_only=True)
class Explainer:
    """Finds the reasons, with the means of both sides."""

    benchmark: Benchmark
    data: Path
    peer: Peer
    ours: Ours

    def explain(self, sample: Sample, ours: Outcome, reading: str, theirs: Outcome) -> Difference:
        """The first reason that holds, in the order of `RULES`."""
        stricter = (theirs.base, theirs.all) > (ours.base, ours.all)
        steps: list[Callable[[Sample, Outcome], tuple[str, str] | None]] = [self._alone]
        steps += [self._sticky, self._own_limits] if stricter else [self._uncounted, self._their_limits, self._nested]
        found = None
        for step in [*steps, self._unsteady]:
            found = step(sample, ours)
            if found is not None:
                break
        rule, evidence = found or (None, "no rule explains it")
        return Difference(sample=sample, ours=ours, reading=reading, theirs=theirs, rule=rule, evidence=evidence)

    def _ask(self, sample: Sample, min_time: float = 1.0, **changes: str) -> Mapping[str, Any] | None:
        question = {"ask": "sample", "task_id": sample.task_id, "solution": sample.solution, "min_time": min_time}
        answer: Mapping[str, Any] | None = self.peer.ask(self.benchmark, question, **changes)
        return answer

    def _alone(self, sample: Sample, ours: Outcome) -> tuple[str, str] | None:
        said = self._ask(sample)
        return ("alone", f"alone: {_text(said)}") if _outcome(said) == ours else None

    def _uncounted(self, sample: Sample, _ours: Outcome) -> tuple[str, str] | None:
        record = self.benchmark.records[sample.task_id]
        said = self._ask(sample)
        if rule_for(sample.task_id, record["entry_point"]) != "root" or said is None:
            return None
        # A test that fails is noted, and so is one that passes: with none of either, the oracle noted nothing.
        silent = all(tier["status"] == "fail" and not tier["noted"] for tier in said.values())
        return ("uncounted", f"no test noted, none failed: {_text(said)}") if silent else None

    def _their_limits(self, sample: Sample, ours: Outcome) -> tuple[str, str] | None:
        said = self._ask(sample, EVALPLUS_MAX_MEMORY_BYTES="-1")
        if _outcome(said) == ours:
            return "their-memory", f"with EVALPLUS_MAX_MEMORY_BYTES=-1: {_text(said)}"
        said = self._ask(sample, min_time=60.0)
        return ("their-clock", f"with 60 s for each call: {_text(said)}") if _outcome(said) == ours else None

    def _nested(self, sample: Sample, _ours: Outcome) -> tuple[str, str] | None:
        """Both values of the test that EvalPlus fails, compared by our written rule."""
        record = self.benchmark.records[sample.task_id]
        said = self._ask(sample) or {}
        tier = next((name for name, told in said.items() if told["status"] == "fail" and told["noted"]), None)
        if tier is None:
            return None
        at = len(said[tier]["noted"]) - 1
        question = {"ask": "values", "task_id": sample.task_id, "solution": sample.solution, "tier": tier, "at": at}
        values = self.peer.ask(self.benchmark, question)
        if values is None or values["floats"]:
            return None
        try:
            expected, got = (ast.literal_eval(values[side]) for side in ("expected", "got"))
        except ValueError:
            return None
        near = accepts("equal", record["entry_point"], [], expected, got, atol=record["atol"])
        return ("nested-floats", f"{tier} test {at}: {got!r:.80} for {expected!r:.80}") if near else None

    def _sticky(self, sample: Sample, _ours: Outcome) -> tuple[str, str] | None:
        question = {"ask": "alone", "task_id": sample.task_id, "solution": sample.solution}
        found = self.peer.ask(self.benchmark, question) or {}
        failed = {tier: at for tier, at in found.items() if at is not None}
        return ("sticky-tolerance", f"fail by themselves: {failed}") if failed else None

    def _own_limits(self, sample: Sample, _ours: Outcome) -> tuple[str, str] | None:
        for rule, changed in (("our-memory", {"memory_bytes": 4 << 30}), ("our-clock", {"min_time_s": 10.0})):
            ours = replace(self.ours, options={**self.ours.options, **changed}, room_bytes=6 << 30)
            [row] = run_ours([sample], self.data, ours).verdicts
            if row["reading"] == "PASS":
                return rule, f"PASS with {changed}"
        return None

    def _unsteady(self, sample: Sample, ours: Outcome) -> tuple[str, str] | None:
        said = [_outcome(self._ask(sample, PYTHONHASHSEED=str(seed))) for seed in range(4)]
        return ("unsteady", f"with four hash seeds: {said}") if ours in said and len(set(said)) > 1 else None


def _outcome(said: Mapping[str, Any] | None) -> Outcome | None:
    if said is None:
        return None
    base = said["base"]["status"] == "pass"
    return Outcome(base=base, all=base and said["plus"]["status"] == "pass")


def _text(said: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{tier} {told['status']}" for tier, told in (said or {}).items())
