"""
Samples as EvalPlus takes them: a `.jsonl` file (packed or not) with a program a line, or a folder with a file each.

Nothing is guessed. A line that is not plainly a sample is refused with its number, since whatever is left out or put
in by mistake would change a score. Keys that EvalPlus never looks at, as a model's name, are ignored and counted.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NoReturn, TypeAlias

from harness.errors import TaskError, unknown_name
from harness.tasks.evalplus_file import BENCHMARKS

__all__ = ["MOST_LINE_BYTES", "MOST_SAMPLES", "Sample", "read_samples", "samples_digest", "source_of"]

Kind: TypeAlias = Literal["solution", "completion"]
_Found: TypeAlias = Iterator[tuple[str, Kind, str, str]]
"""Task, kind, text, and where it came from."""

MOST_LINE_BYTES = 16 << 20
"""The longest line, or file of a folder, that is read, in bytes."""
MOST_SAMPLES = 1_000_000
"""More samples than this are refused."""

_TEXTS: tuple[Kind, ...] = ("solution", "completion")
_KNOWN = ("task_id", *_TEXTS)
_WRITTEN = frozenset({"_identifier", "_path"})
"""What EvalPlus itself writes into samples, and never looks at: nothing is said of these."""
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """
    One program for a task, as it was given. `number` counts the samples of its task from 0; a `completion` goes behind
    the task's prompt, a `solution` is whole. `where` says where it came from.
    """

    task_id: str
    number: int
    kind: Kind
    text: str
    where: str


def read_samples(path: Path, task_ids: Sequence[str], *, ignored: Counter[str] | None = None) -> list[Sample]:
    """
    Every sample of a file or a folder, in its order; `task_ids` are the tasks that there are. `ignored` is given the
    keys of lines that say nothing about a sample, and counts them.

    Raises `TaskError` that names the line or the file, what stands there, and what was expected.
    """
    if _is_folder(path):
        found = _from_folder(path, task_ids)
    else:
        found = _from_file(path, frozenset(task_ids), Counter() if ignored is None else ignored)
    counts: dict[str, int] = {}
    samples: list[Sample] = []
    for task_id, kind, text, where in found:
        number = counts.get(task_id, 0)
        counts[task_id] = number + 1
        samples.append(Sample(task_id=task_id, number=number, kind=kind, text=text, where=where))
        if len(samples) > MOST_SAMPLES:
            raise TaskError(f"{path} holds more than {MOST_SAMPLES:,} samples: judge it in parts")
    if not samples:
        raise TaskError(f"{path} holds no sample: expected {_wanted_in(path, task_ids)}")
    return samples


def _is_folder(path: Path) -> bool:
    """Whether samples lie in a folder, or in a file. Raises `TaskError` where there is neither."""
    try:
        if path.is_dir() or path.is_file():
            return path.is_dir()
        why = "is neither a file nor a folder" if path.exists() else "is not there"
    except OSError as error:
        why = f"can't be read: {error.strerror}"
    if str(path) == "-":
        why = "is not there, and standard input is not read, since results are kept beside the samples"
    raise TaskError(f"{path} {why}: expected a .jsonl or .jsonl.gz file of samples, or a folder of them")


def _wanted_in(path: Path, task_ids: Sequence[str]) -> str:
    """What a file or folder without a sample should hold; of a folder with files of samples, how to name one."""
    if not path.is_dir():
        return "at least one"
    wanted = f"a folder a task with a file a sample, such as {min(task_ids).replace('/', '_')}/0.py"
    packed = sorted(item for item in path.iterdir() if item.name.endswith((".jsonl", ".jsonl.gz")))
    return f"{wanted}. To judge a file of samples in it, name that: {packed[0]}" if packed else wanted


def _from_file(path: Path, task_ids: frozenset[str], ignored: Counter[str]) -> _Found:
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise TaskError(f"{path}: expected a name that ends in .jsonl or .jsonl.gz, or a folder")
    for number, line in _lines(path):
        where = f"line {number}"
        record = _object(line, f"{path}, {where}")
        yield *_checked(record, task_ids, f"{path}, {where}"), where
        ignored.update(key for key in record if key not in _KNOWN and key not in _WRITTEN)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1 and without their ends."""
    with closing(_opened(path)) as file:
        number = 0
        while True:
            number += 1
            try:
                line = file.readline(MOST_LINE_BYTES + 2)
            except (OSError, EOFError, zlib.error) as error:
                raise TaskError(f"{path}, line {number} can't be read: {error}") from error
            if not line:
                return
            if len(line) > MOST_LINE_BYTES:
                raise TaskError(f"{path}, line {number} is longer than {MOST_LINE_BYTES >> 20} MiB: no sample is")
            if number == 1 and line.startswith(_BOM):
                raise TaskError(f"{path}, line 1 begins with a byte order mark: expected UTF-8 without one")
            if line.strip():
                yield number, line.rstrip(b"\r\n")


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile:
    """The file's own bytes; what its first two say decides whether it is packed."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        return gzip.open(path) if packed else path.open("rb")
    except OSError as error:
        raise TaskError(f"{path} can't be read: {error}") from error


def _object(line: bytes, where: str) -> Mapping[str, Any]:
    """The JSON object that a line holds."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TaskError(f"{where} is not UTF-8 text (byte {error.start}: 0x{line[error.start]:02x})") from error
    if "\0" in text:
        raise TaskError(f"{where} holds a NUL byte: expected JSON text")
    try:
        record = json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        why = str(error) or type(error).__name__
        raise TaskError(f"{where} is not JSON ({why}): {_shown(text)}") from error
    if not isinstance(record, dict):
        raise TaskError(f"{where} is {_shown(text)}: expected a JSON object with task_id and solution or completion")
    return record


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{_cut(text)} is beyond the greatest number")
    return number


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return record


def _checked(record: Mapping[str, Any], task_ids: frozenset[str], where: str) -> tuple[str, Kind, str]:
    """Task, kind and text of a sample."""
    if "task_id" not in record:
        raise TaskError(f"{where} has no task_id{_misspelt(record, ['task_id'])}: expected the name of a task")
    task_id = record["task_id"]
    if not isinstance(task_id, str):
        raise TaskError(f"{where}: task_id is {_cut(json.dumps(task_id))}, expected a text")
    if task_id not in task_ids:
        raise TaskError(f"{where}: {_unknown_task(task_id, task_ids)}")
    given = [kind for kind in _TEXTS if kind in record]
    if len(given) != 1:
        what = "both solution and completion"
        if not given:
            what = f"neither solution nor completion{_misspelt(record, _TEXTS)}"
        raise TaskError(f"{where} ({task_id}) has {what}: expected one of them")
    text = record[given[0]]
    if not isinstance(text, str):
        raise TaskError(f"{where} ({task_id}): {given[0]} is {_cut(json.dumps(text))}, expected a text")
    return task_id, given[0], text


def _misspelt(record: Mapping[str, Any], wanted: Sequence[str]) -> str:
    """The key that was most likely meant for one that is missing."""
    for key in record:
        if key not in _KNOWN and (close := difflib.get_close_matches(key.lower(), wanted, n=1, cutoff=0.7)):
            return f", but {_shown(key)} (did you mean {close[0]!r}?)"
    return ""


def _shown(text: str) -> str:
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _unknown_task(name: str, task_ids: Sequence[str] | frozenset[str]) -> str:
    """As `unknown_name`, without hundreds of names."""
    if len(task_ids) <= 10:
        return unknown_name("task", name, task_ids)
    family, families = name.partition("/")[0], {task_id.partition("/")[0] for task_id in task_ids}
    ours = {known.lower() for known in families}
    if "/" in name and family.lower() in BENCHMARKS and family.lower() not in ours:
        return f"{name!r} is a task of --benchmark {family.lower()}, and these are {len(task_ids)} of {min(families)}."
    known = unknown_name("task", name, task_ids).partition(" Known:")[0]
    first = min(task_ids)
    return f"{known} There are {len(task_ids)} tasks, such as {first!r}."


def _from_folder(folder: Path, task_ids: Sequence[str]) -> _Found:
    """EvalPlus's other form: a folder a task (`HumanEval_0`), and in it a file a sample (`0.py`)."""
    by_folder: dict[str, str] = {}
    for task_id in task_ids:
        other = by_folder.setdefault(task_id.replace("/", "_"), task_id)
        if other != task_id:
            raise TaskError(f"tasks {other!r} and {task_id!r} have one folder name: write the samples as .jsonl")
    for place in sorted(folder.iterdir(), key=lambda item: _natural(item.name)):
        if not place.is_dir() or place.name.startswith((".", "__")):
            continue
        if place.name not in by_folder:
            raise TaskError(f"{place}: {_unknown_task(place.name, list(by_folder))}")
        for file in sorted(place.iterdir(), key=lambda item: _natural(item.name)):
            if file.suffix == ".py" and file.is_file():
                yield by_folder[place.name], "solution", _source(file), file.relative_to(folder).as_posix()


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts 2.py before 10.py."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _source(file: Path) -> str:
    try:
        if file.stat().st_size > MOST_LINE_BYTES:
            raise TaskError(f"{file} is longer than {MOST_LINE_BYTES >> 20} MiB: no sample is")
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise TaskError(f"{file} can't be read: {error}") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{file} is not UTF-8 text (at byte {error.start})") from error


def source_of(sample: Sample, prompt: str) -> bytes:
    """The program that a sample stands for, as bytes. A lone surrogate stays one, and does not compile."""
    whole = sample.text if sample.kind == "solution" else prompt + sample.text
    return whole.encode("utf-8", "surrogatepass")


def samples_digest(samples: Sequence[Sample]) -> str:
    """SHA-256 over tasks, kinds and texts in their order: the same for a packed file and a plain one."""
    state = hashlib.sha256()
    for sample in samples:
        for part in (sample.task_id, sample.kind, sample.text):
            data = part.encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()
