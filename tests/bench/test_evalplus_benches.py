"""What the benches beside EvalPlus print and end with; neither it nor a room is needed."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from bench.evalplus import Comparison, arguments, benchmarks
from bench.evalplus_borderline import Said, show
from bench.evalplus_borders import Border
from bench.evalplus_hostile import Seen, sandbox
from bench.evalplus_hostile import show as show_hostile
from bench.evalplus_meter import Run
from bench.evalplus_ours import OurRun
from bench.evalplus_peer import Outcome
from bench.evalplus_workloads import Benchmark, Sample
from tests.live.hostile.evalplus_candidates import CANDIDATES, CONTROLS

RUN = Run(status=0, wall_s=1.0, cpu_s=1.0, memory=[], load=(0, 0))


def test_a_benchmark_without_its_file_is_named(monkeypatch, tmp_path):
    """By the variable that must name it."""
    monkeypatch.setenv("HUMANEVAL_OVERRIDE_PATH", str(tmp_path / "none.jsonl"))
    with pytest.raises(SystemExit, match="HUMANEVAL_OVERRIDE_PATH must name"):
        benchmarks(["humaneval"])


def test_the_image_goes_with_the_backend(monkeypatch, tmp_path):
    """The sandbox has the host's own programs, an engine the seats' image."""
    seen = []
    for words in ([], ["--backend", "docker"], ["--image", "mine"]):
        monkeypatch.setattr("sys.argv", ["evalplus.py", "--evalplus", "python", "--cache", str(tmp_path), *words])
        seen.append(arguments().image)
    assert seen == ["host", "proctor-seat", "mine"]


def test_special_rules_are_held_against_evalplus_s_own(capsys):
    """A task whose rule differs is told; the others are counted."""
    records = {name: {"entry_point": entry} for name, entry in {"Mbpp/2": "similar_elements", "Mbpp/3": "f"}.items()}
    options = argparse.Namespace(evalplus="python", cache=Path(), backend="x", image="y", workers=2, public_tier="full")
    comparison = Comparison(options)

    class Tables:
        def ask(self, benchmark, question):
            return {"Mbpp/2": "set", "Mbpp/3": "anything"}

    comparison.peer = Tables()
    assert comparison.rules(Benchmark(name="mbpp", records=records)) == ["Mbpp/3: equal, EvalPlus anything"]
    assert "2 tasks" in capsys.readouterr().out


def test_our_verdicts_are_reduced_to_what_evalplus_says():
    """The public tier is its base; all is a PASS."""
    rows = [
        {"reading": "PASS", "tiers": {"public": "PASS", "hidden": "PASS"}},
        {"reading": "FAIL", "tiers": {"public": "PASS", "hidden": "FAIL"}},
        {"reading": "TIMEOUT", "tiers": {"public": "TIMEOUT", "hidden": "NOT_RUN"}},
    ]
    run = OurRun(run=RUN, cpu_s=0, judge_cpu_s=0, first_verdict_s=0, verdicts=rows)
    assert [(one.base, one.all) for one in run.outcomes()] == [(True, True), (True, False), (False, False)]
    assert run.outcomes()[0] == Outcome(base=True, all=True)


def border(reading: str, call: int) -> Border:
    """A program near a limit."""
    sample = Sample(task_id="Border/0", kind="cpu", solution="")
    return Border(sample=sample, part=0.5 if reading == "PASS" else 1.5, call=call, reading=reading)


PASSED, LATE = Said("PASS", (("public", "PASS"),), None), Said("TIMEOUT", (("public", "TIMEOUT"),), 2)


def test_borders_that_hold(capsys):
    """The table has both bands, and counts what was right."""
    cases, said = [border("PASS", 1), border("TIMEOUT", 2)], [PASSED, LATE]
    assert show(cases, said, said) == 0
    assert "| cpu | 2 | 0.5 to 0.5 | 1.5 to 1.5 | 2 | 2 | 2 |" in capsys.readouterr().out


@pytest.mark.parametrize("other", [PASSED, Said("TIMEOUT", LATE.tiers, 3), Said("TIMEOUT", (("public", "MEMORY"),), 2)])
def test_a_verdict_that_load_changes_is_told(capsys, other):
    """Class, call and tier."""
    assert show([border("PASS", 1), border("TIMEOUT", 2)], [PASSED, LATE], [PASSED, other]) == 1
    assert "call 2: TIMEOUT; idle" in capsys.readouterr().out


def seen(**changes) -> Seen:
    """What EvalPlus made of a candidate."""
    usual = {"base": "pass", "plus": "pass", "seconds": 1.0, "ended": "", "outlived": 0, "altered": False}
    return Seen(**{**usual, **changes})


def test_both_columns_of_the_hostile_candidates(capsys):
    """What EvalPlus accepts is counted, but for honest controls; ours must be the list's own reading."""
    (bad, case), (good, honest) = next(iter(CANDIDATES.items())), next(iter(CONTROLS.items()))
    cases = {bad: case, good: honest}
    assert show_hostile(cases, [case[2], honest[2]], [seen(), seen()]) == []
    said = capsys.readouterr().out
    assert f"| {bad} | {case[2]} | WRONG PASS | 1 |" in said
    assert f"| {good} | {honest[2]} | pass/pass | 1 |" in said
    assert "of 1 hostile candidates: {'accepted': 1}" in said
    assert show_hostile({bad: case}, ["PASS"], [seen(base=None, ended="hangs")]) == [
        f"{bad}: ours PASS, expected {case[2]}"
    ]


def test_hostile_candidates_are_shown_to_evalplus_in_a_sandbox(tmp_path):
    """No network, no other user's processes, nothing writable but one folder."""
    import sys

    words = sandbox(sys.executable, tmp_path)
    assert words[:2] == ["bwrap", "--unshare-all"]
    assert "--clearenv" in words
    assert words.count("--bind") == 1
    assert words[words.index("--bind") + 1] == str(tmp_path)
