"""pass@k: the published estimator, and intervals that hold what they promise."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells.pass_at_k import RESAMPLES, SEED, Tally, estimate, pass_at_k
from cells.stats import clopper_pearson


def tallies(samples: int, *right: int) -> list[Tally]:
    """Tasks of so many samples each."""
    return [Tally(samples=samples, right=item) for item in right]


@given(st.integers(1, 9), st.data())
def test_the_estimate_is_the_share_of_draws_with_a_right_one(samples: int, data: st.DataObject) -> None:
    """Counted out over every way to choose k of n."""
    right, k = data.draw(st.integers(0, samples)), data.draw(st.integers(1, samples))
    draws = list(itertools.combinations(range(samples), k))
    share = sum(any(item < right for item in draw) for draw in draws) / len(draws)
    assert estimate(samples, right, k) == pytest.approx(share, abs=1e-12)


@given(st.integers(1, 300), st.data())
def test_the_estimate_is_the_published_product(samples: int, data: st.DataObject) -> None:
    """The numerically stable form that the paper prints gives the same."""
    right, k = data.draw(st.integers(0, samples)), data.draw(st.integers(1, samples))
    product = 1.0 if samples - right < k else 1 - np.prod(1 - k / np.arange(samples - right + 1, samples + 1))
    assert estimate(samples, right, k) == pytest.approx(float(product), abs=1e-9)


def test_more_samples_than_floats_can_count() -> None:
    """Binomials beyond the largest float lose nothing."""
    assert estimate(100_000, 1, 50_000) == 0.5
    assert estimate(100_000, 0, 50_000) == 0.0


@pytest.mark.parametrize("bad", [(0, 0, 1), (3, 4, 1), (3, 1, 4), (3, -1, 1), (3, 1, 0), (3, 1.5, 1), (True, 1, 1)])
def test_counts_that_are_none_are_refused(bad: tuple[int, int, int]) -> None:
    """No figure comes of them."""
    with pytest.raises(ValueError, match="expected"):
        estimate(*bad)


def test_no_tasks_are_refused() -> None:
    """The mean of nothing is undefined."""
    with pytest.raises(ValueError, match="no tasks"):
        pass_at_k([], 1)


def test_one_sample_a_task_is_a_share_with_its_exact_interval() -> None:
    """pass@1 of 3 right of 4 is 0.75 with the Clopper-Pearson interval."""
    found = pass_at_k(tallies(1, 1, 1, 0, 1), 1)
    assert (found.value, found.tasks, found.interval) == (0.75, 4, clopper_pearson(3, 4))
    assert found.method == "Clopper-Pearson over tasks"


def test_tasks_that_are_all_or_nothing_are_a_share_too() -> None:
    """A bootstrap of tasks that all pass would say that nothing else is possible."""
    found = pass_at_k(tallies(5, 5, 5, 5), 1)
    assert (found.value, found.interval) == (1.0, clopper_pearson(3, 3))
    assert found.interval is not None
    assert found.interval.low < 0.5


def test_one_task_with_a_share_has_no_interval() -> None:
    """Its samples say nothing of other tasks; the value stands, and the method says why."""
    found = pass_at_k(tallies(4, 1), 1)
    assert (found.value, found.interval) == (0.25, None)
    assert "one task" in found.method


def test_tasks_that_are_all_alike_have_no_interval() -> None:
    """Half of each task right: a bootstrap could only say that nothing else is possible."""
    found = pass_at_k(tallies(4, 2, 2, 2), 1)
    assert (found.value, found.interval) == (0.5, None)
    assert "the same estimate" in found.method


def test_the_bootstrap_is_the_same_every_time_and_in_any_order() -> None:
    """Equal counts give equal figures."""
    one = pass_at_k(tallies(10, 1, 5, 9, 0, 10, 3), 1)
    assert one == pass_at_k(tallies(10, 3, 10, 0, 9, 5, 1), 1)
    assert one.interval is not None
    assert one.interval.low < one.value < one.interval.high
    assert str(RESAMPLES) in one.method
    assert f"seed {SEED}" in one.method


def test_the_bootstrap_is_by_task_and_not_by_sample() -> None:
    """Ten times the samples of the same tasks make the interval no narrower."""
    few = pass_at_k(tallies(10, *range(11)), 1).interval
    many = pass_at_k(tallies(100, *range(0, 101, 10)), 1).interval
    assert few == many


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """200 data sets of 100 tasks from a known law: at 0.95 the mean is inside in about 95 of 100."""
    generator = np.random.default_rng(7)
    inside = 0
    for _ in range(200):
        right = generator.binomial(8, generator.beta(2, 3, size=100))
        interval = pass_at_k(tallies(8, *map(int, right)), 1).interval
        assert interval is not None
        inside += interval.low <= 0.4 <= interval.high
    assert 0.90 <= inside / 200 <= 0.99


def test_the_bootstrap_of_a_benchmark_is_quick() -> None:
    """378 tasks, below a second of the processor on an idle machine."""
    began = time.process_time()
    pass_at_k(tallies(10, *(task % 11 for task in range(378))), 1)
    assert time.process_time() - began < 5.0
