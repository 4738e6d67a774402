"""What may cross between suite and subject: the type table both ways, and answers that are none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referees.pytest_remote import Client, Remote, SubjectGone, SuiteFault
from referees.pytest_wire import DEPTH, FRAME, HASHED, NODES, WireError, frame, head, pack, read_frame, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


def shape(value: Any) -> Any:
    """The value with the type of every part written out, so that 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return ("dict", [(shape(key), shape(item)) for key, item in value.items()])
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [shape(item) for item in value])
    return (type(value).__name__, value)


def refuse(value: Any) -> Any:
    """Nothing is outside the table in these tests."""
    raise AssertionError(f"{value!r} became a handle")


@given(PLAIN)
def test_plain_data_crosses_exactly(value: Any) -> None:
    """Every value of the table comes out equal and of the same types, all the way down, through JSON text."""
    assert shape(unpack(json.loads(json.dumps(pack(value, refuse))), refuse)) == shape(value)


class Int(int):
    """A subclass of a plain type."""


@pytest.mark.parametrize("value", [Int(3), range(3), iter([]), object(), type, {}.keys(), 1j])
def test_what_is_not_in_the_table_is_a_handle(value: object) -> None:
    """A subclass, an iterator, a view, a class: each stays where it is, at the top and inside a list."""
    handle = [7, "thing"]
    assert pack(value, lambda _: handle) == {"h": handle}
    assert pack([value], lambda _: handle) == {"l": [{"h": handle}]}


def nested(depth: int) -> list[Any]:
    """A list in a list, and so on."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_limits_hold_in_both_directions() -> None:
    """A value at the limit crosses; one beyond it is refused by the sender, and by the receiver of a sender that isn't ours."""
    assert unpack(pack(nested(DEPTH), refuse), refuse) == nested(DEPTH)
    assert unpack(pack(set(range(HASHED)), refuse), refuse) == set(range(HASHED))
    for value in (nested(DEPTH + 1), [0] * NODES, set(range(HASHED + 1)), dict.fromkeys(range(HASHED + 1))):
        with pytest.raises(WireError):
            pack(value, refuse)
    packed: Any = {"l": []}
    for _ in range(DEPTH + 1):
        packed = {"l": [packed]}
    for data in (packed, {"l": [0] * NODES}, {"s": list(range(HASHED + 1))}):
        with pytest.raises(WireError):
            unpack(data, refuse)


@pytest.mark.parametrize(
    "data",
    [
        [], {}, {"l": 1}, {"x": []}, {"l": [], "t": []}, {"i": 3}, {"i": "zz"}, {"b": "*"}, {"d": [[1]]}, {"d": [1]},
        {"s": [{"l": []}]}, {"d": [[{"l": []}, 1]]}, {"b": None}, {"d": [[1, 2, 3]]},
    ],
)  # fmt: skip
def test_what_pack_never_makes_is_refused(data: Any) -> None:
    """Unknown tags, unhashable members, bad base64 and the like are one kind of error, whatever they would raise."""
    with pytest.raises(WireError):
        unpack(data, refuse)


def test_frames_have_a_limit() -> None:
    """A frame over its limit is neither made nor read."""
    with pytest.raises(WireError):
        frame(b"R", "x" * FRAME)
    with pytest.raises(WireError):
        head((FRAME + 1).to_bytes(4, "big") + b"R", FRAME)
    assert head((FRAME).to_bytes(4, "big") + b"R", FRAME) == (FRAME, b"R")


class Far:
    """A subject that answers what the test lays out, over pipes."""

    def __init__(self) -> None:
        reader, self.writer = os.pipe()
        self.reader, writer = os.pipe()
        self.ends = (reader, self.writer, self.reader, writer)
        self.client = Client(reader, writer)
        self.client.open = True

    def answers(self, body: bytes, kind: bytes = b"R") -> None:
        """Lay out the next answer."""
        os.write(self.writer, len(body).to_bytes(4, "big") + kind + body)

    def asked(self) -> Any:
        """The last request."""
        return json.loads(read_frame(self.reader)[1])

    def close(self) -> None:
        """Close all four ends."""
        for end in self.ends:
            os.close(end)


@pytest.fixture
def far() -> Iterator[Far]:
    """A subject at the other end of two pipes."""
    made = Far()
    yield made
    made.close()


def test_a_call_and_its_answer(far: Far) -> None:
    """A call crosses with its arguments; its answer is plain data, and a handle in it can be called in its turn."""
    far.answers(b'{"v": {"t": [1, {"h": [4, "Box"]}]}}')
    one, box = far.client.remote([0, "f"])(2, key=(3,))
    assert far.asked() == ["call", 0, [{"l": [2]}, {"d": [["key", {"t": [3]}]]}]]
    assert (one, type(box), repr(box)) == (1, Remote, "<subject's Box>")
    far.answers(b'{"v": 5}')
    assert far.client.remote([0, "f"])(box) == 5
    assert far.asked()[2][0] == {"l": [{"h": [4]}]}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"1", b"nonsense", b"{}", b'{"v": {"q": []}}', b'{"v": {"h": ["x", 1]}}', b'{"v": {"h": [1]}}',
        b'{"m": true}', b'{"stop": true}', b'{"x": {}}', b'{"x": 3}', b'{"x": {"exit": "SystemExit(0)"}}',
        b'{"x": {"chain": [[1, "a\\u0000b"]], "base": "ValueError", "args": [], "text": ""}}',
        b'{"x": {"chain": ' + json.dumps([[n, "E"] for n in range(99)]).encode() + b', "base": "ValueError", "args": [], "text": ""}}',
        b"[" * 50_000, b'{"v": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_an_answer_that_is_none_ends_the_subject(far: Far, body: bytes) -> None:
    """Whatever the subject sends that is no answer ends it: for good, and as no `Exception` of the suite's."""
    far.answers(body)
    with pytest.raises(SubjectGone):
        far.client.remote([0, "f"])()
    assert far.client.fault == "CRASH"
    with pytest.raises(SubjectGone, match="gone"):
        far.client.remote([0, "f"])()


def test_an_exception_comes_as_its_class(far: Far) -> None:
    """A built-in class comes as itself with its arguments; one of the subject's own as a class with its text."""
    far.answers(b'{"x": {"chain": [], "base": "KeyError", "args": ["k"], "text": "ignored"}}')
    with pytest.raises(KeyError) as plain:
        far.client.remote([0, "f"])()
    assert (plain.type, plain.value.args) == (KeyError, ("k",))
    lineage = {"chain": [[1, "Full"], [2, "StoreError"]], "base": "ValueError"}
    declared = far.client.exception_class({"chain": [[2, "StoreError"]], "base": "ValueError"})
    far.answers(json.dumps({"x": {**lineage, "args": [], "text": "no room"}}).encode())
    with pytest.raises(declared, match="no room") as own:
        far.client.remote([0, "f"])()
    assert own.type.__name__ == "Full"
    assert issubclass(own.type, ValueError)


def test_the_suite_keeps_to_its_rules(far: Far) -> None:
    """An object of the suite's own, a value too large, and a call while it is imported are its fault, and said so."""
    with pytest.raises(SuiteFault, match="passes a value of type object"):
        far.client.remote([0, "f"])(object())
    with pytest.raises(SuiteFault, match="of more than"):
        far.client.remote([0, "f"])([0] * NODES)
    far.client.open = False
    with pytest.raises(SuiteFault, match="while it is imported"):
        far.client.remote([0, "f"])()
    with pytest.raises(AttributeError):
        _ = far.client.remote([0, "f"]).name


def test_handles_compare_as_themselves(far: Far) -> None:
    """The same handle is equal to itself, to no other, and to no plain data; nothing is asked of the subject for it."""
    box, other = far.client.remote([1, "Box"]), far.client.remote([2, "Box"])
    assert box == far.client.remote([1, "Box"])
    assert box != other
    assert all(box != plain for plain in (1, "Box", None, [1], True))
    assert len({box, other}) == 2


def test_a_dunder_must_be_of_its_type(far: Far) -> None:
    """`len`, `bool` and `str` take an int, a bool and a str, and nothing that only looks like one."""
    box = far.client.remote([1, "Box"])
    for ask in (len, bool, str):
        far.answers(b'{"v": {"h": [9, "Int"]}}')
        with pytest.raises(TypeError, match="gave Remote"):
            ask(box)
