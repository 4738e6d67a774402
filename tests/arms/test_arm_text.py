"""Text arms: their bytes are pinned, and a prompt is the text, a blank line and the instruction."""

import pytest

from arms.text import MAX_TEXT_BYTES, TextArm, load_text_arm, placebo, plain
from harness import plugins
from harness.canonical import digest_bytes
from harness.errors import PluginError
from harness.views import Previous, PublicReading, RoundView

PLACEBO_DIGEST = "7cf00cc090b18e4766f1610c2f67e2447c7a2babc496bc37c2c08a0e38a388e9"


def view(**changes):
    """A first round."""
    return RoundView(**{"instruction": "Add two numbers.\n", **changes})


def test_plain_renders_the_instruction_alone():
    """Zero bytes of instruction: what the seat is told is the task's own text, byte by byte."""
    assert plain().content == b""
    assert plain().render(view()) == "Add two numbers.\n"


def test_placebo_is_frozen():
    """The placebo's bytes are the ones that experiments were registered with: a change needs a new arm name."""
    assert digest_bytes(placebo().content) == PLACEBO_DIGEST


def test_text_comes_first_then_one_blank_line():
    """However many newlines the text ends in, one blank line parts it from the instruction."""
    arm = TextArm("mine", b"Write a test first.\n\n\n")
    assert arm.render(view()) == "Write a test first.\n\nAdd two numbers.\n"
    assert arm.content == b"Write a test first.\n\n\n"


def test_extras_follow_in_the_order_of_their_names():
    """Extras are verbatim below the instruction, and their mapping's own order doesn't matter."""
    both = {"statement": "theorem t", "hint": "mind zero"}
    one = plain().render(view(extras=both))
    other = plain().render(view(extras=dict(reversed(both.items()))))
    assert one == other == "Add two numbers.\n\n\nmind zero\n\ntheorem t"


def test_rounds_do_not_change_a_text_arm():
    """A text arm shows nothing of the rounds before: not the code, not what the public tests said."""
    reading = PublicReading(reading="FAIL", accepted=False, passed=0, total=3)
    later = view(round=2, rounds=2, previous=Previous(code="x = 1", reading=reading))
    assert placebo().render(later) == placebo().render(view(round=1, rounds=2))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xef\xbb\xbfhello", "byte order mark"),
        (b"caf\xe9", "byte 3 of the text is 0xe9"),
        (b"a\0b", "character 1 of the text is NUL"),
        (b"\xed\xa0\x80", "not UTF-8"),
        (b"x" * (MAX_TEXT_BYTES + 1), "longer than 65536 bytes"),
    ],
)
def test_bad_bytes_are_refused(content, words):
    """What is not plain bounded UTF-8 is refused, with the place and the reason."""
    with pytest.raises(PluginError, match=words):
        TextArm("mine", content)


def test_a_text_of_the_greatest_size_is_taken():
    """The bound is inclusive."""
    assert len(TextArm("mine", b"x" * MAX_TEXT_BYTES).content) == MAX_TEXT_BYTES


@pytest.mark.parametrize("name", ["", "a|b", "two words", "-x", "x" * 65, "a/b", "a\n"])
def test_bad_names_are_refused(name):
    """An arm's name is part of keys and paths."""
    with pytest.raises(PluginError, match="arm name"):
        TextArm(name, b"text")


def test_load_text_arm_reads_the_file_as_it_is(tmp_path):
    """The arm's content is the file's bytes, a carriage return and all."""
    path = tmp_path / "mine.md"
    path.write_bytes("Schön.\r\n".encode())
    assert load_text_arm("mine", path).content == "Schön.\r\n".encode()


def test_load_text_arm_says_what_is_wrong(tmp_path):
    """A missing file, a folder, a blank file, a file too long and bad bytes are each refused, and the file is named."""
    cases = {
        "missing.md": (None, "does not exist"),
        "blank.md": (b" \n\n", "is blank.*'plain'"),
        "long.md": (b"x" * (MAX_TEXT_BYTES + 1), "longer than"),
        "latin.md": (b"\xff", "not UTF-8"),
    }
    for name, (content, words) in cases.items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(PluginError, match=words) as caught:
            load_text_arm("mine", path)
        assert name in str(caught.value)
    with pytest.raises(PluginError, match="not a regular file"):
        load_text_arm("mine", tmp_path)


def test_text_arms_run_in_every_registered_seat():
    """A text is shown to any seat, a third party's too."""
    assert frozenset(plugins.table("seats")) <= plain().seats
    assert {"oneshot", "loop", "command", "revise", "scripted"} <= plain().seats


@pytest.mark.parametrize("name", ["plain", "placebo", "B", "P"])
def test_built_in_arms_come_by_the_common_door(name):
    """A built-in is loaded as a third party's would be: by name, called with no argument."""
    assert plugins.load("arms", name)().name == name
