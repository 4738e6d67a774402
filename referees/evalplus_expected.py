"""
What the reference returned: computed in a sealed room, held by the judge, and never sent anywhere.

References run in a room of their own, which no candidate ever enters. Their values are kept in memory up to a bound,
and in a file per suite, which pins the version of Python: no run begins by running references again.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from harness import environment
from harness.canonical import digest_bytes
from harness.errors import RefereeError, WorkspaceError
from harness.kept_file import read_kept, write_kept
from referees.evalplus_answers import Answers
from referees.evalplus_cell import PROTOCOL, Cell, CellLost, Frame, Frames, Job
from referees.evalplus_kept import Kept
from referees.evalplus_suite import TIERS, Suite, Tier

__all__ = ["Expected", "ExpectedStore"]

_FORMAT = 5
_KEPT_BYTES = 256 << 20
_CALL_S = 120.0
_BUDGET_S = 900.0
_SECONDS = struct.Struct("<d")
_NOTHING: Frame = ("", b"")


Expected = Mapping[Tier, Answers]
"""What the reference gave, by tier."""


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
        lock = self._locks.setdefault(key, anyio.Lock(fast_acquire=True))
        async with lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
            expected = await anyio.to_thread.run_sync(_read, _path(suite), suite)
            if expected is None:
                expected = await _from_reference(suite, references)
                await anyio.to_thread.run_sync(_write, _path(suite), expected)
            self._keep(key, expected)
            return expected

    def weight(self, suite: Suite) -> float:
        """CPU seconds of the reference, by what is kept of it; 0 where nothing is."""
        key = _key(suite)
        if key not in self._kept and (expected := _read(_path(suite), suite)) is not None:
            self._keep(key, expected)
        return sum(answers.total_s for answers in self._kept[key][1].values()) if key in self._kept else 0.0

    def _keep(self, key: str, expected: Expected) -> None:
        size = sum(tier.size for tier in expected.values())
        if size > _KEPT_BYTES:
            return
        self._kept[key] = (size, expected)
        while sum(kept for kept, _ in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)


@cache
def _writer() -> str:
    """The digest of the program that decides how a value is written."""
    return digest_bytes(Path(__file__).with_name("evalplus_child.py").read_bytes())


def _key(suite: Suite) -> str:
    return digest_bytes(f"{suite.material_digest} {PROTOCOL} {_FORMAT} {_writer()}".encode())


def _path(suite: Suite) -> Path:
    return environment.state_home() / "suites" / f"{_key(suite)}.expected"


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


async def _answers(cell: Cell, suite: Suite, tier: Tier) -> Answers:
    """Run the reference on one tier."""
    heard: list[Frame] = []
    frames = Frames()

    async def listen(piece: bytes) -> float | None:
        heard.extend(frames.take(piece))
        return None if len(heard) <= 3 * suite.total(tier) + 2 else 0.0

    job = Job(
        code=suite.reference.encode(),
        entry=suite.entry_point,
        prelude=suite.prelude,
        inputs=suite.inputs[tier],
        calls=suite.total(tier),
        build=_CALL_S,
        least=_CALL_S,
        budget=_BUDGET_S,
        memory=suite.options.memory_bytes,
        timed=True,
    )
    ending = await cell.run(job, listen)
    told = _told(heard)
    if told is None or len(told) != suite.total(tier):
        raise RefereeError(
            f"{suite.task_id}: the reference does not run on the {tier} tier ({ending.word}; last word "
            f"{heard[-1][0] if heard else 'none'}, {len(told or ())} of {suite.total(tier)} calls)"
        )
    allowed = "VDO" if suite.rule == "not_none" else "VD"
    for index, call in enumerate(told):
        kind, payload = call.exact
        if kind not in allowed:
            raise RefereeError(
                f"{suite.task_id}: call {index} of the {tier} tier gives no value from the reference "
                f"({kind}: {payload[:120].decode('utf-8', 'replace')})"
            )
    large = {index: call.exact for index, call in enumerate(told) if call.frame is not call.exact}
    return Answers.of((call.frame for call in told), (call.cpu_s for call in told), large)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """What a reference told of a call. `exact` is another frame than `frame` where that is a gist."""

    frame: Frame
    exact: Frame
    cpu_s: float


def _told(heard: Sequence[Frame]) -> list[_Call] | None:
    """The calls of a run that went from its first word to its last; None for any other."""
    if len(heard) < 2 or [heard[0][0], heard[-1][0]] != ["B", "E"]:
        return None
    calls: list[_Call] = []
    frames = iter(heard[1:-1])
    for frame in frames:
        exact = frame if frame[0] != "Q" else next(frames, _NOTHING)
        kind, seconds = next(frames, _NOTHING)
        if kind != "T" or len(seconds) != _SECONDS.size:
            return None
        calls.append(_Call(frame=frame, exact=exact, cpu_s=_SECONDS.unpack(seconds)[0]))
    return calls


def _write(path: Path, expected: Expected) -> None:
    """Keep `expected` at `path`."""
    parts = {tier: expected[tier].written() for tier in TIERS}
    head = json.dumps({"format": _FORMAT, "bytes": {tier: len(part) for tier, part in parts.items()}}).encode()
    data = head + b"\n" + zlib.compress(b"".join(parts.values()), 1)
    write_kept(path, data)


def _read(path: Path, suite: Suite) -> Expected | None:
    """What `_write` kept, or None if nothing whole is there. Its bytes are read as a candidate's, never unpickled."""
    data = read_kept(path)
    if data is None:
        return None
    try:
        head, _, packed = data.partition(b"\n")
        body = zlib.decompress(packed)
        public = json.loads(head)["bytes"]["public"]
        parts: dict[Tier, bytes] = {"public": body[:public], "hidden": body[public:]}
        return {tier: Answers.read(part, suite.total(tier)) for tier, part in parts.items()}
    except (ValueError, KeyError, TypeError, zlib.error):
        return None
