"""
A code in the briefing, and its echo: what tells that a seat's model was shown the arm's text.

The sentence with the code is the first paragraph of a prompt. What cuts a prompt short at its head takes the code
before the text, and what cuts it at its tail takes the task before the text: a model that echoes the code of a prompt
whose task it did was shown the text between them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["SENTENCE", "briefing_code", "echoed", "wants_echo", "with_code"]

SENTENCE = (
    "The code of this page is {code}. Write it once in your reply, as it stands, in a line of its own that starts"
    " with a number sign."
)
"""What an arm with `nonce = true` shows before everything else. Such a line is a comment in most languages."""

_DIGITS = 12


def briefing_code(namespace: str, cell: str, arm: str) -> str:
    """The first 12 digits of the SHA-256 of `namespace|cell|arm`; `arm` is the digest of the arm's content."""
    return hashlib.sha256(f"{namespace}|{cell}|{arm}".encode()).hexdigest()[:_DIGITS]


def with_code(code: str, prompt: str) -> str:
    """`prompt`, with the sentence that gives `code` as its first paragraph."""
    return f"{SENTENCE.format(code=code)}\n\n{prompt}"


def wants_echo(arm: object) -> bool:
    """Whether the arm's code must come back. An arm that says nothing of it has none."""
    return getattr(arm, "nonce", False) is True


def echoed(events: Iterable[Mapping[str, Any]], code: str) -> bool:
    """Whether a reply among the events of a transcript has `code` in its text or in the arguments of a tool call."""
    return any(code in _said(event).casefold() for event in events if event.get("event") == "completion")


def _said(event: Mapping[str, Any]) -> str:
    """All that a model wrote in one reply."""
    return "\n".join([str(event.get("text", "")), *(str(call) for call in event.get("tool_calls", ()))])
