"""
Tasks from a file in EvalPlus's schema: HumanEval+, MBPP+, or one of your own.

The seat gets the prompt; everything else (reference, inputs, contract, tolerance) is sealed.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.canonical import digest_bytes
from harness.errors import TaskError
from harness.seeds import draw_order
from harness.tasks.evalplus_file import locate, numbered_lines, text_of
from harness.tasks.evalplus_inputs import convert_inputs
from harness.tasks.evalplus_kept import keep, recall
from harness.tasks.profiles import profile as profile_of
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree

__all__ = ["SUITE_FILE", "EvalPlusFile", "load_evalplus", "open_evalplus"]

SUITE_FILE = "evalplus.json"
"""Where the sealed half keeps the record, below `tests/`."""

_TEXT_KEYS = ("task_id", "prompt", "entry_point", "canonical_solution", "contract")
_LIST_KEYS = ("base_input", "plus_input")
_REQUIRED = (*_TEXT_KEYS, *_LIST_KEYS, "atol")
_OPTIONAL = ("assertion", "test")
_STARTS = re.compile(r'\s*\{\s*"task_id"\s*:\s*"([^"\\]+)"')
"""How the lines of EvalPlus's own files begin: their task can be told without parsing the rest."""


def load_evalplus(
    source: str | Path,
    *,
    ids: Sequence[str] | None = None,
    draw: Mapping[str, int] | None = None,
    cap: int | None = None,
    benchmark: str | None = None,
    profile: str | None = None,
) -> list[Task]:
    """
    The tasks of `source`: `humaneval`, `mbpp`, or the path of a `.jsonl` or `.jsonl.gz` file in EvalPlus's schema.

    `profile` keeps a named part of the benchmark (`harness/tasks/profiles.py`). `ids` chooses tasks by name
    (`HumanEval/0` or `0`), in the order given. `draw` is `{"seed": S, "n": N}`: the N tasks whose SHA-256 of
    `S|task_id` is smallest, the same ones on every machine. `cap` keeps at most the first so many. They apply in this
    order. `benchmark` names the benchmark; by default that is the source's name or file stem.

    Raises `TaskError` for a file that is missing or not in the schema, an unknown or doubled id, a bad draw, or a
    profile of another data set.
    """
    name, path = locate(source)
    records = _read(path)
    if profile is not None:
        records = {kept: records[kept] for kept in profile_of(profile).keeps(records)}
    chosen = list(records.values()) if ids is None else [records[_resolve(wanted, records)] for wanted in ids]
    if ids is not None and len({record["task_id"] for record in chosen}) != len(chosen):
        raise TaskError(f"ids of {path} name a task twice: {', '.join(map(str, ids))}")
    if draw is not None:
        chosen = _draw(chosen, draw)
    if cap is not None:
        if cap < 1:
            raise TaskError(f"cap is {cap}: expected 1 or more")
        chosen = chosen[:cap]
    return [_task(record, benchmark or name) for record in chosen]


def _read(path: Path) -> dict[str, dict[str, Any]]:
    records: dict[str, dict[str, Any]] = {}
    for number, line in numbered_lines(text_of(path)):
        where = f"{path}, line {number}"
        record = _record(line, where)
        if record["task_id"] in records:
            raise TaskError(f"{where}: task_id {record['task_id']!r} is there twice")
        records[record["task_id"]] = record
    if not records:
        raise TaskError(f"{path} holds no task")
    return records


def _record(line: str, where: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise TaskError(f"{where} is not JSON: {error}") from error
    _check(record, where)
    return record


@dataclass(frozen=True, kw_only=True)
class EvalPlusFile:
    """A file of tasks of which each is parsed when it is asked for. `sha256` is that of its unpacked text."""

    benchmark: str
    path: Path
    sha256: str
    lines: Mapping[str, tuple[int, str]] = field(repr=False)

    @property
    def ids(self) -> tuple[str, ...]:
        """The tasks in the order of the file."""
        return tuple(self.lines)

    def task(self, task_id: str) -> Task:
        """One task. Raises `TaskError` when the file has none of that name, or its record is not in the schema."""
        number, line = self.lines[_resolve(task_id, self.lines)]
        fields, suite = recall(line) or self._parsed(line, number)
        if fields["task_id"] not in self.lines or self.lines[fields["task_id"]][0] != number:
            raise TaskError(f"{self.path}, line {number}: it has two task_ids, {fields['task_id']!r} and another")
        return _made(fields, suite, self.benchmark)

    def _parsed(self, line: str, number: int) -> tuple[dict[str, Any], str]:
        record = _record(line, f"{self.path}, line {number}")
        suite = _text(record)
        keep(line, record, suite)
        return record, suite


def open_evalplus(source: str | Path, *, benchmark: str | None = None) -> EvalPlusFile:
    """
    The file that `source` names, as `load_evalplus` takes it: only what is asked for will be parsed.

    Raises `TaskError` for a file that is missing or unreadable, and for an id that is there twice.
    """
    name, path = locate(source)
    text = text_of(path)
    lines: dict[str, tuple[int, str]] = {}
    for number, line in numbered_lines(text):
        start = _STARTS.match(line)
        task_id = start[1] if start else _record(line, f"{path}, line {number}")["task_id"]
        if task_id in lines:
            raise TaskError(f"{path}, line {number}: task_id {task_id!r} is there twice")
        lines[task_id] = (number, line)
    if not lines:
        raise TaskError(f"{path} holds no task")
    return EvalPlusFile(benchmark=benchmark or name, path=path, sha256=digest_bytes(text.encode()), lines=lines)


def _check(record: Any, where: str) -> None:
    """Refuse, by name, a record that is not in the schema."""
    if not isinstance(record, dict):
        raise TaskError(f"{where}: {type(record).__name__}, expected a JSON object")
    label = f"{where}, task {record.get('task_id', '(without task_id)')!r}"
    if missing := [key for key in _REQUIRED if key not in record]:
        raise TaskError(f"{label}: missing {', '.join(missing)}; expected {', '.join(_REQUIRED)}")
    if unknown := sorted(set(record) - set(_REQUIRED) - set(_OPTIONAL)):
        raise TaskError(f"{label}: unknown {', '.join(unknown)}; known: {', '.join((*_REQUIRED, *_OPTIONAL))}")
    for key in (*_TEXT_KEYS, *_OPTIONAL):
        if not isinstance(record.get(key, ""), str):
            raise TaskError(f"{label}: {key} is {type(record[key]).__name__}, expected a string")
    _check_values(record, label)


def _check_values(record: dict[str, Any], label: str) -> None:
    if not record["entry_point"].isidentifier():
        raise TaskError(f"{label}: entry_point is {record['entry_point']!r}, expected a Python name")
    atol = record["atol"]
    if isinstance(atol, bool) or not isinstance(atol, int | float) or not math.isfinite(atol) or atol < 0:
        raise TaskError(f"{label}: atol is {atol!r}, expected a finite number, 0 or more")
    if record["plus_input"] == {}:  # how MBPP+ writes that a task has no plus inputs
        record["plus_input"] = []
    for key in _LIST_KEYS:
        calls = record[key]
        if not isinstance(calls, list) or not all(isinstance(args, list) for args in calls):
            raise TaskError(f"{label}: {key} is not a list of argument lists")
        try:
            convert_inputs(record["task_id"], calls)
        except ValueError as error:
            raise TaskError(f"{label}: {error}") from error
    if not record["base_input"]:
        raise TaskError(f"{label}: base_input is empty, so that the public tier would accept anything")


def _resolve(wanted: str, records: Mapping[str, Any]) -> str:
    """The full id that `wanted` stands for."""
    if wanted in records:
        return wanted
    short: dict[str, list[str]] = {}
    for task_id in records:
        short.setdefault(task_id.rpartition("/")[2], []).append(task_id)
    matches = short.get(str(wanted), [])
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise TaskError(f"task id {wanted!r} stands for more than one task: {', '.join(matches)}")
    near = difflib.get_close_matches(str(wanted), [*records, *short], n=3, cutoff=0.3) or list(records)[:3]
    raise TaskError(f"unknown task id {wanted!r}; nearest: {', '.join(near)} (of {len(records)} tasks)")


def _draw(records: list[dict[str, Any]], draw: Mapping[str, int]) -> list[dict[str, Any]]:
    if set(draw) != {"seed", "n"} or not all(type(value) is int for value in draw.values()):
        raise TaskError(f"draw is {dict(draw)!r}: expected whole numbers 'seed' and 'n'")
    if not 1 <= draw["n"] <= len(records):
        raise TaskError(f"draw asks for {draw['n']} of {len(records)} tasks: expected 1 to {len(records)}")
    by_id = {record["task_id"]: record for record in records}
    return [by_id[name] for name in draw_order(by_id, draw["seed"])[: draw["n"]]]


def _task(record: dict[str, Any], benchmark: str) -> Task:
    return _made(record, _text(record), benchmark)


def _text(record: dict[str, Any]) -> str:
    """A record as the sealed half keeps it."""
    # Python's own JSON: the inputs of MBPP+ hold infinities and integers beyond 2**53, which RFC 8785 has no words for.
    return json.dumps(record, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _made(fields: Mapping[str, Any], suite: str, benchmark: str) -> Task:
    return Task(
        open=OpenHalf(
            benchmark=benchmark,
            name=fields["task_id"],
            instruction=fields["prompt"],
            details={"entry_point": fields["entry_point"], "prompt": fields["prompt"]},
        ),
        sealed=SealedHalf(
            tests=Tree.of({SUITE_FILE: suite}),
            solution=Tree.of({"solution.py": fields["prompt"] + fields["canonical_solution"]}),
        ),
    )
