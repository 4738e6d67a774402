"""
The dafny referee with the real verifier in real rooms: the examples and their mutants, and candidates that try to be
believed without a proof. Every NO stands beside the YES that it differs from in one thing only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness import plugins
from harness.tasks.folder import load_folder
from harness.tasks.mutants import mutants
from harness.tasks.task import Task
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from harness.walls import Walls
from tests.live.hostile.verifier_candidates import HARD, HOSTILE, RIGHT
from tests.live.images import prover_image

EXAMPLES = Path(__file__).parents[2] / "examples" / "verified"
SEARCH = load_folder(EXAMPLES / "search")
pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(600)]


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referee on both."""
    return "asyncio"


def rooms_of(backend: str) -> Callable[[], Any]:
    """Opens sealed rooms of that backend, with the provers in them."""
    return partial(plugins.load("workspaces", backend)().open, Walls(image=prover_image()), run="test-dafny")


async def judged(task: Task, tree: Tree, backend: str = "bubblewrap", **options: Any) -> Verdict:
    """The verdict on a tree."""
    referee = plugins.load("referees", "dafny")(options)
    verdict: Verdict = await referee.judge(Exhibit(tree=tree), task.open, task.sealed, rooms_of(backend))
    return verdict


async def all_judged(task: Task, trees: dict[str, Tree]) -> dict[str, tuple[str, str | None]]:
    """Reading and would-be reading by name, two at a time."""
    found: dict[str, tuple[str, str | None]] = {}
    limiter = anyio.CapacityLimiter(2)

    async def one(name: str, tree: Tree) -> None:
        async with limiter:
            verdict = await judged(task, tree)
        found[name] = (verdict.reading, verdict.would_be)

    async with anyio.create_task_group() as tasks:
        for name, tree in trees.items():
            tasks.start_soon(one, name, tree)
    return found


async def test_a_proof_passes_and_a_weaker_promise_does_not_in_containers() -> None:
    """
    The reference is PASS with its goal; the same text that promises less is SPEC_ALTERED by that goal. All that follows
    is judged by bubblewrap.
    """
    good = await judged(SEARCH, SEARCH.sealed.solution, "docker")
    assert (good.reading, good.tests[0].reading, good.tiers[0].passed) == ("PASS", "PASS", 5)
    assert good.cpu_s is not None
    weaker = await judged(SEARCH, mutants(SEARCH.sealed)["weaker_promise"], "docker")
    assert (weaker.reading, weaker.tests[0].reading) == ("SPEC_ALTERED", "SPEC_ALTERED")


@pytest.mark.parametrize(("name", "more"), [("odds", "battery"), ("partition", "none"), ("search", "mutants")])
async def test_the_reference_passes_and_nothing_degenerate_or_mutated_does(name: str, more: str) -> None:
    """PASS once, and all else rejected; no degenerate candidate gets by on a summary without errors."""
    task = load_folder(EXAMPLES / name)
    referee = plugins.load("referees", "dafny")()
    wrong = {"none": {}, "mutants": mutants(task.sealed), "battery": referee.battery(task.open, task.sealed)}[more]
    found = await all_judged(task, {"reference": task.sealed.solution, **wrong})
    assert found.pop("reference") == ("PASS", None)
    assert set(wrong) == {name for name, (reading, _) in found.items() if referee.classes[reading] == "rejected"}


async def test_nothing_is_believed() -> None:
    """Each comes to its class, and what the screen refuses would have passed without it."""
    found = await all_judged(SEARCH, {what: Tree.of({"solution.dfy": text}) for what, text, _, _ in HOSTILE})
    assert {what: (reading, would_be) for what, _, reading, would_be in HOSTILE} == found


async def test_words_in_comments_and_strings_are_no_words() -> None:
    """The reference with every forbidden word in a comment or a name of its own is still PASS."""
    words = "/* assume /* abstract */ trait include decreases * ... {:axiom} */ // assume false;\n"
    text = words + RIGHT.replace("middle", "assume'")
    assert (await judged(SEARCH, Tree.of({"solution.dfy": text}))).reading == "PASS"


async def test_what_is_not_decided_is_charged_to_nobody() -> None:
    """Out of the solver's units is RESOURCE_OUT, though the verifier says `5 verified, 0 errors`; and twice the same."""
    first, second = [await judged(SEARCH, Tree.of({"solution.dfy": HARD}), rlimit=500_000) for _ in range(2)]
    assert (first.reading, first.standing, first.tiers[0].passed) == ("RESOURCE_OUT", "unscorable", 5)
    assert first.same_as(second)
    enough = await judged(SEARCH, SEARCH.sealed.solution, rlimit=500_000)
    assert enough.reading == "PASS"


async def test_the_exhibits_own_specification_is_passed_over() -> None:
    """A specification under which everything holds does not help; beside the reference it does no harm."""
    own = "module Spec { predicate Sorted(s: seq<int>) { false } }\n"
    idle = RIGHT[: RIGHT.index("    var low")] + "    at := -1;\n  }\n}\n"
    assert (await judged(SEARCH, Tree.of({"spec.dfy": own, "solution.dfy": idle}))).reading == "VERIFICATION_FAILED"
    assert (await judged(SEARCH, Tree.of({"spec.dfy": own, "solution.dfy": RIGHT}))).reading == "PASS"
