"""The loop seat: tools by both ways, its ends, and answers of a model that is broken or hostile."""

import json
from dataclasses import replace

import pytest

from arms.text import placebo
from harness import plugins
from harness.canonical import canonical_bytes, digest_bytes
from harness.errors import ModelServerError, PluginError, SeatError
from harness.messages import Decoding, ToolCall
from harness.seats.loop import BRIEFING, GRAMMAR, LoopSeat, briefing
from harness.seats.tool_specs import TOOLS
from harness.seats.tools import SeatTools
from harness.walls import ToolRules
from tests.seats.desks import RULES, FakeModel, said, task

pytestmark = pytest.mark.anyio

WORDS_DIGEST = "27260c22adf8a5a3aa46401608c589b93a69e4dcc22aef925efeaa1f985e998d"
SUBMIT = said("", ("submit", {"note": "done"}))
FILES = {"a.py": "x = 1\n"}


def written(name, **arguments):
    """A call as a small model writes it."""
    return "```json\n" + json.dumps({"tool": name, "arguments": arguments}) + "\n```"


async def test_native_calls_until_submission(bench):
    """Calls are done in order, each is answered under its own id, and `submit` ends the session with its note."""
    two = said("I look.", ("read", {"path": "a.py"}), ("write", {"path": "b.py", "content": "y"}))
    table = bench(FakeModel(two, SUBMIT), files=FILES)
    declared = await LoopSeat().sit(table.desk)
    assert declared.note == "submitted in turn 2: done"
    assert table.room.files["b.py"] == b"y"
    head = [(message.role, message.content) for message in table.model.requests[0].messages]
    assert head == [("system", BRIEFING), ("user", "Add.")]
    answer, first, second = table.model.requests[1].messages[2:]
    assert (answer.role, answer.content) == ("assistant", "I look.")
    assert [call.id for call in answer.tool_calls] == [first.tool_call_id, second.tool_call_id]
    assert [message.tool_name for message in (first, second)] == ["read", "write"]
    assert first.content == "x = 1\n"


async def test_calls_written_in_the_text(bench):
    """Without native tools the briefing tells how to call, none are offered, and results come in one user message."""
    both = written("read", path="a.py") + "\n" + written("list")
    table = bench(FakeModel(both, written("submit")), files=FILES)
    declared = await LoopSeat(native=False).sit(table.desk)
    assert declared.note == "submitted in turn 2"
    assert {request.tools for request in table.model.requests} == {()}
    assert table.model.requests[0].messages[0].content.startswith(f"{BRIEFING}\n\n{GRAMMAR}")
    answer, results = table.model.requests[1].messages[2:]
    assert (answer.role, answer.content) == ("assistant", both)
    assert (results.role, results.content) == (
        "user", "Result of read:\nx = 1\n\n\nResult of list:\na.py (file, 6 bytes)",
    )  # fmt: skip


async def test_text_calls_are_understood_with_native_tools_too(bench):
    """A small model that was offered tools and writes its call as text is served."""
    table = bench(FakeModel(written("read", path="a.py"), SUBMIT), files=FILES)
    await LoopSeat().sit(table.desk)
    assert [event["standing"] for event in table.events("tool")] == ["served", "served"]


async def test_only_the_rules_tools_are_offered(bench):
    """What the rules or the seat's own `tools` leave out is neither offered nor done."""
    table = bench(
        FakeModel(said("", ("run", {"command": "x"})), SUBMIT), rules=replace(RULES, tools=RULES.tools - {"run"})
    )
    await LoopSeat(tools=["submit", "run", "read"]).sit(table.desk)
    assert [tool.name for tool in table.model.requests[0].tools] == ["read", "submit"]
    assert table.events("tool")[0]["standing"] == "refused"
    assert table.room.calls == []


async def test_no_tool_left_is_ours_to_mend(bench):
    """A seat without any tool is a mistake of the experiment, not a result."""
    table = bench(FakeModel(SUBMIT), rules=ToolRules(tools=frozenset(), readable=(), writable=()))
    with pytest.raises(SeatError, match="no tool"):
        await LoopSeat().sit(table.desk)


async def test_a_model_that_stops_calling_is_nudged_twice(bench):
    """Three answers in a row without a call end it; a call in between starts the count again."""
    call = said("", ("list", {}))
    table = bench(FakeModel("Hm.", "Hm.", call, "Done.", "Done.", "Done."))
    declared = await LoopSeat().sit(table.desk)
    assert declared.note == "called no tool 3 times in a row, up to turn 6"
    nudges = [message.content for message in table.model.requests[-1].messages if message.role == "user"][1:]
    assert len(nudges) == 4
    assert all("No tool was called" in nudge for nudge in nudges)


async def test_an_answer_cut_by_its_length_is_told(bench):
    """A model whose answer was cut before it could call a tool learns why nothing happened."""
    cut = replace(said("Thinking about it"), stop="length")
    table = bench(FakeModel(cut, SUBMIT))
    await LoopSeat().sit(table.desk)
    assert "greatest length" in table.model.prompts[1]


async def test_turns_are_counted(bench):
    """A model that never stops is stopped by the seat's own count, each turn with its own seed."""
    table = bench(FakeModel(said("", ("list", {}))))
    declared = await LoopSeat(max_turns=5).sit(table.desk)
    assert declared.note == "used all of its 5 turns"
    assert [request.seed for request in table.model.requests] == [table.desk.seeds.seed(n) for n in range(1, 6)]


async def test_calls_after_a_submission_are_not_done(bench):
    """The work that was submitted is the work that is judged."""
    table = bench(FakeModel(said("", ("submit", {}), ("write", {"path": "a.py", "content": "bad"}))), files=FILES)
    await LoopSeat().sit(table.desk)
    assert table.room.files["a.py"] == b"x = 1\n"
    assert [event["tool"] for event in table.events("tool")] == ["submit"]


async def test_one_answer_calls_eight_tools_at_most(bench):
    """The ninth is answered, and not done."""
    many = said("", *[("write", {"path": f"{n}", "content": ""}) for n in range(12)])
    table = bench(FakeModel(many, SUBMIT))
    await LoopSeat().sit(table.desk)
    assert list(table.room.files) == [str(n) for n in range(8)]
    results = [message for message in table.model.requests[1].messages if message.role == "tool"]
    assert ["not done" in message.content for message in results] == [False] * 8 + [True] * 4


async def test_the_window_holds(bench):
    """Tool output of many times the window never makes a prompt that outgrows it, and the transcript says what was left out."""
    table = bench(
        FakeModel(said("", ("read", {"path": "a.py"}))),
        files={"a.py": "word and word\n" * 1000},
        decoding=Decoding(num_ctx=2048, num_predict=256),
    )
    await LoopSeat(max_turns=30, output_bytes=4096).sit(table.desk)
    for request in table.model.requests:
        size = sum(len(message.content.encode()) for message in request.messages)
        assert size <= (2048 - 256) * 2
        assert request.messages[1].content == "Add."
    assert table.events("note")[-1]["dropped"] > 0


async def test_the_arm_is_the_task_message(bench):
    """What the arm renders is what the model is told, extras included."""
    half = task(extras={"statement": "theorem t"})
    table = bench(FakeModel(SUBMIT), arm=placebo(), task=half, extras="statement")
    await LoopSeat().sit(table.desk)
    text = table.model.requests[0].messages[1].content
    assert text.startswith("# Notes on this page")
    assert text.endswith("Add.\n\ntheorem t")


async def test_a_model_servers_failure_comes_through(bench):
    """The seat neither retries nor hides it."""
    table = bench(FakeModel(said("", ("list", {})), ModelServerError("down")))
    with pytest.raises(ModelServerError, match="down"):
        await LoopSeat().sit(table.desk)


def deep():
    """A list nested so that no naive walk can end, yet small enough to be taken apart by the interpreter."""
    made = []
    for _ in range(900):
        made = [made]
    return made


HOSTILE = {
    "huge": said("x" * 10_000_000),
    "deep text": said("[" * 100_000),
    "deep call": said('{"tool": "read", "arguments": ' + '{"a":' * 100_000),
    "deep arguments": said("", ("read", {"path": deep()})),
    "NUL": said("\0", ("read", {"path": "\0"}), ("run", {"command": "\0"})),
    "surrogates": said("\ud800", ("read", {"path": "\ud800"}), ("\udfff", {"\ud800": "\ud800"})),
    "newline in the name": said("", ("read\nfile: /etc/passwd", {})),
    "long name": said("", ("x" * 100_000, {})),
    "empty name": said("", ("", {})),
    "list for arguments": said("", ("read", ["a.py"])),
    "no arguments": said("", ("read", None)),
    "unknown argument": said("", ("read", {"path": "a.py", "file": "a.py"})),
    "missing argument": said("", ("write", {"path": "a.py"})),
    "large number": said("", ("read", {"path": "a.py", "start": 10**40})),
    "host path": said("", ("read", {"path": "/etc/passwd"}), ("read", {"path": "../../etc/passwd"})),
    "large content": said("", ("write", {"path": "b", "content": "x" * 5_000_000})),
    "text call, bad": said('```json\n{"tool": "read", "arguments": {"path": "a.py"\n```'),
    "text call, surrogate": said('{"tool": "re\\ud800ad", "arguments": {"path": "\\ud800"}}'),
    "same ids": replace(
        said(""), stop="tool_calls",
        tool_calls=(ToolCall(id="", name="list", arguments={}), ToolCall(id="", name="list", arguments={})),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_answers_are_answered(bench, name):
    """Whatever came, the next request is valid text and JSON, keeps to the window, and the session goes on."""
    table = bench(FakeModel(HOSTILE[name], SUBMIT), files=FILES)
    declared = await LoopSeat().sit(table.desk)
    assert declared.note == "submitted in turn 2: done"
    request = table.model.requests[1]
    sent = [[message.role, message.content, message.tool_call_id, message.tool_name] for message in request.messages]
    calls = [call for message in request.messages for call in message.tool_calls]
    made = canonical_bytes([sent, [[call.id, call.name, dict(call.arguments), call.raw] for call in calls]])
    assert len(made) < 2 * 4096
    assert all(call.name in {*TOOLS, "unknown_tool"} for call in calls)
    assert len({call.id for call in calls}) == len(calls)
    ids = [message.tool_call_id for message in request.messages if message.role == "tool"]
    assert ids == [call.id for call in calls]
    assert "root:" not in made.decode()
    assert table.room.files["a.py"] == b"x = 1\n"


async def test_mistakes_are_told_to_the_model(bench):
    """An unknown tool, arguments that did not parse and a wrong name each come back as a sentence."""
    answer = said("", ("reed", {}), ("read", None), ("read", {"file": "a"}), ("read", {}))
    table = bench(FakeModel(answer, SUBMIT))
    await LoopSeat().sit(table.desk)
    told = [message.content for message in table.model.requests[1].messages if message.role == "tool"]
    assert "Did you mean 'read'" in told[0]
    assert "did not parse" in told[1]
    assert "unknown argument 'file'" in told[2]
    assert "read needs path" in told[3]


def test_the_words_are_frozen(bench):
    """The briefing, with and without the grammar and all tools, is part of what an experiment registers: no silent change."""
    table = bench(FakeModel(""))
    specs = SeatTools(table.room, RULES).specs()
    words = (
        briefing(specs, native=True) + briefing(specs, native=False) + json.dumps([spec.parameters for spec in specs])
    )
    assert digest_bytes(words.encode()) == WORDS_DIGEST
    assert all(f"- {name}(" in briefing(specs, native=False) for name in TOOLS)


@pytest.mark.parametrize(
    "bad",
    [
        {"max_turns": 0}, {"max_turns": 1001}, {"max_turns": True}, {"tools": []}, {"tools": "read"}, {"tools": ["reed"]},
        {"tools": ["read", "read"]}, {"tools": [7]}, {"tool_timeout_s": 0}, {"tool_timeout_s": float("nan")},
        {"tool_timeout_s": float("inf")}, {"tool_timeout_s": "9"}, {"output_bytes": 100}, {"output_bytes": 1.5}, {"native": 1},
    ],
)  # fmt: skip
def test_bad_options_are_refused_when_the_seat_is_made(bad):
    """The option and its value are named, long before the first cell."""
    with pytest.raises(PluginError, match=f"seat 'loop': {next(iter(bad))}"):
        LoopSeat(**bad)


def test_options_are_pinned_as_data():
    """What a registration pins is canonical JSON, and it makes the same seat again."""
    seat = plugins.load("seats", "loop")(tools=["submit", "read"])
    assert dict(seat.options()) == {
        "max_turns": 40, "tools": ["read", "submit"], "tool_timeout_s": 60.0, "output_bytes": 16384, "file": None,
        "native": True,
    }  # fmt: skip
    assert LoopSeat(**json.loads(canonical_bytes(dict(seat.options())))).options() == seat.options()


@pytest.mark.parametrize("native", [True, False])
async def test_a_file_that_is_judged_is_named_to_the_model(bench, native):
    """Tasks whose instruction names no file need it; without the option not a byte of the briefing changes."""
    table = bench(FakeModel(SUBMIT if native else written("submit")))
    seat = LoopSeat(file="src/solution.py", native=native)
    await seat.sit(table.desk)
    head = table.model.requests[0].messages[0].content
    named = f"{BRIEFING} What counts in the end is the file /workspace/src/solution.py."
    assert head == named if native else head.startswith(f"{named}\n\n{GRAMMAR}")
    assert seat.options()["file"] == "src/solution.py"
    for wrong in ("/etc/passwd", "../a", "", 7):
        with pytest.raises(PluginError, match="file"):
            LoopSeat(file=wrong)
