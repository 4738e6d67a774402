"""
Two evals by Inspect itself, of one task with two arms, with everything that can befall a sample. Run by the interpreter
that has inspect-ai: `inspect_evals.py FOLDER FORMAT`. Prints what Inspect says of each sample, as JSON.
"""

import json
import sys
from pathlib import Path

import anyio
from inspect_ai import Task, eval, task  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, accuracy, mean, scorer
from inspect_ai.solver import solver

FLAKY = set()

A = {"s0": "C", "s1": "C", "s2": "C", "s3": "I", "s4": "C", "s5": "C", "s6": "C", "s7": "nan", "s8": "C", "s9": "C"}
B = A | {"s0": "I", "s1": "I", "s2": "I"}
DO = {"s3": "tokens", "s4": "messages", "s5": "time", "s6": "error", "s8": "flaky", "s9": "scorer"}


@solver
def act():
    """Does what befalls the sample."""

    async def solve(state, generate):
        name = DO.get(state.sample_id)
        if name == "error":
            raise RuntimeError("planted")
        if name == "flaky" and (mark := (state.metadata["arm"], state.epoch)) not in FLAKY:
            FLAKY.add(mark)
            await generate(state)
            raise RuntimeError("planted once")
        if name == "time":
            await anyio.sleep(60)
        while name in {"tokens", "messages"}:
            if name == "messages":
                state.messages += [ChatMessageUser(content="more")] * 5
            state = await generate(state)
        return await generate(state)

    return solve


@scorer(metrics=[accuracy()])
def letters():
    """The letter that the sample is to get; whatever happened to it."""

    async def score(state, target):
        value = target.text
        if DO.get(state.sample_id) == "scorer":
            raise RuntimeError("the scorer broke")
        return Score.unscored(reason="grader_failed") if value == "nan" else Score(value=value)

    return score


@scorer(metrics=[mean()])
def share():
    """A number beside it."""

    async def score(state, target):
        return Score(value=0.25)

    return score


@task
def bench(arm="A"):
    """Ten samples."""
    scores = {"A": A, "B": B}[arm]
    samples = [Sample(id=name, input="q", target=score, metadata={"arm": arm}) for name, score in scores.items()]
    limits = {"token_limit": 100, "message_limit": 8, "time_limit": 10}
    return Task(dataset=samples, solver=act(), scorer=[letters(), share()], **limits)


def model():
    """A model that answers, and counts."""

    def outputs():
        while True:
            output = ModelOutput.from_content("mockllm/model", "an answer")
            output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=15, total_cost=0.001)
            yield output

    return get_model("mockllm/model", custom_outputs=outputs())


def main(folder, form):
    """Make the logs."""
    told = {}
    for arm in "AB":
        options = {"log_format": form, "fail_on_error": False, "retry_on_error": 1, "display": "none"}
        logs = eval(bench(arm=arm), model=model(), epochs=2, log_dir=str(folder), score_on_error=True, **options)
        told[arm] = {
            f"{each.id}_epoch_{each.epoch}": {
                "limit": each.limit.type if each.limit else None,
                "error": each.error.message if each.error else None,
                "score": str(each.scores["letters"].value) if "letters" in (each.scores or {}) else None,
                "tries": len(each.error_retries or []) + 1,
                "tokens": sum(usage.total_tokens for usage in each.model_usage.values()),
            }
            for each in read_eval_log(logs[0].location).samples
        }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
