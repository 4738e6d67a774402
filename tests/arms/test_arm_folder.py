"""An arm in a folder is what its bytes make it, and each thing that is wrong with one is said."""

from importlib.resources import files

import pytest

from harness.arm_acceptance import check_placebo
from harness.arm_check import check_arm
from harness.arm_folder import arm_from_files, files_of, folder_arm, read_arm_folder
from harness.errors import PluginError
from harness.text_arm import SEAT_KINDS, TextArm
from harness.views import RoundView
from tests.arms.folders import DIET, LOOKALIKE, PACKET, packet_files, text_files, write_folder

VIEW = RoundView(instruction="Add.", round=2, rounds=3, nonce="abc123")


def errors(arm, arms=None):
    """What is said against an arm, by rule."""
    findings = [*check_arm(arm), *check_placebo(arm, arms or {})]
    return [(finding.rule, finding.detail) for finding in findings if finding.level == "error"]


def test_a_text_folder_is_a_text_arm(tmp_path):
    """The same prompt and the same pinned bytes as the text alone."""
    arm = folder_arm(write_folder(tmp_path, "diet", text_files("diet")))
    plain = TextArm("diet", DIET.encode())
    assert (arm.name, arm.content, arm.render(VIEW)) == ("diet", plain.content, plain.render(VIEW))
    assert arm.seats >= SEAT_KINDS
    assert errors(arm) == []


def test_a_packet_folder_is_run_from_its_bytes(tmp_path):
    """Its class is handed the folder's files, and what changes on the disk later changes nothing."""
    folder = write_folder(tmp_path, "rounds", packet_files("rounds"))
    arm = folder_arm(folder)
    (folder / "packet.py").write_text("raise RuntimeError", "utf-8")
    (folder / "words.json").write_text("{}", "utf-8")
    assert arm.render(VIEW) == "Round 2\n\nAdd."
    assert arm.seats == {"oneshot"}
    assert errors(arm) == []


def test_every_file_is_held(tmp_path):
    """What is pinned is all of the folder, caches left out."""
    given = text_files("diet") | {"more/notes.txt": b"n", "__pycache__/x.pyc": b"c"}
    arm = folder_arm(write_folder(tmp_path, "diet", given))
    assert set(files_of(arm)) == {"arm.toml", "text.md", "more/notes.txt"}
    (note,) = (finding.detail for finding in check_arm(arm) if finding.rule == "bytes")
    assert "all 3 files of its folder: arm.toml, more/notes.txt, text.md" in note
    assert files_of(TextArm("x", b"y")) is None


def test_a_folder_in_a_package_is_read(tmp_path, monkeypatch):
    """What an entry point's function does in a package of a third party's."""
    write_folder(tmp_path / "folders_of_mine", "diet", text_files("diet"))
    (tmp_path / "folders_of_mine/__init__.py").write_text("", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert folder_arm(files("folders_of_mine") / "diet").content == DIET.encode()


def test_a_packet_says_more_of_itself(tmp_path):
    """What a packet mirrors is asked of its arm; what none of both has is no attribute."""
    code = PACKET.replace("    files: dict", '    mirrors = "TC"\n    files: dict')
    arm = arm_from_files("rounds", packet_files("rounds", code))
    assert arm.mirrors == "TC"
    assert not hasattr(arm, "nothing")
    assert not hasattr(arm, "_nothing")
    assert not hasattr(arm.inner, "_nothing")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"arm.toml is missing: the folder has no files; `proctor arm new NAME` writes one"),
        ({"arm.toml": b"\xff"}, r"arm.toml is not valid TOML"),
        ({"arm.toml": b"name = "}, r"arm.toml is not valid TOML"),
        (text_files("other"), r"says name = 'other', and the folder is called 'diet'"),
        (text_files("diet", more="nonse = true"), r"unknown key 'nonse'. Did you mean 'nonce'\?"),
        (text_files("diet", more='kind2 = "x"'), r"unknown key 'kind2'"),
        (text_files("diet", more="nonce = 1"), r"nonce: Input should be a valid boolean.*got 1"),
        (text_files("diet", more="seats = []"), r"seats: .*at least 1 item"),
        (text_files("diet", more='renderer = "a:B"'), r"a text arm needs `text` and has no `renderer`"),
        (text_files("diet", more='placebo_for = "diet"'), r"`placebo_for` is 'diet', the arm itself"),
        (text_files("diet", more="[placebo]\nrun = 3"), r"`placebo_for` names no treatment"),
        (text_files("diet", more='placebo_for = "x"\n[placebo]\noverlap = nan'), r"placebo.overlap: .*finite"),
        ({"arm.toml": text_files("diet")["arm.toml"]}, r"text = 'text.md' is not in its folder, which has arm.toml"),
        (text_files("diet", b"caf\xe9"), r"byte 3 of the text is 0xe9, which is not UTF-8 .* \(read from text.md\)"),
        (text_files("diet", b"\xef\xbb\xbfhi"), r"starts with a byte order mark: save it as UTF-8 without one"),
        (text_files("diet", b"a\0b"), r"character 1 of the text is NUL"),
        (text_files("diet", b" \n"), r"text.md is blank"),
        (packet_files("diet", more='text = "a"'), r"a packet arm needs `renderer` and has no `text`"),
        (packet_files("diet", more='placebo_for = "x"'), r"a packet's placebo is a packet that mirrors it"),
        ({"arm.toml": b'name = "diet"\nkind = "packet"\nrenderer = "../x:Y"'}, r"expected `module:Class`"),
        ({"arm.toml": b'name = "diet"\nkind = "packet"\nrenderer = "x:Y"'}, r"x.py is not in its folder"),
        (packet_files("diet", "def f(:"), r"packet.py does not load: SyntaxError"),
        (packet_files("diet", "class Other: ..."), r"packet.py has no class 'Rounds'; its classes: Other"),
        (packet_files("diet", "class Rounds: ..."), r"can't be made of its folder's files: TypeError"),
        (packet_files("diet", "class Rounds:\n def __init__(self, f): self.content = 'x'"), r"is no packet: expected"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(given, said):
    """A refusal names the arm, what is there and what was expected."""
    with pytest.raises(PluginError, match=said) as refused:
        arm_from_files("diet", given)
    assert "arm 'diet'" in str(refused.value)


def test_a_folder_holds_regular_files_and_not_too_many(tmp_path):
    """A link would bring in what no digest covers."""
    with pytest.raises(PluginError, match=r"is no folder: expected one with an arm\.toml"):
        read_arm_folder(tmp_path / "nowhere")
    folder = write_folder(tmp_path, "diet", text_files("diet"))
    (folder / "link.md").symlink_to(folder / "text.md")
    with pytest.raises(PluginError, match=r"link.md is a link or a special file"):
        read_arm_folder(folder)
    (folder / "link.md").unlink()
    (folder / "big").write_bytes(b"x" * (1 << 20))
    with pytest.raises(PluginError, match="at most 64 files and 1048576 bytes"):
        read_arm_folder(folder)
    (folder / "big").unlink()
    for number in range(64):
        (folder / f"{number}").write_bytes(b"")
    with pytest.raises(PluginError, match="at most 64 files"):
        read_arm_folder(folder)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("view)", "view, sealed)"), "`render` asks for `sealed` beside its view"),
        (("view)", "view: SealedHalf)"), "`render` takes `view: SealedHalf`: an arm is never handed anything sealed"),
        (
            ("import json", "import json\nfrom harness.tasks.task import SealedHalf"),
            "packet.py, line 6: takes the sealed",
        ),
        (("import json", "import json\nimport referees.evalplus"), "packet.py, line 6: imports referees.evalplus"),
        (("view.round", "view.sealed"), "takes the sealed half: an arm sees the open half and the public facts alone"),
    ],
)
def test_a_packet_that_reaches_for_the_sealed_half_is_refused(changed, said):
    """Told from its types and its source, before a round is rendered."""
    arm = arm_from_files("rounds", packet_files("rounds", PACKET.replace(*changed)))
    assert said in "; ".join(detail for rule, detail in errors(arm) if rule == "sealed")


def test_a_word_that_the_card_forbids_is_refused():
    """The arm's own list, beside the one for all."""
    assert errors(arm_from_files("diet", text_files("diet", more='forbidden = ["pytest"]'))) == []
    found = errors(arm_from_files("diet", text_files("diet", more='forbidden = ["check"]')))
    assert found == [("forbidden", "line 3 says 'check', which its own arm.toml forbids")]


def test_a_placebo_is_measured_against_its_treatment():
    """Accepted, too short, the treatment itself, limits that tell nothing, and no treatment at all."""
    arms = {"diet": arm_from_files("diet", text_files("diet"))}
    shaped = arm_from_files("alike", text_files("alike", LOOKALIKE, 'placebo_for = "diet"'))
    assert errors(shaped, arms) == []
    short = arm_from_files("alike", text_files("alike", LOOKALIKE[:60], 'placebo_for = "diet"'))
    assert errors(short, arms)[0] == (
        "placebo",
        "characters against 'diet': 60 characters, the treatment has 200: expected 180 to 220",
    )
    same = arm_from_files("alike", text_files("alike", DIET, 'placebo_for = "diet"'))
    assert {detail.split()[0] for _rule, detail in errors(same, arms)} == {"overlap", "run"}
    loose = 'placebo_for = "diet"\n[placebo]\noverlap = 1.0\nrun = 1000'
    told = errors(arm_from_files("alike", text_files("alike", LOOKALIKE, loose)), arms)
    assert told[0][0] == "control"
    assert "accept the treatment itself as a placebo too" in told[0][1]
    assert "unknown treatment 'diet'" in errors(shaped, {"diat": arms["diet"]})[0][1]
    packet = {"diet": arm_from_files("diet", packet_files("diet"))}
    assert "'diet' is no text" in errors(shaped, packet)[0][1]
    registered = arm_from_files("alike", text_files("alike", LOOKALIKE, 'placebo_for = "placebo"'))
    assert "characters against 'placebo'" in errors(registered)[0][1]


def test_a_nonce_stands_before_everything():
    """The arm shows its cell's code; a packet may have one too."""
    for made in (text_files("diet", more="nonce = true"), packet_files("diet", more="nonce = true")):
        arm = arm_from_files("diet", made)
        assert arm.render(VIEW).startswith("The code of this page is abc123. ")
        assert errors(arm) == []


def test_an_arm_that_wants_an_echo_must_show_the_code():
    """A class that says it has a nonce and doesn't show it would have every cell VOID."""

    class Silent(TextArm):
        nonce = True

    assert errors(Silent("silent", b"Hello.")) == [
        ("nonce", f"round {number} does not show the code that it wants echoed") for number in (1, 2, 3)
    ]
