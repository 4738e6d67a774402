"""Named parts of a benchmark: what they keep, what they are held to, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import TaskError
from harness.experiment import TaskEntry
from harness.tasks import profiles
from harness.tasks.evalplus import load_evalplus
from harness.tasks.profiles import PROFILES, TaskProfile, hidden_over, ids_digest, profile
from harness.tasks.sources import load_tasks

SMALL = TaskProfile(
    name="small-reconstruction",
    rule="left out: the second",
    standing="reconstruction",
    left_out=("Own/1",),
    kept=2,
    ids_sha256=ids_digest(["Own/0", "Own/2"]),
)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of three tasks, and a profile of it that leaves the second out."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(profiles, "PROFILES", {SMALL.name: SMALL})
    records = [
        {
            "task_id": f"Own/{number}",
            "prompt": "def f(x):\n",
            "entry_point": "f",
            "canonical_solution": "    return x\n",
            "contract": "",
            "base_input": [[1]],
            "plus_input": [[2]] * number,
            "atol": 0,
        }
        for number in range(3)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_profile_keeps_its_tasks_in_the_order_of_the_file(source: Path) -> None:
    """What is left out is gone before ids, draw and cap are looked at."""
    assert [task.open.name for task in load_evalplus(source, profile=SMALL.name)] == ["Own/0", "Own/2"]
    entry = TaskEntry(source=f"evalplus:{source.name}", profile=SMALL.name, cap=1)
    assert [task.open.name for task in load_tasks(entry, source.parent)] == ["Own/0"]
    with pytest.raises(TaskError, match="unknown task id 'Own/1'"):
        load_evalplus(source, profile=SMALL.name, ids=["Own/1"])


def test_profiles_of_another_data_set_are_refused(source: Path) -> None:
    """A source without a task that is left out, with one more than was kept, or that is a folder: each is said."""
    with pytest.raises(TaskError, match="unknown profile 'mbpp'"):
        load_evalplus(source, profile="mbpp")
    with pytest.raises(TaskError, match="leaves out Own/9, and the source has no such task"):
        replace(SMALL, left_out=("Own/9",)).keeps(["Own/0", "Own/1", "Own/2"])
    with pytest.raises(TaskError, match=r"would keep 3 tasks .* expected 2 .* another version of the data set"):
        SMALL.keeps(["Own/0", "Own/1", "Own/2", "Own/3"])
    with pytest.raises(TaskError, match="is of an `evalplus:` source"):
        load_tasks(TaskEntry(source="folder:tasks", profile=SMALL.name), source.parent)


def test_every_profile_says_that_it_is_a_reconstruction() -> None:
    """Its name and its standing do; it leaves out 13 tasks, and no two have one digest."""
    for name, item in PROFILES.items():
        assert item is profile(name)
        assert "reconstruction" in name
        assert item.standing.startswith("reconstruction")
        assert (item.kept, len(item.left_out), len(set(item.left_out))) == (365, 13, 13)
    assert len(PROFILES) == len({item.digest for item in PROFILES.values()}) == 2
    assert SMALL.digest != replace(SMALL, rule="another").digest


def test_hidden_tests_over_a_cap_are_counted() -> None:
    """A record at the cap is not over it."""
    records = [{"plus_input": [0] * length} for length in (0, 2, 3, 4)]
    assert [hidden_over(records, cap) for cap in (0, 2, 3, 4)] == [3, 2, 1, 0]


def test_the_page_names_every_profile() -> None:
    """A profile that is not in the reference is not found by anybody."""
    page = (Path(__file__).parents[2] / "docs/reference/population.md").read_text("utf-8")
    for name, item in PROFILES.items():
        assert f"`{name}`" in page
        assert " ".join(one.removeprefix("Mbpp/") for one in item.left_out) in page
        assert item.ids_sha256[:12] in page
