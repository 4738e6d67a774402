"""The samples that the comparison with EvalPlus judges, and the programs near a limit."""

from __future__ import annotations

import ast
import gzip
import json

import pytest

from bench.evalplus_borders import BORDER, borders
from bench.evalplus_workloads import Benchmark, loops, mixes, mutant_samples, mutants, references

PROMPT = 'def least(values):\n    """The least value, at most 9."""\n'
BODY = "    if not values:\n        return None\n    return min(min(values), 9) if len(values) > 1 else values[0]\n"


def record(number: int) -> dict:
    """A task in EvalPlus's schema."""
    return {
        "task_id": f"Own/{number}",
        "prompt": PROMPT,
        "entry_point": "least",
        "canonical_solution": BODY,
        "contract": "",
        "base_input": [[[1]]],
        "plus_input": [],
        "atol": 0,
    }


@pytest.fixture
def own(tmp_path) -> Benchmark:
    """Five tasks, from a packed file."""
    path = tmp_path / "own.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(record(n)) + "\n" for n in range(5)).encode()))
    return Benchmark.read("humaneval", path)


def test_mutants_differ_in_one_place_each():
    """They compile, none is the source or another one, and the same ones come again."""
    source = PROMPT + BODY
    made = mutants(source, 6)
    assert len({ast.dump(ast.parse(text)) for text in [source, *made]}) == 7
    assert made == mutants(source, 6)
    assert made[:3] == mutants(source, 3)


def test_mutants_are_of_many_operators_before_one_comes_twice():
    """A condition, a name, a number, a comparison, a sign and a result are changed once each."""
    first = mutants(PROMPT + BODY, 6)
    assert sum("return [" in text for text in first) == 1
    assert sum("len(values) >= 1" in text for text in first) == 1
    assert sum("+values" in text for text in first) == 1


def test_a_mutant_leaves_the_docstring_alone():
    """What a function says of itself is no code."""
    assert all("The least value, at most 9." in text for text in mutants(PROMPT + BODY, 100))


def test_what_has_nothing_to_change_has_no_mutant():
    """A module without a function."""
    assert mutants("x = 1\n", 3) == []


def test_workloads_have_a_sample_for_each_task(own):
    """EvalPlus refuses a file that leaves a task out."""
    for workload in (references, mixes, mutant_samples, loops):
        assert {sample.task_id for sample in workload(own)} == set(own.records)


def test_a_mix_is_right_wrong_and_broken(own):
    """The broken one does not compile, the others do."""
    first = mixes(own)[:3]
    assert [sample.kind for sample in first] == ["right", "wrong", "broken"]
    compile(first[0].solution, "right", "exec")
    compile(first[1].solution, "wrong", "exec")
    with pytest.raises(SyntaxError):
        compile(first[2].solution, "broken", "exec")


def test_a_part_is_the_same_one_each_time(own):
    """It keeps the file's order, and what is left out never comes."""
    part = own.part(2)
    assert list(part.records) == list(own.part(2).records)
    assert len(part.records) == 2
    assert not set(own.part(3, without=list(part.records)).records) & set(part.records)
    assert [json.loads(line)["task_id"] for line in part.text().splitlines()] == list(part.records)


def test_two_hundred_borders():
    """Every program compiles, is for a task that there is, and stays a tenth away from its limit."""
    cases = borders()
    assert len(cases) == 200
    assert len({case.sample.solution for case in cases}) == 200
    for case in cases:
        compile(case.sample.solution, case.sample.kind, "exec")
        assert case.sample.task_id in BORDER.records
        assert case.part <= 0.9 if case.reading == "PASS" else case.part >= 1.1


def test_a_border_names_its_call_where_a_verdict_does():
    """A hidden call, and one that is accepted, are not named."""
    for case in borders():
        assert case.first == (case.call if case.reading != "PASS" and case.call < 4 else None)


def test_programs_that_differ_in_a_value_stay_within_or_beyond_its_tolerance():
    """What is called a tolerance is the referee's own."""
    from referees.evalplus_compare import accepts

    seen = 0
    for case in borders():
        if case.sample.kind == "tolerance":
            seen += 1
            task, space = BORDER.records[case.sample.task_id], {}
            exec(case.sample.solution, space)  # noqa: S102 - our own program
            right, got = case.call * 10.0 + 0.5, space[task["entry_point"]](case.call)
            accepted = accepts("equal", task["entry_point"], [case.call], right, got, atol=task["atol"])
            assert accepted == (case.reading == "PASS")
    assert seen == 30
