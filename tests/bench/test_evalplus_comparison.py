"""The parts of the comparison with EvalPlus that need neither it nor a room: reasons, targets, floor, words."""

from __future__ import annotations

import base64
import json
import marshal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from bench import evalplus_differences
from bench.evalplus_borderline import Said
from bench.evalplus_differences import RULES, Difference, Explainer
from bench.evalplus_floor import Floor, floor_program, shares
from bench.evalplus_hostile import Seen
from bench.evalplus_meter import Run, cpu_of, memory_of
from bench.evalplus_ours import OurRun, Ours
from bench.evalplus_peer import Outcome, Peer, PeerRun
from bench.evalplus_report import Row, show_differences, show_rows, show_single, targets
from bench.evalplus_workloads import Benchmark, Sample

PASSED, FAILED, BASE = Outcome(base=True, all=True), Outcome(base=False, all=False), Outcome(base=True, all=False)
SAMPLE = Sample(task_id="Own/0", kind="right", solution="def f(x): return x\n")


def tiers(base: str, plus: str, noted: list[bool] | None = None) -> dict:
    """What EvalPlus answers on a sample."""
    return {"base": {"status": base, "noted": noted or []}, "plus": {"status": plus, "noted": noted or []}}


class Answers:
    """EvalPlus as it would answer: by the question's `ask`, by what is changed, or always the same."""

    def __init__(self, usual: dict, **others) -> None:
        self.usual, self.others = usual, others

    def ask(self, benchmark, question, **changes):
        """The answer."""
        if question["ask"] in self.others:
            return self.others[question["ask"]]
        if changes:
            return self.others.get(next(iter(changes)), self.usual)
        return self.others.get("minute", self.usual) if question["min_time"] == 60.0 else self.usual


def reason(ours: Outcome, theirs: Outcome, answers: Answers, task: str = "Own/0", entry: str = "f") -> str | None:
    """The rule that is found."""
    benchmark = Benchmark(name="humaneval", records={task: {"entry_point": entry, "atol": 0}})
    explainer = Explainer(benchmark=benchmark, data=Path(), peer=answers, ours=Ours(backend="x", image="y"))
    sample = Sample(task_id=task, kind="right", solution="")
    return explainer.explain(sample, ours, "PASS", theirs).rule


FAIL = tiers("fail", "fail", [False])
FOUND = {
    "alone": Answers(tiers("pass", "pass")),
    "their-memory": Answers(FAIL, EVALPLUS_MAX_MEMORY_BYTES=tiers("pass", "pass")),
    "their-clock": Answers(FAIL, minute=tiers("pass", "pass")),
    "nested-floats": Answers(
        FAIL, values={"expected": "{'a': 0.3}", "got": "{'a': 0.30000000000000004}", "floats": False}
    ),
    None: Answers(FAIL, values={"expected": "{'a': 1}", "got": "{'a': 2}", "floats": False}),
}


@pytest.mark.parametrize("rule", FOUND)
def test_a_reason_is_what_was_tried_out(rule):
    """EvalPlus fails what we accept: the first change after which it says what we say is the reason; or there is none."""
    assert reason(PASSED, FAILED, FOUND[rule]) == rule


def test_a_float_that_evalplus_sees_is_no_reason():
    """There it applies the tolerance itself."""
    said = Answers(FAIL, values={"expected": "0.3", "got": "0.30000000000000004", "floats": True})
    assert reason(PASSED, FAILED, said) is None


def test_an_uncounted_task_is_known_by_its_silence():
    """No test noted, none failed, in the one task whose oracle does so; a noted failure is another matter."""
    silent, loud = Answers(tiers("fail", "fail")), Answers(FAIL, values=None)
    assert reason(PASSED, FAILED, silent, "HumanEval/32", "find_zero") == "uncounted"
    assert reason(PASSED, FAILED, loud, "HumanEval/32", "find_zero") is None
    assert reason(PASSED, FAILED, silent) is None


def test_a_sticky_tolerance_is_a_test_that_fails_by_itself():
    """EvalPlus accepts what we reject."""
    said = tiers("pass", "pass", [True])
    assert reason(BASE, PASSED, Answers(said, alone={"base": None, "plus": 3})) == "sticky-tolerance"


@pytest.mark.parametrize(("option", "rule"), [("memory_bytes", "our-memory"), ("min_time_s", "our-clock"), ("", None)])
def test_our_own_limits_are_reasons(monkeypatch, option, rule):
    """What passes with us as soon as one limit is as wide as theirs."""

    def run(samples, data, ours):
        verdicts = [{"reading": "PASS" if option in ours.options else "FAIL"}]
        return OurRun(run=RUN, cpu_s=0, judge_cpu_s=0, first_verdict_s=0, verdicts=verdicts)

    monkeypatch.setattr(evalplus_differences, "run_ours", run)
    said = Answers(tiers("pass", "pass", [True]), alone={"base": None, "plus": None})
    assert reason(BASE, PASSED, said) == rule


def test_what_contradicts_itself_is_unsteady():
    """By the hash seed, where no other reason holds."""

    class Wavering(Answers):
        def ask(self, benchmark, question, **changes):
            return tiers("pass", "pass") if changes.get("PYTHONHASHSEED") == "2" else super().ask(benchmark, question)

    assert reason(PASSED, FAILED, Wavering(FAIL, values=None)) == "unsteady"


RUN = Run(status=0, wall_s=2.0, cpu_s=3.0, memory=[(1.0, 10), (2.0, 3 << 30), (3.0, 20)], load=(0.1, 0.2))


def row(wall_s: float = 30.0, **changes) -> Row:
    """References of HumanEval+, of which one is the large task."""
    ours = OurRun(
        run=RUN,
        cpu_s=3.0,
        judge_cpu_s=1.0,
        first_verdict_s=0.2,
        verdicts=[{"reading": "PASS", "tiers": {"public": "PASS"}, "between": [1.5, 2.5]}],
    )
    theirs = PeerRun(
        run=Run(status=0, wall_s=wall_s, cpu_s=9.0, memory=[], load=(0, 0)), answer_s=10, outcomes=[PASSED]
    )
    kept = {"floor": Floor(calls_s=2.5, all_s=2.9, made=7), "differences": [], **changes}
    large = Sample(task_id="Mbpp/255", kind="right", solution="")
    return Row(benchmark="humaneval", workload="references", samples=[large], ours=ours, theirs=theirs, **kept)


def test_kept_targets_are_not_named(capsys):
    """The large task's own moments do not count as the peak."""
    rows = [row()]
    assert targets(rows, rows[0].ours, by_the_clock=True) == []
    assert (rows[0].peak, rows[0].ours.run.peak()) == (20, 3 << 30)
    show_rows(rows)
    show_single(rows[0].ours)
    said = capsys.readouterr().out
    assert "| humaneval references | 1 | 30.0 (10.0) | 2.0 | 15.0 (5.0) |" in said
    assert "| 1.03 | 3.0 |" in said
    assert json.dumps(rows[0].as_json())


def test_missed_targets_are_named():
    """Each by its figure; a part of the tasks is not held to the clock."""
    small = [Sample(task_id="Own/0", kind="right", solution="")]
    slow = row(wall_s=4.0, floor=Floor(all_s=1.0))
    slow.samples = small
    slow.ours = OurRun(run=RUN, cpu_s=3.0, judge_cpu_s=1.0, first_verdict_s=0.7, verdicts=slow.ours.verdicts)
    missed = targets([slow], slow.ours, by_the_clock=True)
    assert len(missed) == 4
    assert "3.00 times the floor's CPU time, target 1.25" in missed[1]
    assert "2.0 times as fast, target 3" in missed[2]
    assert len(targets([slow], slow.ours, by_the_clock=False)) == 1


def test_a_difference_without_a_reason_is_counted(capsys):
    """And one with a reason is not; both are told."""
    told = {"sample": SAMPLE, "ours": PASSED, "reading": "PASS", "theirs": FAILED, "evidence": "seen"}
    found = [Difference(rule="alone", **told), Difference(rule=None, **told)]
    assert show_differences([row(differences=found)]) == 1
    said = capsys.readouterr().out
    assert "UNEXPLAINED" in said
    assert RULES["alone"] in said


def floor_of(*programs: str) -> list:
    """The rows of the floor for programs of one task, run as in a room."""
    calls = [[[x] for x in (1, 2, 3)], [[4], [5]]]
    packed = [[base64.b64encode(marshal.dumps(args, 2)).decode() for args in tier] for tier in calls]
    reference = "def f(x): return x * 0.1\n"
    task = {"entry": "f", "rule": "equal", "atol": 0, "tiers": packed, "reference": reference, "programs": programs}
    done = subprocess.run(
        [sys.executable, "-c", floor_program()],
        input=json.dumps([task]) + "\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)[0]


def test_the_floor_makes_the_calls_up_to_the_first_that_is_not_accepted():
    """Reference: all; wrong at 2: two; wrong at 4: four; broken: none; floats are near enough; a loop ends."""
    right = "def f(x): return x * 0.1\n"
    loop = "def f(x):\n    while x == 3:\n        try: pass\n        except ValueError: pass\n    return x * 0.1\n"
    rows = floor_of(
        right,
        "def f(x): return 0.1\n",
        "def f(x): return x * 0.1 if x < 4 else 1\n",
        "(",
        loop,
        "import math\n" + right.replace("0.1", "0.1 + 1e-9"),
    )
    assert [(made, passed) for _, _, made, passed in rows] == [
        (5, True),
        (2, False),
        (4, False),
        (0, False),
        (3, False),
        (5, True),
    ]
    assert all(0 <= calls <= whole for calls, whole, *_ in rows)
    assert 0.5 < rows[4][0] < 10  # the timer ticks coarsely, and the loop has no end of its own


def test_tasks_are_shared_out_by_weight():
    """Every task once; the parts weigh about the same."""
    weights = {"a": 9.0, "b": 5.0, "c": 4.0, "d": 0.0, "e": 0.5}
    assert sorted(chain(*shares(list(weights), weights, 2))) == sorted(weights)
    loads = [sum(weights[name] for name in part) for part in shares(list(weights), weights, 2)]
    assert max(loads) - min(loads) <= 1.0
    assert shares([], {}, 3) == [[], [], []]


def test_floors_add_up():
    """A workload's is the sum of its programs'."""
    one = Floor(calls_s=1.0, all_s=2.0, made=3)
    assert sum([one, one], Floor()) == Floor(calls_s=2.0, all_s=4.0, made=6)


def test_without_evalplus_the_bench_says_how_to_get_it(tmp_path):
    """Whether the interpreter is missing or has no such package."""
    for python in (str(tmp_path / "none"), "/bin/false"):
        with pytest.raises(SystemExit, match=r"pip install evalplus==0\.3\.1"):
            Peer(python=python, cache=tmp_path).check()


def test_a_data_set_is_kept_by_its_content(tmp_path):
    """Two parts of one benchmark never share a file, so that EvalPlus keeps a ground truth for each."""
    peer = Peer(python="python", cache=tmp_path)
    parts = [Benchmark(name="mbpp", records={"Mbpp/1": {"n": n}}) for n in (1, 2, 1)]
    paths = [peer.environment(part)["MBPP_OVERRIDE_PATH"] for part in parts]
    assert paths[0] == paths[2] != paths[1]
    assert json.loads(Path(paths[1]).read_text()) == {"n": 2}


def test_a_group_that_is_not_there_has_used_nothing():
    """A room's group may be gone between two looks."""
    assert (cpu_of("proctor/none"), memory_of("proctor/none")) == (0.0, 0)


@pytest.mark.parametrize(
    ("detail", "reading", "first"),
    [
        ("public tier, call 2: over its CPU time", "TIMEOUT", 2),
        ("hidden tier: FAIL", "FAIL", None),
        ("call 2", "PASS", None),
    ],
)
def test_the_first_call_is_read_from_the_verdict(detail, reading, first):
    """Where the verdict names one and rejects."""
    said = Said.of({"reading": reading, "tiers": {"public": reading, "hidden": "NOT_RUN"}, "detail": detail})
    assert said == Said(reading, (("hidden", "NOT_RUN"), ("public", reading)), first)


@pytest.mark.parametrize(
    ("changes", "effect"),
    [
        ({"base": "pass", "plus": "pass"}, "WRONG PASS"),
        ({"base": "fail", "plus": "fail", "altered": True}, "ground truth altered; fail/fail"),
        ({"base": "pass", "plus": "pass", "outlived": 2}, "WRONG PASS; 2 processes left"),
        ({"ended": "hangs"}, "hangs"),
    ],
)
def test_what_a_candidate_did_to_evalplus(changes, effect):
    """The worst comes first."""
    usual = {
        "base": None,
        "plus": None,
        "seconds": 1.0,
        "ended": "evaluator ended with 0",
        "outlived": 0,
        "altered": False,
    }
    assert Seen(**{**usual, **changes}).effect == effect
