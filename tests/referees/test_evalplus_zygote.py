"""The zygote's parts that can be looked at without a room."""

from __future__ import annotations

import collections
import ctypes
import hashlib
import marshal
import os
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from referees import evalplus_child as child
from referees import evalplus_zygote as zygote
from referees.evalplus_confine import MACHINES, filter_program
from tests.referees.test_evalplus_values import few, values

pytestmark = pytest.mark.live


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes]]:
    """What the child sends."""
    frames: list[tuple[bytes, bytes]] = []
    monkeypatch.setattr(child, "send", lambda kind, payload=b"": frames.append((kind, payload)))
    return frames


@few
@given(values)
def test_pieces_are_the_value_s_bytes(value: Any) -> None:
    """In parts or at once, the bytes are marshal's."""
    assert marshal.dumps(value, 2) == b"".join(child.pieces(value))


@pytest.mark.parametrize("made", [list, tuple])
def test_a_long_list_comes_in_parts(made: Callable[[Any], Any], sent: list[tuple[bytes, bytes]]) -> None:
    """Parts put together are the whole, and a large one is named by digest and length."""
    value = made(range(3 * child.PART + 1))
    whole = marshal.dumps(value, 2)
    assert len(list(child.pieces(value))) == 5
    child.answer(value, len(whole), quick=False)
    child.answer(value, len(whole) - 1, quick=False)
    assert sent == [(b"V", whole), (b"D", hashlib.sha256(whole).digest() + struct.pack("<Q", len(whole)))]


def test_a_long_text_is_named_by_its_digest(sent: list[tuple[bytes, bytes]]) -> None:
    """Texts go by digest from a small size on, whatever the limit for other values."""
    child.answer("x" * child.TEXT_INLINE, 1 << 30, quick=False)
    child.answer("x" * 10, 1 << 30, quick=False)
    assert [kind for kind, _ in sent] == [b"D", b"V"]


class Whole(int):
    """An int that isn't exactly one."""


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: int


class Numpy:
    """Something that says it is numpy's."""

    __module__ = "numpy"

    def item(self) -> float:
        """The number that it holds."""
        return 1.5


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        (collections.OrderedDict(a=1), {"a": 1}),
        ([collections.defaultdict(int, a=1)], [{"a": 1}]),
        ((Numpy(), object), None),
        (Numpy(), 1.5),
        ([Whole(1)], None),
        (object(), None),
        (range(3), None),
        ((x for x in (1,)), None),
        (collections.deque([1]), None),
        (Pair(1, 2), None),
    ],
)
def test_what_is_plain(value: Any, read_as: Any, quick: bool, sent: list[tuple[bytes, bytes]]) -> None:
    """Standard dicts and numpy's scalars are reduced to builtins; any other class is opaque, however deep."""
    child.answer(value, 1 << 20, quick=quick)
    if read_as is None:
        assert sent[0][0] == b"O"
    else:
        assert sent == [(b"V", marshal.dumps(read_as, 2))]


class Still:
    """A watch that only counts."""

    def __init__(self, most: int) -> None:
        self.job, self.calls = {"most": most}, 0

    def answered(self, frames: int) -> None:
        """So many more."""
        self.calls += frames


@pytest.fixture
def passed_on(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What a relay passes on."""
    got: list[bytes] = []
    monkeypatch.setattr(zygote, "emit", lambda frames: got.extend(bytes(part) for part in frames[1:]))
    return got


def relayed(chunks: list[bytes], most: int = 99) -> tuple[list[bytes | None], int]:
    """What a relay says after each of `chunks`, and how many calls it counted."""
    reading, writing = os.pipe()
    watch = Still(most)
    relay = zygote.Relay(watch, zygote.Buffer(), b"")  # type: ignore[arg-type]  # a watch that only counts
    said = []
    for chunk in chunks:
        os.write(writing, chunk)
        said.append(relay.take(reading))
    zygote.emit(relay.rest())
    os.close(writing)
    os.close(reading)
    return said, watch.calls


def framed(kind: bytes, payload: bytes) -> bytes:
    """A child's frame."""
    return kind + struct.pack("<I", len(payload)) + payload


def test_frames_of_a_child(passed_on: list[bytes]) -> None:
    """However they are cut, frames are counted, and passed on as they are; the last one ends the job."""
    whole = framed(b"B", b"") + framed(b"V", b"ab") + framed(b"T", bytes(8)) + framed(b"V", b"") + framed(b"E", b"")
    for size in range(1, len(whole) + 1):
        passed_on.clear()
        chunks = [whole[at : at + size] for at in range(0, len(whole), size)]
        said, calls = relayed(chunks)
        assert [*[None] * (len(chunks) - 1), b"done"] == said
        assert calls == 4
        assert b"".join(passed_on) == whole


def test_what_is_no_frame_ends_the_job(passed_on: list[bytes]) -> None:
    """An unknown kind, a length beyond all measure, and more frames than the job has calls."""
    for bad in (framed(b"?", b""), b"V" + struct.pack("<I", zygote.MAX_FRAME + 1)):
        assert relayed([bad]) == ([b"crash:broke the protocol"], 0)
    assert passed_on == []
    one = framed(b"V", b"ab")
    for bad, most, word in ((framed(b"?", b""), 9, b"broke the protocol"), (one, 2, b"sent too much")):
        # What came before is passed on, however it was cut.
        for chunks in ([one + one + bad], [one + one[:3], one[3:] + bad]):
            passed_on.clear()
            said, calls = relayed(chunks, most)
            assert (said[-1], calls, b"".join(passed_on)) == (b"crash:" + word, 2, one + one)


def test_no_fork_takes_the_buffer_along() -> None:
    """What children sent is not in the memory of the next one: to look for it there is a bad address."""
    buffer = zygote.Buffer()
    buffer.memory[:6] = b"secret"
    pid = os.fork()
    if pid == 0:
        try:
            # The kernel reads it for us, so that a page that is not there is an error and no crash.
            os.write(os.open(os.devnull, os.O_WRONLY), buffer.view[:6])
            with open("/proc/self/maps") as maps:  # noqa: PTH123 - the least that a forked process can do
                there = any(line.startswith(f"{address(buffer):x}-") for line in maps)
            os._exit(1 if there else 0)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def address(buffer: zygote.Buffer) -> int:
    """Where the buffer begins."""
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer.memory))


def run_filter(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """What the kernel would return for one call: a small interpreter of the few instructions that are used."""
    words = struct.pack("<IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    operations = list(struct.iter_unpack("<HBBI", program))
    at = value = 0
    while True:
        code, if_true, if_false, k = operations[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", words, k)
            case 0x05:
                at += k
            case 0x06:
                return int(k)
            case 0x15:
                at += if_true if value == k else if_false
            case 0x35:
                at += if_true if value >= k else if_false
            case 0x45:
                at += if_true if value & k else if_false
            case _:
                raise AssertionError(code)


ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


@pytest.mark.parametrize("name", sorted(MACHINES))
def test_the_filter(name: str) -> None:
    """Every denied call fails; threads, reading limits and ordinary calls go through; other entries are closed."""
    machine = MACHINES[name]
    program, arch = filter_program(machine), machine["arch"]
    assert len(program) % 8 == 0
    for number in machine["denied"]:
        assert run_filter(program, arch, number) == EPERM, number
    read, write = (0, 1) if name == "x86_64" else (63, 64)
    for number in (read, write):
        assert run_filter(program, arch, number) == ALLOW
    looked_into = {machine["clone3"], machine["clone"]}
    for number in {*range(1000), 0x3FFFFFFF} - set(machine["denied"]) - looked_into:
        assert run_filter(program, arch, number) == ALLOW, number
    for number in (0x40000000, 0x7FFFFFFF, 0xFFFFFFFF):
        assert run_filter(program, arch, number) == EPERM, number
    assert run_filter(program, arch ^ 1, read) == KILL
    assert run_filter(program, arch, 0x40000000 + read) == EPERM
    assert run_filter(program, arch, machine["clone3"]) == ENOSYS
    assert run_filter(program, arch, machine["clone"], 0x3D0F00) == ALLOW
    assert run_filter(program, arch, machine["clone"], 17) == EPERM
    assert run_filter(program, arch, machine["prlimit"], 0) == ALLOW
    assert run_filter(program, arch, machine["prlimit"], 1) == EPERM
    assert run_filter(program, arch, machine["fcntl"], 3, 4) == ALLOW
    for command in (8, 10, 15):
        assert run_filter(program, arch, machine["fcntl"], 3, command) == EPERM
    for number, flags in machine["opens"]:
        assert run_filter(program, arch, number, *[0] * flags, 0o1) == ALLOW
        for making in (0o100, 0o20000000):
            assert run_filter(program, arch, number, *[0] * flags, making) == EPERM
    assert run_filter(program, arch, machine["ioctl"], 3, 0x5401) == ALLOW
    assert run_filter(program, arch, machine["ioctl"], 3, 0x8901) == EPERM
