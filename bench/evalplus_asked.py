# ruff: noqa: ANN001, ANN201, PTH123 - it runs in the interpreter of EvalPlus, of whatever version that is
"""
Questions to EvalPlus 0.3.1 about single samples and its own tables. Runs in its interpreter, with nothing of ours.

Reads question.json in the working folder and writes answer.json. Questions, by `ask`:

rules    for each task, which of its special rules its code applies
sample   one sample through `untrusted_check`, both tiers, with `min_time` seconds at least for each call
alone    the same, each test by itself: the first one that fails, by tier, or null
values   what the reference and the sample give for test `at` of `tier`, as text, and whether EvalPlus sees floats
"""

import inspect
import json
import re

import evalplus.eval as ep
from evalplus.data import get_human_eval_plus, get_mbpp_plus
from evalplus.gen.util import trusted_exec

TIERS = ("base", "plus")


def special(dataset, entry):
    """The special rule that `unsafe_execute` has for an entry point, read from its own source and tables."""
    source = inspect.getsource(ep.unsafe_execute)
    mbpp, humaneval = source.split('if dataset == "mbpp":')[1].split('if dataset == "humaneval":')
    if dataset == "humaneval":
        return "root" if entry in re.findall(r'"(\w+)" == entry_point', humaneval) else "equal"
    if entry in ep.MBPP_OUTPUT_SET_EQ_TASKS:
        return "set"
    if entry in ep.MBPP_OUTPUT_NOT_NONE_TASKS:
        return "not_none"
    for found in re.finditer(r'"(\w+)"\s*== entry_point\s*\):?|"(\w+)" == entry_point', mbpp):
        if entry in found.groups():
            rest = mbpp[found.end() :].split("elif")[0]
            return "anything" if "or True" in rest else "alternative"
    return "equal"


def check(dataset, task, code, tier, *, only, min_time):
    """`untrusted_check` of one tier, or of one test of it; status and how many tests were noted."""
    inputs = list(task[tier + "_input"])
    if only is not None:
        inputs = [inputs[only]]
    some = dataset == "mbpp" and task["entry_point"] in ep.MBPP_OUTPUT_NOT_NONE_TASKS
    whole = task["prompt"] + task["canonical_solution"]
    expected, times = trusted_exec(whole, inputs, task["entry_point"], record_time=True, output_not_none=some)
    status, details = ep.untrusted_check(
        dataset,
        code,
        inputs,
        task["entry_point"],
        expected,
        task["atol"],
        times,
        fast_check=True,
        min_time_limit=min_time,
    )
    return {"status": status, "noted": [bool(one) for one in details]}


def alone(dataset, task, code):
    """The first test of each tier that fails when it is judged by itself."""
    found = {}
    for tier in TIERS:
        count = len(task[tier + "_input"])
        failed = (i for i in range(count) if check(dataset, task, code, tier, only=i, min_time=5.0)["status"] != "pass")
        found[tier] = next(failed, None)
    return found


def values(task, code, tier, at):
    """Both values of one test. Runs the sample in this process, as EvalPlus runs references."""
    inputs = [task[tier + "_input"][at]]
    whole = task["prompt"] + task["canonical_solution"]
    [expected], [got] = (trusted_exec(text, inputs, task["entry_point"]) for text in (whole, code))
    return {"expected": repr(expected), "got": repr(got), "floats": bool(ep.is_floats(expected))}


def main():
    """Answer the question."""
    with open("question.json") as file:
        question = json.load(file)
    with open("answer.json", "w") as answer:
        dataset = question["benchmark"]
        problems = get_human_eval_plus() if dataset == "humaneval" else get_mbpp_plus()
        if question["ask"] == "rules":
            said = {name: special(dataset, task["entry_point"]) for name, task in problems.items()}
        else:
            task, code = problems[question["task_id"]], question["solution"]
            if question["ask"] == "alone":
                said = alone(dataset, task, code)
            elif question["ask"] == "values":
                said = values(task, code, question["tier"], question["at"])
            else:
                said = {
                    tier: check(dataset, task, code, tier, only=None, min_time=question["min_time"]) for tier in TIERS
                }
        json.dump(said, answer)


main()
