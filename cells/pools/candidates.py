"""
A pool's file: JSON lines, a header and then one candidate a line, in an order that is given.

Each line carries the digest of the header, each candidate the SHA-256 of its own content; the pool's digest is the
SHA-256 of the file's bytes. A line that was cut off is dropped by who goes on with the file, refused by who reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.canonical import canonical_bytes, digest_bytes, digest_json
from harness.errors import IntegrityError, UsageError
from harness.facts import facts_json, unbuilt_json
from harness.values import Unit
from harness.views import Fact, Previous, PublicReading

__all__ = [
    "SCHEMA",
    "Pool",
    "candidate_line",
    "header_line",
    "parse_pool",
    "pool_bytes",
    "read_pool",
    "reading_json",
    "wanted",
]

SCHEMA = "proctor-pool/1"
_FAMILY = SCHEMA.partition("/")[0] + "/"
_BEGINS = b'{"arm":{"name":"'
"""How every header begins: what tells one that was cut off from a file of something else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """
    A pool as it was read: `header`, `digest` (of the file), and the lines of each unit in the order of their index.

    A line has `standard` and `robust`, or `void` where the model could not be asked: nothing is known of it then.
    """

    header: Mapping[str, Any]
    digest: str
    lines: Mapping[Unit, tuple[Mapping[str, Any], ...]]

    @property
    def n(self) -> int:
        """How many candidates a unit has."""
        return int(self.header["n"])

    @property
    def missing(self) -> int:
        """How many candidates are still to be made."""
        return len(wanted(self.header)) - sum(map(len, self.lines.values()))

    def state(self, unit: Unit) -> str:
        """`alive`: some candidate was accepted, under either extraction; `dead`: none of all; else `unknown`."""
        lines = self.lines.get(unit, ())
        reads = [
            line[how]["reading"]["accepted"] for line in lines if "void" not in line for how in ("standard", "robust")
        ]
        if any(reads):
            return "alive"
        return "dead" if len(reads) == 2 * self.n else "unknown"

    def previous(self, unit: Unit) -> tuple[Previous, ...]:
        """The unit's candidates that have code, in their order: by the standard extraction, else by the robust one."""
        return tuple(_previous(kept) for line in self.lines.get(unit, ()) if (kept := _kept(line))["code"])

    def prompt_chars(self, unit: Unit) -> int:
        """The length of the unit's prompt, in characters."""
        return int(self.lines[unit][0]["prompt_chars"])


def _kept(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a candidate is: by the standard extraction, or by the robust one where that found no code."""
    if "void" in line:
        return {"code": ""}
    kept: Mapping[str, Any] = line["standard"] if line["standard"]["code"] else line["robust"]
    return kept


def _previous(kept: Mapping[str, Any]) -> Previous:
    told = kept["reading"]
    facts = tuple(Fact(**fact) for fact in told["facts"])
    return Previous(code=kept["code"], reading=PublicReading(**{**told, "facts": facts}))


def reading_json(reading: PublicReading) -> dict[str, Any]:
    """A reading as a pool keeps it."""
    return {
        "reading": reading.reading,
        "accepted": reading.accepted,
        "passed": reading.passed,
        "total": reading.total,
        "facts": facts_json(reading.facts),
        "suite": reading.suite,
        "execution": reading.execution,
        **unbuilt_json(reading),
    }


def header_line(header: Mapping[str, Any]) -> bytes:
    """The first line of a pool."""
    return canonical_bytes(dict(header)) + b"\n"


def candidate_line(header: Mapping[str, Any], unit: Unit, index: int, content: Mapping[str, Any]) -> bytes:
    """The line of one candidate."""
    body = {
        "pool": digest_json(dict(header)),
        "benchmark": unit.benchmark,
        "model": unit.model,
        "task": unit.task,
        "index": index,
        **content,
    }
    return canonical_bytes({**body, "sha256": digest_json(body)}) + b"\n"


def wanted(header: Mapping[str, Any]) -> list[tuple[Unit, int]]:
    """Every candidate of a pool in the order of the file: model by model, so that one is loaded at a time."""
    return [
        (Unit(benchmark=task["benchmark"], model=model, task=task["task"]), index)
        for model in sorted(header["models"])
        for task in header["tasks"]
        for index in range(header["n"])
    ]


def parse_pool(data: bytes, origin: str) -> Pool:
    """
    The pool that `data` is. Raises `UsageError` for what is none at all, and `IntegrityError` with the line that is not
    what it should be.
    """
    first, *rest = data.split(b"\n")
    if not _is_pool(first, whole=bool(rest)):
        raise UsageError(
            f"{origin} is no pool: expected a file that `proctor pool make` wrote, whose first line has the schema "
            f"{SCHEMA!r}"
        )
    if rest[-1:] != [b""]:
        raise IntegrityError(
            f"{origin}: its last line is cut off: `proctor pool make` with the same file goes on with it"
        )
    header = _header(first, f"{origin}, line 1")
    order, mark = wanted(header), digest_json(header)
    if len(rest) - 1 > len(order):
        raise IntegrityError(f"{origin} has {len(rest) - 1} candidates: its header wants {len(order)}")
    found: dict[Unit, list[Mapping[str, Any]]] = {}
    for number, (line, (unit, index)) in enumerate(zip(rest[:-1], order, strict=False), 2):
        where = f"{origin}, line {number}"
        body = _json(line, where)
        kept = body.pop("sha256", None)
        if kept != digest_json(body):
            raise IntegrityError(f"{where}: it is not what its own digest says")
        place = tuple(body.get(key) for key in ("pool", "benchmark", "model", "task", "index"))
        if place != (mark, unit.benchmark, unit.model, unit.task, index):
            raise IntegrityError(f"{where}: expected candidate {index} of {unit}, of this very pool")
        found.setdefault(unit, []).append(body)
    return Pool(header=header, digest=digest_bytes(data), lines={unit: tuple(rows) for unit, rows in found.items()})


def _is_pool(first: bytes, *, whole: bool) -> bool:
    """Whether a file's first line, `whole` or cut off, is a pool's, of this schema or another."""
    if not whole:
        return bool(first) and first[: len(_BEGINS)] == _BEGINS[: len(first)]
    try:
        header = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(header, dict) and str(header.get("schema")).startswith(_FAMILY)


def _header(line: bytes, where: str) -> dict[str, Any]:
    """A header of this schema, with all that tells which candidates there should be."""
    header = _json(line, where)
    if header.get("schema") != SCHEMA:
        raise IntegrityError(f"{where}: schema is {header.get('schema')!r}: expected {SCHEMA!r}")
    n, names = header.get("n"), ("benchmark", "task")
    if type(n) is not int or n < 1:
        raise IntegrityError(f"{where}: n is {n!r}: expected a whole number of 1 or more")
    for key, kind in (("models", dict), ("tasks", list), ("seed_namespace", str)):
        if not isinstance(header.get(key), kind):
            raise IntegrityError(f"{where}: {key} is {header.get(key)!r}: expected what `proctor pool make` writes")
    for task in header["tasks"]:
        if not isinstance(task, dict) or not all(isinstance(task.get(name), str) for name in names):
            raise IntegrityError(f"{where}: a task is {task!r}: expected a table with {' and '.join(names)}")
    return header


def read_pool(path: Path) -> Pool:
    """The pool in a file. Raises `UsageError` when it can't be read, `IntegrityError` when it is not what it says."""
    return parse_pool(pool_bytes(path), str(path))


def pool_bytes(path: Path) -> bytes:
    """The bytes of a pool's file. Raises `UsageError` when it can't be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error}. `proctor pool make` writes one") from None


def _json(line: bytes, where: str) -> dict[str, Any]:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"{where} is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise IntegrityError(f"{where} is {type(body).__name__}: expected an object")
    return body
