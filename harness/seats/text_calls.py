"""
Tool calls that a model writes into its text, by a written grammar. Of its three forms the first that occurs counts.

1. `<tool_call>` CALL `</tool_call>`, any number of them;
2. fenced blocks labelled `json`, `tool` or `tool_call`, or not at all, each with CALLS;
3. nothing but CALLS.

CALLS is one CALL or a JSON list of them. CALL is a JSON object `{"tool": NAME, "arguments": OBJECT}`, where
`arguments` may be left out, or `{"name": NAME, "arguments": OBJECT}`, where it may not. OBJECT may also be a text that
holds the object as JSON. What is JSON but no CALL, and what is no JSON and does not look like a CALL, is text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.seats.blocks import scan
from harness.seats.extraction import valid_text

__all__ = ["TextCall", "calls_in"]

_LABELS = frozenset({"", "json", "tool", "tool_call"})
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextCall:
    """A call as it was written, with whatever stood for its arguments; or `problem`, a sentence on what is wrong."""

    name: str = ""
    arguments: object = None
    problem: str | None = None


def calls_in(text: str) -> list[TextCall]:
    """The calls in a model's text, in their order. Never raises."""
    plain = valid_text(text).replace("\r\n", "\n").replace("\r", "\n")
    marked = list(_marked(plain))
    if marked:
        return [call for part in marked for call in _parsed(part, marked=True)]
    blocks = [block.text for block in scan(plain).blocks if block.language in _LABELS]
    if not blocks and plain.lstrip()[:1] in {"{", "["}:
        blocks = [plain]
    return [call for part in blocks for call in _parsed(part, marked=False)]


def _marked(text: str) -> Iterator[str]:
    """The insides of the `<tool_call>` elements; the last may lack its end."""
    at = text.find(_OPEN)
    while at >= 0:
        start = at + len(_OPEN)
        end = text.find(_CLOSE, start)
        yield text[start:] if end < 0 else text[start:end]
        at = -1 if end < 0 else text.find(_OPEN, end)


def _parsed(part: str, *, marked: bool) -> list[TextCall]:
    text = part.strip()
    if not marked and text[:1] not in {"{", "["}:
        return []
    try:
        data = _json(text)
    except (ValueError, RecursionError) as error:
        if marked or _looks_like_a_call(text):
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            return [TextCall(problem=f"a tool call was not JSON: {why[:200]}")]
        return []
    items = data if isinstance(data, list) else [data]
    found = [call for item in items if (call := _call(item)) is not None]
    if marked and not found:
        return [TextCall(problem='a tool call must be {"tool": NAME, "arguments": {...}}')]
    return found


def _call(item: Any) -> TextCall | None:
    """The call that a JSON value is, or None."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("tool"), str):
        stray = sorted(key for key in item if key not in {"tool", "arguments"})
        if stray:
            names = ", ".join(key[:40] for key in stray[:5])
            return TextCall(problem=f'a tool call has {names} beside "tool": its arguments belong in "arguments"')
        return TextCall(name=item["tool"], arguments=_arguments(item.get("arguments", {})))
    if isinstance(item.get("name"), str) and "arguments" in item:
        return TextCall(name=item["name"], arguments=_arguments(item["arguments"]))
    return None


def _arguments(value: Any) -> object:
    """The arguments, of which a text is read as the JSON that it may hold."""
    if not isinstance(value, str):
        return value
    try:
        return _json(value)
    except (ValueError, RecursionError):
        return value


def _looks_like_a_call(text: str) -> bool:
    head = text[:2000]
    return '"tool"' in head or ('"name"' in head and '"arguments"' in head)


def _json(text: str) -> Any:
    """JSON, with the raw newlines in texts that small models write. Raises `ValueError` or `RecursionError`."""
    return json.loads(text, strict=False, parse_constant=_no_constant)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
