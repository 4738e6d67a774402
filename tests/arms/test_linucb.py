"""LinUCB: Algorithm 1 as it stands, a fixed tie-break, and a choice that is a function of the cell's own past."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from arms.controllers.linucb import ACTIONS, FEATURES, Linear, LinUCB, features, reward
from harness.errors import PluginError
from harness.views import PastRound, Previous
from tests.arms.controlled import CORPUS, FACTS, given, line, previous


def went(*rounds: tuple[Previous | None, Previous | None]) -> tuple[PastRound, ...]:
    """Rounds that are over."""
    return tuple(PastRound(before=before, after=after) for before, after in rounds)


def test_the_model_is_algorithm_1() -> None:
    """Against A, b and their inverse computed by numpy from the paper's own lines, over a hundred rounds."""
    chance = np.random.default_rng(5)
    model, a, b = Linear(4), np.eye(4), np.zeros(4)
    for _ in range(100):
        x = chance.random(4)
        theta = np.linalg.solve(a, b)
        bound = theta @ x + 0.7 * math.sqrt(x @ np.linalg.solve(a, x))
        assert model.bound(list(map(float, x)), 0.7) == pytest.approx(bound, abs=1e-12)
        gained = float(chance.random())
        model.learn(list(map(float, x)), gained)
        a, b = a + np.outer(x, x), b + gained * x


def test_a_tie_goes_to_the_action_declared_first() -> None:
    """At first all bounds are equal, in whichever order the actions are declared."""
    assert LinUCB(corpus=CORPUS).choose(given(*FACTS)) == "facts"
    assert LinUCB(actions=["kernel", "trace", "facts"]).choose(given(*FACTS)) == "kernel"
    assert LinUCB(actions=["trace", "facts"], alpha=0).choose(given(*FACTS)) == "trace"


def test_only_what_fires_is_chosen() -> None:
    """The trace can't be, where nothing says what came instead; nothing is, where no action fires."""
    quiet = line("add(1)", "2")
    assert LinUCB(actions=["trace", "facts"]).choose(given(quiet)) == "facts"
    assert LinUCB(actions=["trace", "kernel"]).choose(given(quiet)) is None
    assert LinUCB(actions=["trace", "kernel"]).lines(given(quiet)) is None


def test_it_learns_from_public_progress() -> None:
    """What brought nothing gives way to what is not yet known; what unlocked is chosen again."""
    bandit, before = LinUCB(actions=["facts", "trace"], alpha=0.5), previous(passed=1)
    failed = went((before, previous(passed=1)))
    assert bandit.choose(given(*FACTS, past=failed)) == "trace"
    helped = went((before, previous(passed=7)))
    assert bandit.choose(given(*FACTS, past=helped)) == "facts"


def test_the_choice_is_a_function_of_the_past() -> None:
    """Another bandit, or the same one after other cells, chooses the same: nothing is kept between calls."""
    past = went((previous(passed=1), previous(passed=3)), (None, previous()), (previous(passed=3), None))
    once = LinUCB(corpus=CORPUS)
    first = [once.choose(given(*FACTS, past=past[:n])) for n in range(4)]
    once.choose(given(*FACTS[:1], past=went((previous(), previous(passed=8)))))
    assert [LinUCB(corpus=CORPUS).choose(given(*FACTS, past=past[:n])) for n in range(4)] == first
    assert [once.choose(given(*FACTS, past=past[:n])) for n in range(4)] == first


def test_the_context_is_bounded_and_told_by_name() -> None:
    """Each share of an incumbent's public reading is from 0 to 1, without a fact or a test too."""
    assert dict(zip(FEATURES, features(given(*FACTS)), strict=True)) == {
        "one": 1.0, "passed": 0.125, "raised": 0.2, "ended": 0.2, "numbers": 0.2, "told": 0.8
    }  # fmt: skip
    assert features(given(total=0)) == (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("before", "after", "gained"),
    [
        (previous(passed=1), previous(passed=3), 0.25),
        (previous(passed=3), previous(passed=1), 0.0),
        (previous(passed=3), previous(passed=3, accepted=True), 1.0),
        (previous(passed=3), None, 0.0),
        (None, previous(passed=3), 0.0),
    ],
)
def test_a_reward_is_public_progress(before: Previous | None, after: Previous | None, gained: float) -> None:
    """By the share of public tests passed more; what is lost costs nothing, and no code brings nothing."""
    assert reward(PastRound(before=before, after=after)) == gained


@pytest.mark.parametrize("alpha", [float("nan"), float("inf"), -0.1, 101, True, "1", None])
def test_alpha_is_a_finite_number(alpha: Any) -> None:
    """Whatever else is refused with what it is."""
    with pytest.raises(PluginError, match="alpha"):
        LinUCB(alpha)


@pytest.mark.parametrize("actions", [[], ["facts"], ["facts", "facts"], ["facts", "trase"], "facts", 7])
def test_actions_are_at_least_two_known_ones(actions: Any) -> None:
    """Anything else is refused with the known names."""
    with pytest.raises(PluginError, match="actions"):
        LinUCB(actions=actions)


def test_it_lacks_what_its_actions_lack() -> None:
    """The corpus is needed by the inversion alone."""
    assert "corpus" in str(LinUCB().lacks)
    assert LinUCB(actions=[one for one in ACTIONS if one != "inversion"]).lacks is None
    assert LinUCB(corpus=CORPUS).lacks is None
