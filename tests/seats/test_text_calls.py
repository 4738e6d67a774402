"""The grammar of tool calls in a model's text: what is a call, what is a mistake worth telling, and what is only text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.seats.text_calls import TextCall, calls_in

READ = '{"tool": "read", "arguments": {"path": "a.py"}}'
NAMED = '{"name": "read", "arguments": {"path": "a.py"}}'
CALL = TextCall(name="read", arguments={"path": "a.py"})


@pytest.mark.parametrize(
    "text",
    [
        READ,
        NAMED,
        f"  \n{READ}\n",
        f"```json\n{READ}\n```",
        f"```\n{NAMED}\n```",
        f"```tool_call\n{READ}\n```",
        f"I will look at it.\n\n```json\n{READ}\n```\nThen I go on.",
        f"```json\r\n{READ}\r\n```",
        f"```json\n{READ}",
        f"<tool_call>\n{NAMED}\n</tool_call>",
        f"Words <tool_call>{NAMED}",
        f"[{READ}]",
        '{"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}',
        '{"id": "1", "type": "function", "name": "read", "arguments": {"path": "a.py"}}',
        f"```python\nprint(1)\n```\n```json\n{READ}\n```",
    ],
)
def test_each_form_of_a_call(text):
    """Every form of the grammar gives the same call."""
    assert calls_in(text) == [CALL]


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{READ}\n```\nand\n```json\n{NAMED}\n```",
        f"```json\n[{READ}, {NAMED}]\n```",
        f"<tool_call>{READ}</tool_call><tool_call>{NAMED}</tool_call>",
    ],
)
def test_several_calls_keep_their_order(text):
    """Two calls are two, in the order in which they were written."""
    assert calls_in(text) == [CALL, CALL]


def test_the_first_form_that_occurs_counts():
    """A marked call is taken and the example in a block beside it is not done too."""
    other = '```json\n{"tool": "submit"}\n```'
    assert calls_in(f"{other}\n<tool_call>{READ}</tool_call>") == [CALL]


def test_arguments_may_be_left_out_after_tool_alone():
    """`tool` says what it is; a `name` without arguments is any JSON object."""
    assert calls_in('{"tool": "submit"}') == [TextCall(name="submit", arguments={})]
    assert calls_in('{"name": "Ada"}') == []


def test_raw_newlines_in_a_text_are_taken():
    """Small models write a file's content over several lines inside a JSON text."""
    text = '```json\n{"tool": "write", "arguments": {"path": "a", "content": "x\n\ty"}}\n```'
    assert calls_in(text)[0].arguments == {"path": "a", "content": "x\n\ty"}


@pytest.mark.parametrize(
    "text",
    ["", "Done.", "I call read with a.py.", '{"answer": 42}', "[1, 2]", "```json\n{}\n```", "```json\n[1,]\n```",
     f"```python\n{READ}\n```", f"Use {READ} here.", "{not json", '{"tool": 7}', "null"],
)  # fmt: skip
def test_what_is_only_text(text):
    """Data, code, prose and broken JSON that isn't meant as a call are left alone."""
    assert calls_in(text) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('```json\n{"tool": "read", "arguments": {"path": "a.py"}\n```', "was not JSON"),
        ('{"name": "read", "arguments": {path: 1}}', "was not JSON"),
        ("<tool_call>read a.py</tool_call>", "was not JSON"),
        ("<tool_call>[1]</tool_call>", "must be"),
        ('{"tool": "read", "path": "a.py"}', 'path beside "tool"'),
        ('{"tool": "read", "arguments": {"start": NaN}}', "NaN is not a JSON number"),
        ('{"tool": ' + "[" * 100_000, "nested too deeply"),
        ("<tool_call>" + "[" * 100_000, "nested too deeply"),
        ('{"tool": "read", "arguments": {"start": ' + "9" * 10_000 + "}}", "was not JSON"),
    ],
)
def test_a_mistake_is_told(text, words):
    """What was meant as a call and isn't one comes back as a short sentence for the model."""
    (call,) = calls_in(text)
    assert words in call.problem
    assert len(call.problem) < 300


def test_arguments_of_any_kind_are_passed_on():
    """The tool's own check answers for them."""
    assert calls_in('{"tool": "read", "arguments": [1]}') == [TextCall(name="read", arguments=[1])]
    assert calls_in('{"tool": "read", "arguments": "a.py"}') == [TextCall(name="read", arguments="a.py")]


PIECES = st.sampled_from(
    ["<tool_call>", "</tool_call>", "```json\n", "```\n", "{", "}", "[", "]", '"tool"', ": ", '"read"', ", ", '"name"',
     '"arguments"', "\n", "\ud800", "\0", "1", READ, NAMED, "words "]
)  # fmt: skip


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=30).map("".join)))
def test_any_text_has_an_answer(text):
    """Parsing never raises, and what it says of mistakes can be sent to a model."""
    for call in calls_in(text):
        assert call.name.encode("utf-8", "strict") is not None or call.problem
        assert call.problem is None or call.problem.encode("utf-8")


@given(st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=20), max_size=4))
def test_any_arguments_survive(arguments):
    """What JSON can say as arguments is what comes out, in each form."""
    text = json.dumps({"tool": "t", "arguments": arguments})
    for form in (text, f"```json\n{text}\n```", f"<tool_call>{text}</tool_call>"):
        assert calls_in(form) == [TextCall(name="t", arguments=arguments)]
