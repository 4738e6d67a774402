"""`proctor arm new`, `list` and `check`: what they write and print, what they refuse, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from arms.text import placebo
from cells.arm_scaffold import NewArm, new_arm
from cells.cli import app
from harness import plugins
from harness.errors import PluginError, UsageError
from harness.placebo import Limits, accept
from harness.placebo_draft import draft_placebo
from harness.text_shape import imperatives, sections, words
from tests.arms.folders import DIET, PACKET, packet_files, text_files, write_folder


def run(*said: str) -> Result:
    """What the command did."""
    return CliRunner().invoke(app, ["arm", *said])


@pytest.mark.parametrize("kind", ["text", "packet"])
def test_what_new_writes_passes_the_check(tmp_path: Path, kind: str) -> None:
    """A text and a packet: no error and no warning, and what is next is said."""
    made = run("new", "test-first", "--kind", kind, "--folder", str(tmp_path))
    assert made.exit_code == 0, made.output
    place = tmp_path / "test-first"
    assert f"proctor arm check {place}" in made.stdout
    checked = run("check", str(place), "--json")
    assert checked.exit_code == 0, checked.output
    assert {row["level"] for row in json.loads(checked.stdout)} == {"note"}


def test_the_folder_is_arms_beside_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing else is said; the line for the experiment can be copied."""
    monkeypatch.chdir(tmp_path)
    assert '{ folder = "arms/mine" }' in run("new", "mine").stdout
    assert run("check", "arms/mine").exit_code == 0


@pytest.mark.parametrize("treatment", [DIET, placebo().content.decode(), "Say what you do.\n"])
def test_a_draft_has_its_treatments_shape_and_none_of_its_words(tmp_path: Path, treatment: str) -> None:
    """A placebo of any treatment starts as one that is accepted, of one registered too."""
    write_folder(tmp_path, "diet", text_files("diet", treatment))
    made = run("new", "alike", "--placebo-for", "diet", "--folder", str(tmp_path))
    assert "a draft with the shape of diet" in made.stdout
    checked = run("check", str(tmp_path / "alike"))
    assert checked.exit_code == 0, checked.output
    assert "note: placebo: overlap against 'diet': 0.000" in checked.stdout


def test_a_draft_keeps_lengths_marks_and_imperatives() -> None:
    """Line by line, whatever the marks; a word without another of its length stays."""
    text = (
        "# Head\n\n1. Don't guess, read it twice.\n2. Extraordinarilylongword\n\n```py\nx = call(y)\n```\n- a\ttab\r\n"
    )
    draft = draft_placebo(text)
    assert (len(draft), len(words(draft))) == (len(text), len(words(text)))
    assert (sections(draft), imperatives(draft)) == (sections(text), imperatives(text))
    assert draft.splitlines()[2].startswith("1. Don't ")
    assert not {"guess", "twice", "extraordinarilylongword", "call"} & set(words(draft))
    assert accept(text, draft, Limits()).accepted
    assert draft_placebo("Only now") == "Only now"


def test_a_package_has_its_entry_point_and_its_tests(tmp_path: Path) -> None:
    """What is written is a whole package around the same folder."""
    made = run("new", "test-first", "--package", "--kind", "packet", "--folder", str(tmp_path))
    assert made.exit_code == 0, made.output
    top = tmp_path / "proctor-arm-test-first"
    assert {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()} == {
        "pyproject.toml",
        "README.md",
        "proctor_arm_test_first/__init__.py",
        "proctor_arm_test_first/test-first/arm.toml",
        "proctor_arm_test_first/test-first/packet.py",
        "proctor_arm_test_first/test-first/words.json",
        "tests/test_proctor_arm_test_first.py",
    }
    assert 'test-first = "proctor_arm_test_first:test_first"' in (top / "pyproject.toml").read_text("utf-8")
    assert run("check", str(top / "proctor_arm_test_first/test-first")).exit_code == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (NewArm(name="two words"), "'two words' is no name for an arm: expected 1 to 64 of"),
        (NewArm(name="../x"), "is no name for an arm"),
        (NewArm(name="Test_First", package=True), "expected small letters, digits and single hyphens"),
        (NewArm(name="plain"), "'plain' is taken by arms.text:plain of proctor: choose another name"),
        (NewArm(name="there"), "exists: choose another name, or remove it first"),
        (NewArm(name="x", placebo_for="thre"), r"unknown treatment 'thre'. Did you mean 'there'"),
        (NewArm(name="x", placebo_for="B"), "'B' has no text that a placebo could have the shape of"),
        (NewArm(name="x", kind="packet", placebo_for="there"), "a packet's placebo is a packet that mirrors it"),
    ],
)
def test_what_new_refuses(tmp_path: Path, asked: NewArm, said: str) -> None:
    """Nothing is overwritten, no name is had twice, and nothing is written where it says no."""
    write_folder(tmp_path, "there", text_files("there"))
    with pytest.raises(UsageError, match=said):
        new_arm(asked, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


BROKEN = {
    "too-short": (
        text_files("too-short", "Wait.", 'placebo_for = "diet"'),
        "error: placebo: words against 'diet': 1 words",
    ),
    "copied": (text_files("copied", DIET, 'placebo_for = "diet"'), "error: placebo: run against 'diet': "),
    "no-treatment": (text_files("no-treatment", more='placebo_for = "nowhere"'), "unknown treatment 'nowhere'"),
    "B": (text_files("B"), "error: name: 'B' is taken by arms.packets:PacketB of proctor"),
    "sealed": (
        packet_files("sealed", PACKET.replace("(self, view)", "(self, view, sealed)")),
        "error: sealed: `render` asks for `sealed` beside its view",
    ),
    "told": (text_files("told", "Mind the hidden tests."), "error: words: line 1 says 'hidden tests'"),
    "own-words": (text_files("own-words", more='forbidden = ["check"]'), "error: forbidden: line 3 says 'check'"),
    "deaf": (packet_files("deaf", PACKET.replace("{view.instruction}", "")), "error: sees: round 1 does not show"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_arm_is_found_by_the_check(tmp_path: Path, name: str) -> None:
    """One broken arm a refusal: exit code 3, and the sentence that its maintainer needs."""
    files, said = BROKEN[name]
    write_folder(tmp_path, "diet", text_files("diet"))
    ended = run("check", str(write_folder(tmp_path, name, files)))
    assert ended.exit_code == 3
    assert said in ended.stdout


def test_an_arm_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """Bad bytes, a missing card, and a name that nothing has."""
    bad = write_folder(tmp_path, "bad", text_files("bad", b"caf\xe9"))
    ended = run("check", str(bad))
    assert isinstance(ended.exception, PluginError)
    assert "byte 3 of the text is 0xe9, which is not UTF-8" in str(ended.exception)
    (tmp_path / "empty").mkdir()
    assert "arm.toml is missing" in str(run("check", str(tmp_path / "empty")).exception)
    assert "unknown arm 'plian'. Did you mean 'plain'" in str(run("check", "plian").exception)


def test_the_check_takes_a_registered_arm_and_a_text(tmp_path: Path) -> None:
    """As before: by name, or a file."""
    (tmp_path / "mine.md").write_text("Hello.\n", "utf-8")
    for name in ("placebo", str(tmp_path / "mine.md")):
        ended = run("check", name)
        assert ended.exit_code == 0
        assert "note: bytes: pinned: " in ended.stdout


def test_the_list_has_the_registered_arms_and_a_folders(tmp_path: Path) -> None:
    """For people and for scripts."""
    rows = json.loads(run("list", "--json").stdout)
    assert {row["name"] for row in rows} == set(plugins.table("arms"))
    write_folder(tmp_path, "diet", text_files("diet", more='placebo_for = "placebo"\nnonce = true'))
    more = json.loads(run("list", "--json", "--folder", str(tmp_path)).stdout)
    assert (more[-1]["name"], more[-1]["placebo_for"], more[-1]["nonce"]) == ("diet", "placebo", True)
    listed = run("list", "--folder", str(tmp_path)).stdout
    assert f"{tmp_path / 'diet'}, placebo for placebo, wants its code echoed" in listed
    assert isinstance(run("list", "--folder", str(tmp_path / "none")).exception, UsageError)
