"""What stands in the suite for what the subject raises and hands out, when it is made to harm the suite's own process."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from referees import pytest_remote
from referees.pytest_bridge import _offered
from referees.pytest_monitor import Monitor, Over
from referees.pytest_raised import made_from
from referees.pytest_remote import SubjectGone
from referees.pytest_wire import FRAME, LABEL, raw_frame
from tests.referees.test_pytest_wire import Far

BYTES, TEXT = b"\xff", "\u20ac"
PLACES = {
    "far before": (-(2**40), 1 - 2**40, False),
    "just before": (-1, 0, False),
    "behind": (0, 2, False),
    "backwards": (1, 0, False),
    "inside": (0, 1, True),
}


@pytest.fixture
def far() -> Iterator[Far]:
    """A subject at the other end of two pipes."""
    made = Far()
    yield made
    made.close()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError])
def test_a_place_outside_the_text_is_not_believed(kind: Any, place: str) -> None:
    """It would be looked up there, whatever is in that memory; a place inside the text is kept, and told."""
    start, end, kept = PLACES[place]
    whole: tuple[Any, ...] = ("utf-8", BYTES if kind is UnicodeDecodeError else TEXT, start, end, "why")
    made = made_from(kind, whole[kind is UnicodeTranslateError :], own=False)
    assert type(made) is kind
    assert ("why" in str(made)) == kept


def test_arguments_of_other_types_are_not_believed() -> None:
    """What such a class would not be made from, it isn't; another class of the library takes whatever it takes."""
    assert str(made_from(UnicodeDecodeError, ("utf-8", TEXT, 0, 1, "why"), own=False)) == ""
    assert str(made_from(UnicodeDecodeError, (), own=True)) == ""
    assert isinstance(made_from(OSError, (2, "none"), own=False), FileNotFoundError)
    assert str(made_from(KeyError, ("a",), own=False)) == "'a'"


@pytest.mark.parametrize("own", [True, False])
def test_a_group_is_a_group_of_as_many(own: bool) -> None:
    """A group crosses, its message and the number of what is in it with it; one of nothing known holds one."""
    kind = type("Own", (ExceptionGroup,), {}) if own else ExceptionGroup
    made = made_from(kind, ("several", [object()] * 3), own=own)
    assert (type(made), str(made)) == (kind, "several (3 sub-exceptions)")
    assert "1 sub-exception" in str(made_from(kind, (5, 6), own=own))
    assert len("".join(traceback.format_exception(made_from(kind, ("x", [1] * 10**5), own=own)))) < 10**6


def test_names_are_cut(far: Far) -> None:
    """A class and an object of a name without end have the beginning of it, also in what is reported of them."""
    far.answers(
        json.dumps({"x": {"chain": [[1, "E" * 10**4]], "base": "ValueError", "args": [], "text": "t"}}).encode()
    )
    with pytest.raises(ValueError, match="t") as raised:
        far.client.remote([0, "f" * 10**4])()
    assert raised.type.__name__ == "E" * LABEL
    assert repr(far.client.remotes[0]) == f"<subject's {'f' * LABEL}>"


def test_objects_and_classes_are_counted(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite takes so many of either, and the one after that is no answer; the same again is no other."""
    monkeypatch.setattr(pytest_remote, "HANDLES", 2)
    monkeypatch.setattr(pytest_remote, "CLASSES", 1)
    call = far.client.remote([0, "f"])
    for _ in range(2):
        far.answers(b'{"v": {"h": [1, "x"]}}')
        call()
        far.answers(b'{"x": {"chain": [[7, "E"]], "base": "ValueError", "args": [], "text": ""}}')
        with pytest.raises(ValueError, match=r"^$"):
            call()
    far.answers(b'{"x": {"chain": [[8, "F"]], "base": "ValueError", "args": [], "text": ""}}')
    with pytest.raises(SubjectGone, match="more than 1 exception classes"):
        call()
    far.client.fault = None
    far.answers(b'{"v": {"h": [2, "y"]}}')
    with pytest.raises(SubjectGone, match="more than 2 objects"):
        call()


def test_the_marks_of_an_answer_are_no_value(far: Far) -> None:
    """A method that was looked up, or an iterator's end, leaves the last answer as it was."""
    far.answers(b'{"v": 5}')
    found = far.client.remote([0, "f"])
    assert found() == 5
    far.answers(b'{"m": true}')
    assert repr(found.name) == "<subject's method name>"
    far.answers(b'{"stop": true}')
    with pytest.raises(StopIteration):
        next(found)
    assert far.client.last == "5"


INTERFACE = [{"module": "m", "names": ["f"], "exceptions": ["E"]}]


@pytest.mark.parametrize(("base", "taken"), [("ValueError", True), ("x" * FRAME, False)])
def test_a_greeting_is_not_longer_than_can_be_handed_on(base: str, taken: bool) -> None:
    """What the subject offers goes to the judge, with more beside it, in a frame that must not get too long."""
    found = {"m.f": [0, "f"], "m.E": {"chain": [[1, "E"]], "base": base}}
    if taken:
        assert _offered(found, INTERFACE)["m.E"]["base"] == base
    else:
        with pytest.raises(ValueError, match="more than the judge can be told"):
            _offered(found, INTERFACE)


@pytest.mark.parametrize("extra", [0, 1, 4])
def test_an_answer_is_not_longer_than_the_harness_takes(extra: int) -> None:
    """A greeting has no number before it, and so no four bytes more; one of the full length is passed on."""
    order = {"cpu_s": 1, "wall_s": 1.0}
    with Path("/dev/null").open("wb") as sink:
        monitor = Monitor((0, sink.fileno()), (0, 0), 0, order)
        if extra:
            with pytest.raises(Over, match=f"breach:a message of {FRAME + extra} bytes"):
                monitor._answered(raw_frame(b"H", bytes(FRAME + extra)))
        else:
            monitor._answered(raw_frame(b"H", bytes(FRAME)))
            assert monitor.awaited is None
