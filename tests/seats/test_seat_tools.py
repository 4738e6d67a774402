"""A seat's tools: each served, refused, absent and failed; bounded; and deaf to whatever a model may send."""

import json
from dataclasses import replace

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import WorkspaceError
from harness.seats import tool_specs
from harness.seats.bounded import bounded_arguments, shown_bytes
from harness.seats.tools import SeatTools
from harness.transcript import Transcript, read_transcript
from harness.walls import ToolRules
from tests.fake_workspace import FakeWorkspace, ran
from tests.seats.desks import RULES, TOOLS

pytestmark = pytest.mark.anyio

FILES = {"a.py": "x = 1\ny = 2\n", "src/b.py": "x = 3\n", "secret/key.txt": "x = canary\n", "secrets.txt": "x = open\n"}
DENIED = replace(RULES, denied=("/workspace/secret",))


def room(**programs):
    """A workspace with files, in which bash answers with its own command's text."""
    return FakeWorkspace(FILES, programs={"bash": lambda call: ran(stdout=call.argv[2].encode()), **programs})


@pytest.mark.parametrize(
    ("name", "arguments", "standing", "text"),
    [
        ("run", {"command": "echo hi"}, "served", "echo hi\n[exit status 0]"),
        ("read", {"path": "a.py"}, "served", "x = 1\ny = 2\n"),
        ("read", {"path": "/workspace/a.py", "start": 2}, "served", "y = 2\n"),
        ("read", {"path": "a.py", "lines": 1}, "served", "x = 1"),
        ("write", {"path": "new/c.py", "content": "é"}, "served", "wrote 2 bytes to /workspace/new/c.py"),
        ("edit", {"path": "a.py", "old": "y = 2", "new": "y = 3"}, "served", "edited /workspace/a.py at line 2"),
        ("list", {}, "served", "a.py (file, 12 bytes)\nsecrets.txt (file, 9 bytes)\nsrc/"),
        ("list", {"path": "src"}, "served", "b.py (file, 6 bytes)"),
        ("search", {"pattern": r"x = \d"}, "served", "/workspace/a.py:1: x = 1\n/workspace/src/b.py:1: x = 3"),
        ("search", {"pattern": "nowhere"}, "served", "no line below /workspace matches"),
        ("submit", {"note": "ok"}, "served", "submitted"),
        ("read", {"path": "secret/key.txt"}, "refused", "/workspace/secret, which is denied"),
        ("read", {"path": "/etc/passwd"}, "refused", "/etc/passwd is in no readable root"),
        ("read", {"path": "../etc/passwd"}, "refused", "has a '..' part"),
        ("read", {"path": "src"}, "refused", "it is a folder"),
        ("write", {"path": "/etc/x", "content": ""}, "refused", "no writable root"),
        ("write", {"path": "secret/new", "content": ""}, "refused", "denied"),
        ("edit", {"path": "secret/key.txt", "old": "x", "new": "y"}, "refused", "denied"),
        ("list", {"path": "secret"}, "refused", "denied"),
        ("search", {"pattern": "x", "path": "secret"}, "refused", "denied"),
        ("read", {"path": "none.py"}, "absent", "not there"),
        ("edit", {"path": "none.py", "old": "x", "new": "y"}, "absent", "not there"),
        ("list", {"path": "none"}, "absent", "not there"),
        ("search", {"pattern": "x", "path": "none"}, "absent", "not there"),
        ("read", {"path": "a.py", "start": 9}, "failed", "there is no line 9"),
        ("edit", {"path": "a.py", "old": "z", "new": "y"}, "failed", "exactly one match"),
        ("edit", {"path": "a.py", "old": " = ", "new": "y"}, "failed", "more than once"),
        ("list", {"path": "a.py"}, "refused", "a file where a folder belongs"),
        ("search", {"pattern": "(", "path": "src"}, "failed", "not a regular expression"),
        ("search", {"pattern": "x", "path": "a.py"}, "refused", "a file where a folder belongs"),
        ("write", {"path": "a.py"}, "failed", "write needs content"),
        ("deploy", {}, "failed", "unknown tool 'deploy'"),
    ],
)  # fmt: skip
async def test_each_standing_of_each_tool(name, arguments, standing, text):
    """What was done, what is forbidden, what isn't there and what went wrong are four different answers."""
    outcome = await SeatTools(room(), DENIED).call(name, arguments)
    assert outcome.standing == standing
    assert text in outcome.text
    if standing == "served":
        assert outcome.text.startswith(text)


async def test_what_was_written_is_there():
    """`write` and `edit` change the workspace's files and nothing else."""
    workspace = room()
    tools = SeatTools(workspace, RULES)
    await tools.call("write", {"path": "deep/er/c.py", "content": "a\0b"})
    await tools.call("edit", {"path": "a.py", "old": "y = 2", "new": "y = 20"})
    assert workspace.files["deep/er/c.py"] == b"a\0b"
    assert workspace.files["a.py"] == b"x = 1\ny = 20\n"
    assert len(list(workspace.files)) == len(FILES) + 1


async def test_denied_folders_are_left_out_of_what_is_walked():
    """Listing and searching above a denied folder tells neither its name nor its content; a like name is not touched."""
    tools = SeatTools(room(), DENIED)
    listed = (await tools.call("list", {})).text
    found = (await tools.call("search", {"pattern": "x"})).text
    assert "secret/" not in listed
    assert "secrets.txt" in listed
    assert "canary" not in found
    assert "/workspace/secrets.txt:1: x = open" in found
    open_text = (await SeatTools(room(), RULES).call("search", {"pattern": "x"})).text
    assert "canary" in open_text


async def test_a_link_is_not_followed():
    """A link that the seat made to the outside is refused, for reading and for writing, and the target stays."""
    workspace = room()
    (workspace.folder / "link").symlink_to("/etc/hostname")
    (workspace.folder / "up").symlink_to(workspace.folder.parent)
    tools = SeatTools(workspace, RULES)
    for name, arguments in (
        ("read", {"path": "link"}),
        ("read", {"path": "up/x"}),
        ("write", {"path": "link", "content": "x"}),
        ("edit", {"path": "link", "old": "a", "new": "b"}),
        ("list", {"path": "up"}),
        ("search", {"pattern": "x", "path": "up"}),
    ):
        outcome = await tools.call(name, arguments)
        assert outcome.standing == "refused", (name, outcome)
    assert "link (link" in (await tools.call("list", {})).text


@pytest.mark.parametrize("name", sorted(TOOLS))
async def test_a_tool_that_the_rules_leave_out_is_refused(name):
    """It is not offered and, called all the same, refused; nothing reaches the workspace."""
    workspace = room()
    tools = SeatTools(workspace, replace(RULES, tools=TOOLS - {name}))
    assert name not in {spec.name for spec in tools.specs()}
    right = {
        "run": {"command": "x"}, "read": {"path": "a.py"}, "write": {"path": "a.py", "content": ""},
        "edit": {"path": "a.py", "old": "1", "new": "2"}, "search": {"pattern": "x"},
    }  # fmt: skip
    outcome = await tools.call(name, right.get(name, {}))
    assert outcome.standing == "refused"
    assert workspace.calls == []
    assert tools.submitted is None
    assert workspace.files["a.py"] == FILES["a.py"].encode()


async def test_rules_without_roots_refuse_every_path():
    """An unset root refuses: it never means everything."""
    tools = SeatTools(room(), ToolRules(tools=TOOLS, readable=(), writable=()))
    for name, arguments in (
        ("read", {"path": "a.py"}),
        ("write", {"path": "b", "content": ""}),
        ("list", {}),
        ("run", {"command": "ls"}),
    ):
        assert (await tools.call(name, arguments)).standing == "refused"


async def test_run_is_bash_in_the_workspace_with_limits():
    """The command reaches bash as one argument, in /workspace, under the seat's own limits."""
    workspace = room()
    await SeatTools(workspace, RULES, timeout_s=7.5, output_bytes=2048).call("run", {"command": "a; b\n'c'"})
    (call,) = workspace.calls
    assert call.argv == ("bash", "-c", "a; b\n'c'")
    assert (call.cwd, call.timeout_s, call.output_bytes) == ("/workspace", 7.5, 2048)


async def test_run_shows_errors_and_status():
    """A program that fails was served: its errors and its status are what the model asked for."""
    workspace = room(bash=lambda _: ran(stdout=b"out\n", stderr=b"err\n", status=3))
    outcome = await SeatTools(workspace, RULES).call("run", {"command": "x"})
    assert outcome.standing == "served"
    assert outcome.text == "out\n[stderr]\nerr\n[exit status 3]"


async def test_run_that_did_not_end_has_failed():
    """A command that was stopped, or whose end is not known, is told apart from one that ended."""

    async def slow(_call):
        await anyio.sleep_forever()

    tools = SeatTools(room(bash=slow), RULES, timeout_s=0.05)
    outcome = await tools.call("run", {"command": "x"})
    assert (outcome.standing, outcome.text) == ("failed", "[stopped after 0.05 s]")
    lost = SeatTools(room(bash=lambda _: ran(status=None)), RULES)
    outcome = await lost.call("run", {"command": "x"})
    assert (outcome.standing, outcome.text) == ("failed", "[how it ended is not known]")


async def test_a_failure_of_the_workspace_is_not_an_outcome():
    """What the engine did wrong is nobody's result: it comes through, and no standing is written down."""

    def broken(_call):
        raise WorkspaceError("the engine is gone")

    with pytest.raises(WorkspaceError, match="gone"):
        await SeatTools(room(bash=broken), RULES).call("run", {"command": "x"})


@pytest.mark.parametrize(
    ("stdout", "stderr"),
    [
        (b"x" * 9999, b""),
        (b"", b"e" * 9999),
        (b"o" * 9999, b"e" * 9999),
        (b"\xff" * 9999, b"\xff" * 9999),
        (b"\xc3\xa9" * 600, b""),
    ],
)
async def test_run_output_is_bounded_and_told(stdout, stderr):
    """Both streams together stay within the bound, undecodable bytes included, and the cut is said."""
    workspace = room(bash=lambda _: ran(stdout=stdout, stderr=stderr))
    outcome = await SeatTools(workspace, RULES, output_bytes=1000).call("run", {"command": "x"})
    assert "[cut: a call shows at most 1000 bytes]" in outcome.text
    assert len(outcome.text.encode()) < 1100
    if stderr:
        assert outcome.text.count("[stderr]") == 1


async def test_output_within_the_bound_is_whole():
    """Nothing is called cut that is not."""
    workspace = room(bash=lambda _: ran(stdout=b"x" * 1000))
    outcome = await SeatTools(workspace, RULES, output_bytes=1000).call("run", {"command": "x"})
    assert outcome.text == "x" * 1000 + "\n[exit status 0]"


async def test_read_is_bounded_and_says_where_to_go_on():
    """A long file is shown in parts that join without a gap or an overlap."""
    workspace = room()
    lines = [f"line {n}" for n in range(400)]
    workspace.files["long.txt"] = "\n".join(lines)
    tools = SeatTools(workspace, RULES, output_bytes=1000)
    start, got = 1, []
    for _ in range(10):
        text = (await tools.call("read", {"path": "long.txt", "start": start})).text
        body, cut, tail = text.rpartition("\n[cut: ")
        part = (body if cut else text).split("\n")
        if not cut:
            got += part
            break
        got += part[:-1]
        start = int(tail.rpartition("start=")[2])
    assert got == lines


async def test_read_of_odd_files():
    """Binary data is replaced, an endless line is cut with a word, an empty file says so, and a far tail is told."""
    workspace = room()
    workspace.files["bin"] = b"\xff\0a"
    workspace.files["wide"] = b"w" * 5000
    workspace.files["empty"] = b""
    workspace.files["huge"] = b"h\n" * (3 << 20)
    tools = SeatTools(workspace, RULES, output_bytes=1000)
    assert (await tools.call("read", {"path": "bin"})).text == "\ufffd\ufffda"
    assert (await tools.call("read", {"path": "wide"})).text.endswith("bytes] line 1 alone is longer")
    assert (await tools.call("read", {"path": "empty"})).text == "[/workspace/empty is empty]"
    far = (2 << 20) - 1
    outcome = await tools.call("read", {"path": "huge", "start": far})
    assert "only the first 4194304 bytes can be shown" in outcome.text
    assert (await tools.call("read", {"path": "huge", "start": far + 10})).standing == "failed"


async def test_lists_and_searches_are_bounded():
    """More entries or matches than are shown is said, and the text keeps to the bound."""
    workspace = room()
    for number in range(510):
        workspace.files[f"many/{number:03}"] = "x"
    tools = SeatTools(workspace, RULES, output_bytes=2000)
    listed = (await tools.call("list", {"path": "many"})).text
    assert listed.endswith("[cut: a call shows at most 2000 bytes]\n[cut: more than 250 entries]")
    found = (await tools.call("search", {"pattern": "x", "path": "many"})).text
    assert found.endswith("[cut: more than 200 matches]")
    assert len(found) < 2100


HOSTILE = [
    None, [], [1, 2], "text", 7, {"path": 7}, {"path": None}, {"path": ["a"]}, {"path": {"a": 1}}, {"path": ""}, {"path": "a\0b"},
    {"path": "\ud800"}, {"path": "x" * 5000}, {"path": "a.py", "more": 1}, {"": ""}, {"path": "a.py", "start": 0},
    {"path": "a.py", "start": True}, {"path": "a.py", "start": 1.5}, {"path": "a.py", "start": 10**30}, {"path": "a.py", "lines": "3"},
    {"\ud800": 1}, {"path\n": "x"}, {7: 8}, {"pa" * 10_000: 1},
]  # fmt: skip


@pytest.mark.parametrize("arguments", HOSTILE, ids=range(len(HOSTILE)))
async def test_wrong_arguments_are_answered(arguments, tmp_path):
    """Whatever the arguments are, the answer is a sentence for the model, in UTF-8, and the transcript holds it."""
    with Transcript(tmp_path / "t.jsonl") as transcript:
        tools = SeatTools(room(), RULES, transcript=transcript)
        for name in ("read", "list", "run", "write", "edit", "search", "submit"):
            outcome = await tools.call(name, arguments)
            assert outcome.standing in {"failed", "refused"}
            assert outcome.text.startswith(("failed: ", "refused: "))
            assert len(outcome.text.encode("utf-8")) < 5000
    assert len(list(read_transcript(tmp_path / "t.jsonl"))) == 7


async def test_arguments_that_are_deeply_nested_or_huge(tmp_path):
    """A hundred thousand levels, ten megabytes or a name with newlines can't break the transcript."""
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with Transcript(tmp_path / "t.jsonl") as transcript:
        tools = SeatTools(room(), RULES, transcript=transcript)
        for name, arguments in (
            ("read", {"path": deep}),
            ("read", deep),
            ("write", {"path": "a", "content": "x" * 10_000_000}),
            ("run", {"command": "x" * 100_000}),
            ("tool\nwith\nlines\ud800" + "x" * 10_000, {}),
            ("read", {str(n): n for n in range(1000)}),
        ):
            assert (await tools.call(name, arguments)).standing == "failed"
    events = list(read_transcript(tmp_path / "t.jsonl"))
    assert (tmp_path / "t.jsonl").stat().st_size < 40_000
    assert events[2]["arguments"]["content"].endswith("[cut: 10000000 characters]")
    while deep:  # taken apart by hand: freeing it in one go is as deep as making it
        deep = deep[0]


async def test_what_a_tool_event_says(tmp_path):
    """Tool, arguments, standing and the text that was shown: an attempt is told as served, refused or absent."""
    with Transcript(tmp_path / "t.jsonl") as transcript:
        tools = SeatTools(room(), DENIED, transcript=transcript)
        for path in ("a.py", "secret/key.txt", "none"):
            await tools.call("read", {"path": path})
    events = list(read_transcript(tmp_path / "t.jsonl"))
    assert [event["standing"] for event in events] == ["served", "refused", "absent"]
    assert events[0] == {
        **events[0],
        "event": "tool",
        "tool": "read",
        "arguments": {"path": "a.py"},
        "text": FILES["a.py"],
    }


async def test_submit_keeps_its_note():
    """The note is what the seat's end says; before a call there is none."""
    tools = SeatTools(room(), RULES)
    assert tools.submitted is None
    await tools.call("submit", {"note": "done"})
    assert tools.submitted == "done"
    await tools.call("submit", {})
    assert tools.submitted == ""


def test_specs_are_schemas_that_their_own_check_agrees_with():
    """What a model is told a tool takes is what the check lets in: names, kinds, and which are needed."""
    for name, tool in tool_specs.TOOLS.items():
        schema = json.loads(json.dumps(dict(tool_specs.spec(name).parameters)))
        assert schema["additionalProperties"] is False
        assert set(schema["properties"]) == set(tool.arguments)
        values = {"string": "x", "integer": 1}
        full = {key: values[item["type"]] for key, item in schema["properties"].items()}
        assert tool_specs.check_arguments(name, full) == full
        needed = {key: full[key] for key in schema["required"]}
        assert set(tool_specs.check_arguments(name, needed)) == set(full)
        for key in needed:
            with pytest.raises(ValueError, match=f"needs {key}"):
                tool_specs.check_arguments(name, {k: v for k, v in needed.items() if k != key})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_bounded_arguments_fit_a_transcript(value):
    """For any JSON the kept form is small, flat and can be written as canonical JSON."""
    kept = bounded_arguments({"a": value, "b": [value]})
    text = json.dumps(kept)
    assert len(text) < 20_000
    assert not any(isinstance(item, (list, dict)) for item in kept.values())
    assert bounded_arguments(value) is None or len(json.dumps(bounded_arguments(value))) < 60_000


@given(st.binary(max_size=200), st.integers(min_value=0, max_value=100))
def test_shown_bytes_keep_to_their_bound(data, most):
    """The text is within the bound as UTF-8, without NUL, and a whole text of plain bytes is never called cut."""
    text, cut = shown_bytes(data, most)
    assert len(text.encode()) <= most
    assert "\0" not in text
    if data.isascii() and b"\0" not in data:
        assert cut == (len(data) > most)
        assert text.encode() == data[:most]


async def test_a_full_denied_folder_does_not_crowd_out_what_may_be_seen():
    """What is denied is not even looked into, so that it takes no room in a search or a listing."""
    workspace = room()
    for number in range(600):
        workspace.files[f"secret/{number}"] = "x = canary"
    tools = SeatTools(workspace, DENIED)
    text = (await tools.call("search", {"pattern": "x"})).text
    assert ("secrets.txt" in text, "canary" in text, "cut" in text) == (True, False, False)
    assert (await tools.call("list", {})).text == "a.py (file, 12 bytes)\nsecrets.txt (file, 9 bytes)\nsrc/"
