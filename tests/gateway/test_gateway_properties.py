"""Whatever bytes come, the gateway answers with a refusal or an answer, hangs on nothing, and serves the next."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from harness.gateway.asking import Asked, Refusal
from harness.gateway.bodies import strict_json
from harness.gateway.wires import paths
from harness.messages import Request
from harness.models.checks import prompt_ceiling
from harness.walls import GatewayRules
from tests.gateway.cells import ANTHROPIC, DECODING, OLLAMA, OPENAI, chat, gateway_cell, message, parsed, post, raw

QUICK = settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate])
HONEST = {OPENAI: chat(), ANTHROPIC: message(), OLLAMA: chat()}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["model", "messages", "tools", "stop", "n", "stream", "max_tokens", "tool_choice", "options", "system", "x"]
)


def replies(data: bytes) -> int:
    """The status that the gateway answers bytes with, 0 for none; it must then serve an honest request."""
    found: list[int] = []

    async def play() -> None:
        with anyio.fail_after(10):
            async with gateway_cell(rules=GatewayRules(arrival_s=2)) as cell:
                answer = await raw(cell, data)
                found.append(parsed(answer).status if answer else 0)
                assert "broke" not in json.dumps(cell.events)
                assert parsed(await raw(cell, post(OPENAI, chat()))).status == 200

    anyio.run(play)
    return found[0]


@given(st.binary(max_size=400))
@example(b"")
@example(b"\r\n\r\n")
@QUICK
def test_any_bytes_at_all(data: bytes) -> None:
    """No bytes, no answer; any others are refused: none of them is a request by chance."""
    assert replies(data) in ({0} if not data else {400, 403, 405, 431, 505})


@given(st.data())
@QUICK
def test_an_honest_request_with_a_few_bytes_changed(data: st.DataObject) -> None:
    """Wherever they are: an answer or a refusal."""
    whole = bytearray(post(OPENAI, chat()))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    assert replies(bytes(whole)) in {200, *range(400, 432), 505}


@pytest.mark.parametrize("path", HONEST)
@given(changes=st.dictionaries(keys, json_values, max_size=3))
@settings(max_examples=150, deadline=None, phases=[Phase.generate])
def test_any_json_in_the_place_of_a_field(path: str, changes: dict[str, Any]) -> None:
    """A body is read, or refused; and what was read can be sent to a model as it is."""
    made = asked_or_refused(path, json.dumps({**HONEST[path], **changes}).encode())
    if isinstance(made, Refusal):
        assert 400 <= made.status < 500
        assert len(made.why) < 800
    else:
        assert any(said.role == "user" for said in made.messages)
        assert prompt_ceiling(Request(messages=made.messages, decoding=DECODING, seed=1, tools=made.tools)) > 0


def asked_or_refused(path: str, body: bytes) -> Asked | Refusal:
    """What the wire of a path makes of a body."""
    try:
        return paths(GatewayRules())[path].asked(path, strict_json(body))
    except Refusal as refusal:
        return refusal


@given(json_values)
@settings(max_examples=200, deadline=None)
def test_json_is_read_as_json_or_refused(value: Any) -> None:
    """What is let through is what Python's own reader makes of it."""
    body = json.dumps({"a": value}).encode()
    try:
        read = strict_json(body)
    except Refusal:
        return
    assert read == json.loads(body)


@pytest.mark.parametrize(
    "body",
    [b'{"' + b'\\"' * 500_000, b'{"a": "' + b"\\" * 1_000_000, b'{"a": [' + b"[]," * 300_000, b'"' * 1_000_000],
    ids=["escaped quotes", "backslashes", "empty lists", "quotes"],
)
@pytest.mark.timeout(10)
def test_a_megabyte_of_marks_is_refused_in_one_pass(body: bytes) -> None:
    """A reader that starts again at each mark would take hours for it."""
    with pytest.raises(Refusal):
        strict_json(body)
