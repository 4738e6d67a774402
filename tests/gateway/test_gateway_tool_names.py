"""A tool that is named twice, as Codex does: twice the same name is one, two names are refused."""

from __future__ import annotations

from typing import Any

import pytest

from harness.gateway.asking import Refusal
from harness.gateway.openai_chat import OpenAIChat


def body(**tool: Any) -> dict[str, Any]:
    """A chat that offers one tool."""
    function = {"name": "shell", "parameters": {"type": "object", "properties": {}}}
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": function, **tool}],
    }


def test_the_same_name_twice_is_one_tool() -> None:
    """The tool's own name and its function's are the same: it is offered once."""
    asked = OpenAIChat().asked("/v1/chat/completions", body(name="shell"))
    assert [tool.name for tool in asked.tools] == ["shell"]


@pytest.mark.parametrize("name", ["other", "", 1])
def test_another_name_is_refused(name: object) -> None:
    """Two names could be read in two ways: neither is taken."""
    with pytest.raises(Refusal) as caught:
        OpenAIChat().asked("/v1/chat/completions", body(name=name))
    assert (caught.value.status, "tools.0" in caught.value.why) == (400, True)
