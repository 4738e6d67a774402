"""
What the reference returned: computed in a sealed room, held by the judge, and never sent anywhere.

References run in a room of their own, which no candidate ever enters. Their values are kept in memory up to a bound,
and, when small, in a file per suite, which pins the version of Python: no run begins by running references.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from harness import environment
from harness.canonical import digest_bytes, digest_json
from harness.clock import fresh_token
from harness.errors import RefereeError, WorkspaceError
from referees.evalplus_cell import PROTOCOL, Cell, CellLost, Job, Message
from referees.evalplus_kept import Kept
from referees.evalplus_suite import TIERS, Suite, Tier
from referees.evalplus_values import parse

__all__ = ["Answer", "Expected", "ExpectedStore"]

_FORMAT = 1
_KEPT_BYTES = 256 << 20
_FILE_BYTES = 4 << 20
_CALL_S = 120.0
_BUDGET_S = 900.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """
    What one call of the reference gave: `V` the value's bytes, `D` the digest of a large value, `O` something that is
    no plain data (only its being there counts). `cpu_s` is the CPU time it took, in seconds.
    """

    kind: str
    data: bytes
    cpu_s: float

    def value(self) -> Any:
        """The value, for kind `V`."""
        return parse(self.data, max_nodes=len(self.data) + 1)


Expected = Mapping[Tier, tuple[Answer, ...]]
"""The answers to every call of a suite, by tier."""


class ExpectedStore:
    """Expected values by suite and version of Python: from memory, from a file, or from running the reference."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[int, Expected]] = OrderedDict()
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def get(self, suite: Suite, references: Kept) -> Expected:
        """
        The expected values of `suite`; whoever asks at the same time waits for the same run. `references` is a cell in
        which no candidate ever runs: the memory that a candidate's process inherits must never have held a reference.

        Raises `RefereeError` or `WorkspaceError` when, twice, the reference did not give them.
        """
        key = _key(suite)
        lock = self._locks.setdefault(key, anyio.Lock())
        async with lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
            path = environment.state_home() / "suites" / f"{key}.expected"
            expected = await anyio.to_thread.run_sync(_read, path, suite)
            if expected is None:
                expected = await _from_reference(suite, references)
                await anyio.to_thread.run_sync(_write, path, expected)
            self._keep(key, expected)
            return expected

    def _keep(self, key: str, expected: Expected) -> None:
        size = sum(len(answer.data) + 100 for answers in expected.values() for answer in answers)
        if size > _KEPT_BYTES:
            return
        self._kept[key] = (size, expected)
        while sum(kept for kept, _ in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)


def _key(suite: Suite) -> str:
    return digest_json({"suite": suite.digest, "protocol": PROTOCOL, "format": _FORMAT})


async def _from_reference(suite: Suite, references: Kept) -> Expected:
    try:
        return await references.do(lambda cell: _run_reference(cell, suite))
    except (CellLost, RefereeError, WorkspaceError):
        try:
            return await references.do(lambda cell: _run_reference(cell, suite))
        except CellLost as error:
            raise RefereeError(f"{suite.task_id}: the zygote was lost while the reference ran: {error}") from error


async def _run_reference(cell: Cell, suite: Suite) -> Expected:
    return {tier: await _answers(cell, suite, tier) for tier in TIERS}


async def _answers(cell: Cell, suite: Suite, tier: Tier) -> tuple[Answer, ...]:
    """Run the reference on one tier."""
    blobs = suite.blobs(tier)
    heard: list[Message] = []

    async def listen(message: Message) -> bool:
        heard.append(message)
        return len(heard) <= len(blobs) + 2

    job = Job(
        code=suite.reference.encode(),
        entry=suite.entry_point,
        prelude=suite.prelude,
        inputs=blobs,
        limits=[_CALL_S] * len(blobs),
        build=_CALL_S,
        budget=_BUDGET_S,
        memory=suite.options.memory_bytes,
    )
    ending = await cell.run(job, listen)
    answers = heard[1:-1]
    allowed = "VDO" if suite.rule == "not_none" else "VD"
    if [message.kind for message in (heard[:1] + heard[-1:])] != ["B", "E"] or len(answers) != len(blobs):
        last = heard[-1] if heard else None
        raise RefereeError(
            f"{suite.task_id}: the reference does not run on the {tier} tier ({ending}; "
            f"last word {last.kind if last else 'none'}, {len(answers)} of {len(blobs)} calls)"
        )
    for index, message in enumerate(answers):
        if message.kind not in allowed:
            raise RefereeError(
                f"{suite.task_id}: call {index} of the {tier} tier gives no value from the reference "
                f"({message.kind}: {message.payload[:120].decode('utf-8', 'replace')})"
            )
    return tuple(Answer(kind=message.kind, data=message.payload, cpu_s=message.cpu_s) for message in answers)


def _write(path: Path, expected: Expected) -> None:
    """Keep `expected` at `path` if it is small. A store that can't be written costs time later, and nothing else."""
    body = b"".join(answer.data for tier in TIERS for answer in expected[tier])
    if len(body) > _FILE_BYTES:
        return
    index = {tier: [[a.kind, a.cpu_s, len(a.data)] for a in expected[tier]] for tier in TIERS}
    data = json.dumps({"format": _FORMAT, "tiers": index}).encode() + b"\n" + body
    draft = path.with_name(f"{path.name}.{fresh_token(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(digest_bytes(data).encode() + b"\n" + data)
        os.replace(draft, path)  # noqa: PTH105 - Path.replace hides which of the two names comes first
    except OSError:
        draft.unlink(missing_ok=True)


def _read(path: Path, suite: Suite) -> Expected | None:
    """What `_write` kept, or None if nothing whole is there. Its bytes are read as a candidate's, never unpickled."""
    try:
        digest, _, data = path.read_bytes().partition(b"\n")
        if digest_bytes(data).encode() != digest:
            return None
        head, _, body = data.partition(b"\n")
        index, at = json.loads(head)["tiers"], 0
        expected: dict[Tier, tuple[Answer, ...]] = {}
        for tier in TIERS:
            answers = []
            for kind, cpu_s, length in index[tier]:
                answers.append(Answer(kind=kind, data=body[at : at + length], cpu_s=cpu_s))
                at += length
            expected[tier] = tuple(answers)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = at == len(body) and all(len(expected[tier]) == len(suite.calls[tier]) for tier in TIERS)
    return expected if whole else None
