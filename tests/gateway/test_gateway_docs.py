"""The page of the gateway says what its code does."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from harness.gateway import anthropic_messages, asking, bodies, ollama_chat, openai_chat, requests
from harness.gateway.wires import paths
from harness.walls import GatewayRules
from tests.gateway.cells import OPENAI, ask, chat, gateway_cell
from tests.gateway.hostile import KINDS
from tests.pages import ROOT

PAGE = (ROOT / "docs/reference/gateway.md").read_text("utf-8")


def test_every_path_stands_in_the_row_of_its_wire() -> None:
    """And no other path."""
    rows = dict.fromkeys(
        (path, wire)
        for wire, listed in re.findall(r"^\| `(\w+)` \| (`/[^|]*) \|", PAGE, re.MULTILINE)
        for path in re.findall(r"`(/[^`]*)`", listed)
    )
    assert set(rows) == {(path, wire.name) for path, wire in paths(GatewayRules()).items()}


@pytest.mark.parametrize("rule", fields(GatewayRules), ids=lambda rule: rule.name)
def test_every_rule_has_its_row_with_its_default(rule: object) -> None:
    """As the experiment file would have it."""
    default = getattr(GatewayRules(), rule.name)  # type: ignore[attr-defined]
    shown = str(list(default)).replace("'", '"') if isinstance(default, tuple) else str(default)
    assert f"| `{rule.name}` | `{shown}` |" in PAGE  # type: ignore[attr-defined]


def test_every_status_has_its_row() -> None:
    """Those that the hostile requests meet, and those of connections and of models."""
    listed = {int(status) for status in re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)}
    assert listed == {kind.status for kind in KINDS} | {408, 429, 502, 504}


def test_every_field_that_is_accepted_and_not_used_is_named() -> None:
    """By its wire's column; an option of Ollama's and a field alike."""
    (row,) = re.findall(r"^\| accepted, not used \|(.*)\|$", PAGE, re.MULTILINE)
    columns = [set(re.findall(r"`(\w+)", column)) for column in row.split(" | ")]
    assert set(openai_chat._UNUSED) <= columns[0]
    assert set(anthropic_messages._UNUSED) <= columns[1]
    assert {*ollama_chat._SAMPLING, "think"} <= columns[2]


def test_the_figures_are_those_of_the_code() -> None:
    """Counts, levels, lengths."""
    text = " ".join(PAGE.split())
    assert f"{asking.MESSAGES:,} messages, {asking.PARTS:,} parts in a message, {asking.CALLS} calls" in text
    assert f"{asking.TOOLS} tools and {asking.STOPS} texts" in text
    assert f"more than {bodies.DIGITS} characters" in text
    assert f"more than {bodies.DEPTH} levels" in text
    assert f"more than {bodies.KEYS:,} keys" in text
    assert f"{requests.HEADERS} lines" in text


@pytest.mark.anyio
async def test_every_field_of_an_event_is_documented() -> None:
    """Of one that was served and of one that was refused."""
    rows = set()
    for listed in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE.partition("## Events")[2], re.MULTILINE):
        rows |= set(re.findall(r"`(\w+)`", listed))
    async with gateway_cell() as cell:
        await ask(cell, OPENAI, chat())
        await ask(cell, OPENAI, chat(n=2))
        assert rows == {key for event in cell.events for key in event}
