"""Tasks from files in EvalPlus's schema."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.canonical import digest_bytes
from harness.errors import TaskError
from harness.tasks import evalplus
from harness.tasks.evalplus import load_evalplus, open_evalplus
from harness.tasks.evalplus_inputs import convert_inputs


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are kept below the test's own folder."""
    monkeypatch.setenv("PROCTOR_HOME", str(tmp_path / "home"))


QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "tasks.jsonl"


def record(**changes: Any) -> dict[str, Any]:
    """One well-formed record, with changes; a change to `...` removes the key."""
    made = {
        "task_id": "Own/0",
        "prompt": 'def twice(x):\n    """Twice x."""\n',
        "entry_point": "twice",
        "canonical_solution": "    return 2 * x\n",
        "contract": "",
        "base_input": [[1], [2]],
        "plus_input": [[3]],
        "atol": 0,
        **changes,
    }
    return {key: value for key, value in made.items() if value is not ...}


def written(folder: Path, *records: dict[str, Any], name: str = "own.jsonl") -> Path:
    """A file with these records."""
    text = "".join(json.dumps(item) + "\n" for item in records)
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["own.jsonl", "own.jsonl.gz"])
def test_a_record_becomes_a_task_of_two_halves(tmp_path: Path, name: str) -> None:
    """The seat gets the prompt and the entry point; reference and inputs are sealed."""
    [task] = load_evalplus(written(tmp_path, record(), name=name))
    assert (task.open.benchmark, task.open.name) == ("own", "Own/0")
    assert task.open.instruction == record()["prompt"]
    assert dict(task.open.details) == {"entry_point": "twice", "prompt": record()["prompt"]}
    assert len(task.open.environment) == 0
    assert task.sealed.solution.text("solution.py") == record()["prompt"] + record()["canonical_solution"]
    assert json.loads(task.sealed.tests["evalplus.json"]) == record()
    assert "return 2" not in repr(task.open) + repr(task)


def test_infinities_and_great_numbers_survive(tmp_path: Path) -> None:
    """Inputs that strict JSON has no words for reach the suite as they are."""
    [task] = load_evalplus(written(tmp_path, record(plus_input=[[float("inf")], [10**40]])))
    assert json.loads(task.sealed.tests["evalplus.json"])["plus_input"] == [[float("inf")], [10**40]]


def test_ids_choose_in_the_order_given() -> None:
    """A task is named in full or by what follows the slash."""
    names = [task.open.name for task in load_evalplus(QUICKSTART, ids=["Quick/3", "0"])]
    assert names == ["Quick/3", "Quick/0"]


def test_a_draw_is_reproducible_and_depends_on_the_seed() -> None:
    """The same seed draws the same tasks, whatever their order in the file; a cap keeps the first of them."""
    draws = [[t.open.name for t in load_evalplus(QUICKSTART, draw={"seed": seed, "n": 5})] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert len(set(draws[0])) == 5
    capped = load_evalplus(QUICKSTART, draw={"seed": 1, "n": 5}, cap=2, benchmark="other")
    assert [t.open.name for t in capped] == draws[0][:2]
    assert {t.open.benchmark for t in capped} == {"other"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ids": ["Quick/99"]}, r"unknown task id 'Quick/99'; nearest: Quick/9"),
        ({"ids": ["0", "Quick/0"]}, "twice"),
        ({"draw": {"seed": 1}}, "'seed' and 'n'"),
        ({"draw": {"seed": 1, "n": 2, "m": 3}}, "'seed' and 'n'"),
        ({"draw": {"seed": 1, "n": True}}, "whole numbers"),
        ({"draw": {"seed": 1, "n": 13}}, "13 of 12"),
        ({"cap": 0}, "1 or more"),
    ],
)
def test_choices_that_are_refused(options: dict[str, Any], words: str) -> None:
    """A choice that means nothing is refused, with what would mean something."""
    with pytest.raises(TaskError, match=words):
        load_evalplus(QUICKSTART, **options)


def test_a_short_id_of_two_tasks_is_refused(tmp_path: Path) -> None:
    """A number that two tasks share names neither."""
    path = written(tmp_path, record(), record(task_id="Other/0"))
    with pytest.raises(TaskError, match="more than one task: Own/0, Other/0"):
        load_evalplus(path, ids=["0"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"contract": ...}, "missing contract"),
        ({"extra": 1}, "unknown extra"),
        ({"prompt": 3}, "prompt is int"),
        ({"entry_point": "not a name"}, "expected a Python name"),
        ({"atol": float("nan")}, "atol is nan"),
        ({"atol": float("inf")}, "atol is inf"),
        ({"atol": -1}, "atol is -1"),
        ({"atol": True}, "atol is True"),
        ({"atol": "0"}, "atol is '0'"),
        ({"base_input": []}, "base_input is empty"),
        ({"base_input": {"0": [1]}}, "base_input is not a list of argument lists"),
        ({"plus_input": [3]}, "plus_input is not a list of argument lists"),
        ({"task_id": "Mbpp/252", "base_input": [["not a number"]]}, "call 0 can't be converted"),
    ],
)
def test_records_that_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    """A record outside the schema is refused, by the name of what is wrong."""
    with pytest.raises(TaskError, match=words):
        load_evalplus(written(tmp_path, record(**changes)))


def test_files_that_are_refused(tmp_path: Path) -> None:
    """A file that is no file, no JSON, doubled or empty is refused, with the line."""
    with pytest.raises(TaskError, match="twice"):
        load_evalplus(written(tmp_path, record(), record()))
    for text, words in (("{", "line 1 is not JSON"), ("[1]\n", "expected a JSON object"), ("\n", "no task")):
        (tmp_path / "bad.jsonl").write_text(text)
        with pytest.raises(TaskError, match=words):
            load_evalplus(tmp_path / "bad.jsonl")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b"x" * 10_000)[:40])
    with pytest.raises(TaskError, match="can't be read"):
        load_evalplus(tmp_path / "cut.jsonl.gz")
    with pytest.raises(TaskError, match="expected 'humaneval' or 'mbpp'"):
        load_evalplus(tmp_path / "missing.jsonl")
    with pytest.raises(TaskError, match="no task source"):
        load_evalplus("humanevil")


def test_an_empty_plus_tier_may_be_a_dict(tmp_path: Path) -> None:
    """MBPP+ writes `{}` where a task has no plus inputs."""
    [task] = load_evalplus(written(tmp_path, record(plus_input={})))
    assert json.loads(task.sealed.tests["evalplus.json"])["plus_input"] == []


def test_a_benchmark_is_the_file_that_its_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`humaneval` reads the file of EvalPlus's own variable, and says so when there is none."""
    monkeypatch.setenv("HUMANEVAL_OVERRIDE_PATH", str(written(tmp_path, record(task_id="HumanEval/0"))))
    [task] = load_evalplus("humaneval", ids=["0"])
    assert task.key == "humaneval/HumanEval/0"
    monkeypatch.setenv("HUMANEVAL_OVERRIDE_PATH", str(tmp_path / "gone.jsonl"))
    with pytest.raises(TaskError, match="HUMANEVAL_OVERRIDE_PATH names"):
        load_evalplus("humaneval")


def test_without_variable_and_package_the_next_step_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file and no `evalplus` to fetch one: the message names the variable and the package."""
    monkeypatch.delenv("MBPP_OVERRIDE_PATH", raising=False)
    monkeypatch.setitem(sys.modules, "evalplus", None)
    monkeypatch.setitem(sys.modules, "evalplus.data", None)
    monkeypatch.setitem(sys.modules, "evalplus.data.mbpp", None)
    with pytest.raises(TaskError, match=r"set MBPP_OVERRIDE_PATH.*pip install 'proctor\[evalplus\]'"):
        load_evalplus("mbpp")


@pytest.mark.parametrize(
    ("task_id", "args", "converted"),
    [
        ("Mbpp/2", [[1], [2, 3]], [(1,), (2, 3)]),
        ("Mbpp/63", [[[1, 2], [3]]], [[(1, 2), (3,)]]),
        ("Mbpp/75", [[[1, 2]], 3], [[(1, 2)], 3]),
        ("Mbpp/106", [[1], [2]], [[1], (2,)]),
        ("Mbpp/115", [[[1, 1], [], {}]], [[{1}, {}, {}]]),
        ("Mbpp/124", ["1.5", "2+1j"], [1.5, 2 + 1j]),
        ("Mbpp/252", ["3j"], [3j]),
        ("Mbpp/259", [[[1], [2]], [[3], [4]]], [((1,), (2,)), ((3,), (4,))]),
        ("Mbpp/278", [[1, [2], 3]], [(1, (2,), 3)]),
        ("Mbpp/307", [[1, [2]], 0, 5], [(1, [2]), 0, 5]),
        ("Mbpp/580", [[1, [2, [3]]]], [(1, (2, (3,)))]),
        ("Mbpp/722", [{"a": [1.5, 2]}, 6], [{"a": (1.5, 2)}, 6]),
        ("Mbpp/3", [[1]], [[1]]),
        ("HumanEval/2", [[1]], [[1]]),
    ],
)
def test_inputs_are_converted_by_task(task_id: str, args: list[Any], converted: list[Any]) -> None:
    """The functions of MBPP+ get the tuples, sets and complex numbers that their statements speak of."""
    [got] = convert_inputs(task_id, [args])
    assert repr(converted) == repr(got)


def test_the_quickstart_tasks_are_in_the_schema_and_their_examples_hold() -> None:
    """Every example that a prompt shows is true of its reference."""
    import doctest

    tasks = load_evalplus(QUICKSTART)
    assert len(tasks) >= 10
    for task in tasks:
        space: dict[str, Any] = {}
        exec(task.sealed.solution.text("solution.py"), space)  # noqa: S102 - our own tasks
        found = doctest.DocTestFinder().find(space[task.open.details["entry_point"]], task.open.name, globs=space)
        runner = doctest.DocTestRunner(verbose=False)
        for examples in found:
            runner.run(examples)
        assert runner.summarize(verbose=False).attempted >= 1
        assert runner.failures == 0, task.key


def test_a_file_gives_one_task_without_parsing_the_others(tmp_path: Path) -> None:
    """Opened, it knows its ids and digest; a broken record elsewhere is in nobody's way until it is asked for."""
    path = written(tmp_path, record(), record(task_id="Own/1"), record(task_id="Own/2", atol="much"))
    file = open_evalplus(path)
    assert (file.benchmark, file.ids) == ("own", ("Own/0", "Own/1", "Own/2"))
    assert file.sha256 == digest_bytes(path.read_bytes())
    assert (
        file.task("Own/1")
        == load_evalplus(written(tmp_path, record(task_id="Own/1"), name="one.jsonl"), benchmark="own")[0]
    )
    with pytest.raises(TaskError, match=r"line 3, task 'Own/2': atol is 'much'"):
        file.task("Own/2")
    with pytest.raises(TaskError, match="unknown task id 'Own/9'"):
        file.task("Own/9")


def test_a_record_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run gets the very same task without its JSON; a changed line, or a damaged file, is parsed again."""
    path = written(tmp_path, record())
    first = open_evalplus(path).task("Own/0")
    [kept] = (tmp_path / "home" / "records").iterdir()
    parsed: list[str] = []
    read = evalplus._record

    def noted(line: str, where: str) -> dict[str, Any]:
        parsed.append(where)
        return read(line, where)

    monkeypatch.setattr(evalplus, "_record", noted)
    assert open_evalplus(path).task("Own/0") == first
    assert not parsed
    kept.write_bytes(kept.read_bytes()[:-1] + b" ")
    assert open_evalplus(path).task("Own/0") == first
    other = open_evalplus(written(tmp_path, record(prompt="def f(x): # other\n"))).task("Own/0")
    assert other.open.instruction != first.open.instruction
    assert len(parsed) == 2


def test_a_broken_record_is_never_kept(tmp_path: Path) -> None:
    """It is refused each time."""
    path = written(tmp_path, record(atol="much"))
    for _ in range(2):
        with pytest.raises(TaskError, match="atol is 'much'"):
            open_evalplus(path).task("Own/0")
    assert not (tmp_path / "home").exists()


def test_a_packed_file_has_the_digest_of_its_text(tmp_path: Path) -> None:
    """Packing changes no figure that names the data."""
    plain, packed = written(tmp_path, record()), written(tmp_path, record(), name="own.jsonl.gz")
    assert open_evalplus(plain).sha256 == open_evalplus(packed).sha256


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"task_id": "Own/0"}\n{"task_id": "Own/0"}\n', "line 2: task_id 'Own/0' is there twice"),
        ("\n\n", "holds no task"),
        ('{"prompt": "x"}\n', "missing task_id"),
        (
            '{"task_id": "Own/0", "task_id": "Own/1", "prompt": "", "entry_point": "f", "canonical_solution": "", "contract": "", "base_input": [[1]], "plus_input": [], "atol": 0}',
            "two task_ids",
        ),
    ],
)
def test_a_file_that_can_not_be_told_apart_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """Ids twice, no task, a line without an id, a record with two."""
    path = tmp_path / "own.jsonl"
    path.write_text(text)
    with pytest.raises(TaskError, match=said):
        open_evalplus(path).task("Own/0")
