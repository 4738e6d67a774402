"""Samples in EvalPlus's two forms, and every file that is none: refused with its line, and nothing judged."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.errors import TaskError
from harness.tasks.samples import MOST_LINE_BYTES, Sample, read_samples, samples_digest, source_of

TASKS = tuple(f"HumanEval/{number}" for number in range(12))


def line(task: Any = "HumanEval/0", **more: Any) -> str:
    """One sample as a line."""
    return json.dumps({"task_id": task, **(more or {"solution": "pass"})}) + "\n"


def written(folder: Path, text: str | bytes, name: str = "samples.jsonl") -> Path:
    """A file of samples."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def test_samples_come_in_order_and_are_numbered_by_task(tmp_path: Path) -> None:
    """Several a task, in any order; blank lines count as lines and as nothing else."""
    path = written(tmp_path, line(solution="a") + "\n" + line("HumanEval/3", completion="b") + line(solution="a"))
    assert read_samples(path, TASKS) == [
        Sample(task_id="HumanEval/0", number=0, kind="solution", text="a", where="line 1"),
        Sample(task_id="HumanEval/3", number=0, kind="completion", text="b", where="line 3"),
        Sample(task_id="HumanEval/0", number=1, kind="solution", text="a", where="line 4"),
    ]


def test_a_solution_is_whole_and_a_completion_goes_behind_the_prompt(tmp_path: Path) -> None:
    """To the byte; a lone surrogate, which JSON can say and no file can hold, is kept."""
    path = written(tmp_path, line(solution="x\r\n") + line(completion="  return 'é'") + line(solution="\ud800"))
    assert [source_of(sample, "def f():\n") for sample in read_samples(path, TASKS)] == [
        b"x\r\n",
        "def f():\n  return 'é'".encode(),
        b"\xed\xa0\x80",
    ]


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.gz"])
def test_a_packed_file_is_read_as_a_plain_one(tmp_path: Path, name: str) -> None:
    """By its bytes, whatever its name; with the same digest. Ends of lines of another system are no part of a line."""
    text = (line(solution="a") + line("HumanEval/1")).replace("\n", "\r\n").encode()
    plain, packed = (
        read_samples(written(tmp_path, text), TASKS),
        read_samples(written(tmp_path, gzip.compress(text), name), TASKS),
    )
    assert plain == packed
    assert samples_digest(plain) == samples_digest(packed)


def test_the_digest_is_of_all_that_is_judged(tmp_path: Path) -> None:
    """Another text, task, kind, order or border between two of them is another digest."""
    texts = [
        line(solution="ab") + line("HumanEval/1", solution="c"),
        line(solution="a") + line("HumanEval/1", solution="bc"),
        line("HumanEval/2", solution="ab") + line("HumanEval/1", solution="c"),
        line(completion="ab") + line("HumanEval/1", solution="c"),
        line("HumanEval/1", solution="c") + line(solution="ab"),
    ]
    assert len({samples_digest(read_samples(written(tmp_path, text), TASKS)) for text in texts}) == len(texts)


def test_what_evalplus_ignores_is_ignored_and_counted(tmp_path: Path) -> None:
    """Any other key, whatever it holds; of those that EvalPlus itself writes nothing is said."""
    own = line(solution="a", _identifier="HumanEval/0 (line 1 in s.jsonl)", _path="x")
    path = written(tmp_path, own + line(solution="b", model="m", metadata={"a": [1]}) + line(completion="c", model="n"))
    ignored: Counter[str] = Counter()
    assert [sample.text for sample in read_samples(path, TASKS, ignored=ignored)] == ["a", "b", "c"]
    assert ignored == {"model": 2, "metadata": 1}
    assert [sample.text for sample in read_samples(path, TASKS)] == ["a", "b", "c"]


GOOD = line()
BAD: list[tuple[str, str | bytes, str]] = [
    ("empty", "", "holds no sample"),
    ("blank", "\n \n", "holds no sample"),
    ("bom", b"\xef\xbb\xbf" + GOOD.encode(), "line 1 begins with a byte order mark"),
    ("utf-16", GOOD.encode("utf-16-le"), "line 1 holds a NUL byte"),
    ("latin-1", GOOD.encode() + b'{"task_id": "HumanEval/0", "solution": "\xe9"}\n', r"line 2 is not UTF-8 text \(byte 40: 0xe9\)"),
    ("binary", b"\x7fELF\x02\x01\x01\xff\xfe", "line 1 is not UTF-8 text"),
    ("cut", GOOD + GOOD[:-9], "line 2 is not JSON"),
    ("two on a line", GOOD.strip() + GOOD, "line 1 is not JSON"),
    ("deep", "[" * 100_000, "line 1 is not JSON"),
    ("nan", '{"task_id": "HumanEval/0", "solution": NaN}\n', "NaN is no JSON value"),
    ("infinity", '{"task_id": "HumanEval/0", "solution": -Infinity}\n', "-Infinity is no JSON value"),
    ("great number", '{"task_id": "HumanEval/0", "solution": ' + "9" * 5000 + "}\n", "line 1 is not JSON"),
    ("key twice", '{"task_id": "HumanEval/0", "solution": "a", "solution": "b"}\n', "key 'solution' is there twice"),
    ("list", '["HumanEval/0", "pass"]\n', "expected a JSON object"),
    ("null", GOOD + "null\n", "line 2 is 'null': expected a JSON object"),
    ("no task", '{"solution": "a"}\n', "line 1 has no task_id"),
    ("task as number", line(0), "line 1: task_id is 0, expected a text"),
    ("unknown task", GOOD + "\n" + line("HumanEval/99"), "line 3: unknown task 'HumanEval/99'. Did you mean"),
    ("of the other benchmark", line("Mbpp/2"), r"line 1: 'Mbpp/2' is a task of --benchmark mbpp, and these are 12 of HumanEval\."),
    ("folder's name", line("HumanEval_1"), "Did you mean 'HumanEval/1'"),
    ("solution null", line(solution=None), r"line 1 \(HumanEval/0\): solution is null, expected a text"),
    ("solution list", line(solution=["a"]), r'solution is \["a"\], expected a text'),
    ("number beyond floats", '{"task_id": "HumanEval/0", "solution": "a", "p": -1e999}\n', "-1e999 is beyond"),
    ("family in small letters", line("humaneval/1"), "line 1: unknown task 'humaneval/1'. Did you mean 'HumanEval/1'"),
    ("no program", line(_path="x"), r"\(HumanEval/0\) has neither solution nor completion"),
    ("both", line(solution="a", completion="b"), r"has both solution and completion"),
    ("misspelt", line(solutions="a"), r"has neither solution nor completion, but 'solutions' \(did you mean 'solution'\?\)"),
    ("other case", line(Completion="a"), r"but 'Completion' \(did you mean 'completion'"),
    ("misspelt task", '{"task-id": "HumanEval/0", "solution": "a"}\n', r"line 1 has no task_id, but 'task-id' \(did you mean 'task_id'"),
    ("nan that is ignored", '{"task_id": "HumanEval/0", "solution": "a", "logprob": NaN}\n', "NaN is no JSON value"),
    ("huge", GOOD + '"' + "x" * (MOST_LINE_BYTES + 1) + '"\n', "line 2 is longer than 16 MiB"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), [pytest.param(text, said, id=name) for name, text, said in BAD])
def test_a_file_that_is_none_is_refused_with_its_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    """What stands there, and what was expected."""
    with pytest.raises(TaskError, match=said) as caught:
        read_samples(written(tmp_path, text), TASKS)
    assert "samples.jsonl" in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_packed_file_that_is_cut_is_refused(tmp_path: Path) -> None:
    """A download that stopped is not a shorter file."""
    whole = gzip.compress("".join(line(solution=str(n) * 50) for n in range(500)).encode())
    with pytest.raises(TaskError, match="can't be read"):
        read_samples(written(tmp_path, whole[:-30], "s.jsonl.gz"), TASKS)


def test_standard_input_and_names_too_long_are_told(tmp_path: Path) -> None:
    """A dash is no file; a name that no file can have is one that is not there."""
    with pytest.raises(TaskError, match="standard input is not read, since results are kept beside the samples"):
        read_samples(Path("-"), TASKS)
    with pytest.raises(TaskError, match="can't be read: File name too long"):
        read_samples(tmp_path / ("x" * 300 + ".jsonl"), TASKS)


@pytest.mark.parametrize("name", ["none.jsonl", "samples.txt", "samples.json"])
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    """One that is not there, a device, and names that say something else."""
    with pytest.raises(TaskError, match="is neither a file nor a folder"):
        read_samples(Path("/dev/null"), TASKS)
    written(tmp_path, GOOD, "samples.txt")
    written(tmp_path, GOOD, "samples.json")
    with pytest.raises(TaskError, match=r"expected a"):
        read_samples(tmp_path / name, TASKS)


def test_a_folder_a_task_and_a_file_a_sample(tmp_path: Path) -> None:
    """In the order of the numbers; what is no .py, and folders that begin with a dot, are not looked at."""
    for name in ("HumanEval_10/0.py", "HumanEval_2/10.py", "HumanEval_2/9.py", "HumanEval_2/raw.txt", ".git/0.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "notes.md").write_text("x")
    found = read_samples(tmp_path, TASKS)
    assert [(item.task_id, item.number, item.text, item.where) for item in found] == [
        ("HumanEval/2", 0, "HumanEval_2/9.py", "HumanEval_2/9.py"),
        ("HumanEval/2", 1, "HumanEval_2/10.py", "HumanEval_2/10.py"),
        ("HumanEval/10", 0, "HumanEval_10/0.py", "HumanEval_10/0.py"),
    ]


def test_folders_that_are_none_are_refused(tmp_path: Path) -> None:
    """Empty, of an unknown task, with a file that is no text."""
    with pytest.raises(
        TaskError, match="holds no sample: expected a folder a task with a file a sample, such as Human"
    ):
        read_samples(tmp_path, TASKS)
    (tmp_path / "run.jsonl").write_text(GOOD)
    with pytest.raises(TaskError, match=r"To judge a file of samples in it, name that: .*/run\.jsonl"):
        read_samples(tmp_path, TASKS)
    (tmp_path / "HumanEval_0").mkdir()
    (tmp_path / "HumanEval_0" / "0.py").write_bytes(b"\xff")
    with pytest.raises(TaskError, match=r"0\.py is not UTF-8 text"):
        read_samples(tmp_path, TASKS)
    (tmp_path / "HumanEval_99").mkdir()
    (tmp_path / "HumanEval_0" / "0.py").write_bytes(b"")
    with pytest.raises(TaskError, match="unknown task 'HumanEval_99'"):
        read_samples(tmp_path, TASKS)
    with pytest.raises(TaskError, match="have one folder name"):
        read_samples(tmp_path, ["A/B_C", "A_B/C"])
