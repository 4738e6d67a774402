"""The counts that a server reports of prompts: the same for the same prompt, and only for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import ContextTruncated
from harness.messages import Decoding, Message, Request, ToolCall, ToolSpec
from harness.models.checks import PromptCounts

TOOL = ToolSpec(name="run", description="Runs.", parameters={"type": "object", "properties": {}})
ASKED = Request(messages=(Message(role="user", content="hi"),), decoding=Decoding(), seed=1, tools=(TOOL,))


def test_the_same_prompt_counts_the_same() -> None:
    """Whatever its seed is; another count is a cut."""
    counts = PromptCounts()
    counts.check(ASKED, 40)
    counts.check(replace(ASKED, seed=2), 40)
    with pytest.raises(ContextTruncated, match="39 tokens for a prompt that it counted as 40"):
        counts.check(ASKED, 39)


CALL = ToolCall(id="a", name="run", arguments={}, raw="{}")
CHANGES = {
    "a tool's parameters": {"tools": (replace(TOOL, parameters={"type": "object", "properties": {"a": {}}}),)},
    "a tool's description": {"tools": (replace(TOOL, description="Runs it."),)},
    "a call's id": {"messages": (*ASKED.messages, Message(role="assistant", content="", tool_calls=(CALL,)))},
    "a result's call": {"messages": (*ASKED.messages, Message(role="tool", content="x", tool_call_id="a"))},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_prompt_that_differs_anywhere_is_another(change: str) -> None:
    """An agent that changes its tools' schemas has no prompt that was cut."""
    counts = PromptCounts()
    one = replace(ASKED, **CHANGES[change])
    counts.check(ASKED, 40)
    counts.check(one, 60)
    other = replace(one, messages=tuple(_renamed(message) for message in one.messages))
    if other != one:
        counts.check(other, 61)


def _renamed(message: Message) -> Message:
    calls = tuple(replace(call, id="b") for call in message.tool_calls)
    return replace(message, tool_calls=calls, tool_call_id="b" if message.tool_call_id else None)
