"""
What is checked of each request and reply, whatever server it came from.

A server may cut a prompt without a word and answer 200, so each count it reports is held against what the prompt
itself says. Every check here is sound for tokenizers that break at white space, as those of today's servers do: a
prompt has at least as many tokens as words and at most as many as UTF-8 bytes, its template aside.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from harness.canonical import digest_json
from harness.errors import ContextTruncated, ModelServerError, RequestRefused
from harness.messages import Message, Request

__all__ = ["PromptCounts", "check_request", "check_window", "fixed_seed", "prompt_ceiling", "prompt_floor"]

ANY_SEED = 2**32 - 1

TEMPLATE_TOKENS = 256
TURN_TOKENS = 32
HALF_WINDOW_SLACK = 2


def check_request(request: Request, *, trained_ctx: int | None = None) -> None:
    """
    Raises `RequestRefused` for a request that no server could answer as asked.

    `trained_ctx` is the window that the model was trained for: a server lowers a larger `num_ctx` without a word.
    """
    decoding = request.decoding
    wrong: dict[str, str] = {}
    if not request.messages:
        wrong["messages"] = "expected one or more"
    elif not all(_is_text(message.content) for message in request.messages):
        wrong["messages"] = "expected text that UTF-8 can say"
    if not (math.isfinite(decoding.temperature) and decoding.temperature >= 0):
        wrong["temperature"] = "expected 0 or more"
    if not (math.isfinite(decoding.top_p) and 0 < decoding.top_p <= 1):
        wrong["top_p"] = "expected more than 0, and 1 at most"
    if decoding.num_predict < 1:
        wrong["num_predict"] = "expected 1 or more"
    if decoding.num_ctx < 1:
        wrong["num_ctx"] = "expected 1 or more"
    if trained_ctx is not None and decoding.num_ctx > trained_ctx:
        wrong["num_ctx"] = f"expected {trained_ctx} at most, the window that the model was trained for"
    for name, expected in wrong.items():
        value = request.messages if name == "messages" else getattr(decoding, name)
        raise RequestRefused(f"{name} = {value!r:.200}: {expected}")


def fixed_seed(seed: int) -> int:
    """The seed to send to an engine that takes one of all seeds, its greatest, for "any"."""
    return seed if seed != ANY_SEED else ANY_SEED - 1


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def prompt_floor(request: Request) -> int:
    """
    Tokens that the prompt has at least: the words of what system and user say.

    An assistant's or a tool's words are left out, since a template may rewrite or drop parts of them.
    """
    return sum(len(message.content.split()) for message in request.messages if message.role in {"system", "user"})


def prompt_ceiling(request: Request) -> int:
    """
    Tokens that the prompt has at most, with room for a template's own words: no byte-level tokeniser makes more tokens
    than bytes. Never raises.
    """
    said = sum(_message_bytes(message) for message in request.messages)
    offered = sum(
        _bytes(tool.name) + _bytes(tool.description) + _json_bytes(tool.parameters) + TURN_TOKENS
        for tool in request.tools
    )
    return said + offered + TEMPLATE_TOKENS


def _message_bytes(message: Message) -> int:
    named = _bytes(message.tool_call_id or "") + _bytes(message.tool_name or "")
    called = sum(
        _bytes(call.id) + _bytes(call.name) + max(_bytes(call.raw), _json_bytes(call.arguments)) + TURN_TOKENS
        for call in message.tool_calls
    )
    return _bytes(message.content) + named + called + TURN_TOKENS


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _json_bytes(value: Mapping[str, Any] | None) -> int:
    """
    The bytes of `value` as JSON, all but ASCII escaped, and twice: a template may write it out in lines, whose blanks
    are no more tokens than the text has bytes.
    """
    try:
        return 0 if value is None else 2 * len(json.dumps(dict(value)))
    except (ValueError, TypeError, RecursionError):
        return 0  # no server gets what JSON can't say


def check_window(request: Request, *, prompt_tokens: int | None, output_tokens: int | None) -> None:
    """
    Raises `ContextTruncated` when the counts that a server reports show, or can't rule out, that it cut the prompt to
    fit a window of `num_ctx` tokens.
    """
    window, ceiling = request.decoding.num_ctx, prompt_ceiling(request)
    if prompt_tokens is None:
        if ceiling > window:
            raise ContextTruncated(
                f"the server gave no prompt count, and a prompt of up to {ceiling} tokens may not fit num_ctx = "
                f"{window}: raise num_ctx, or use a server that counts"
            )
        return
    if prompt_tokens >= window:
        raise ContextTruncated(f"the prompt filled the window: {prompt_tokens} tokens of num_ctx = {window}; raise it")
    if ceiling > window and abs(prompt_tokens - (window // 2 + 2)) <= HALF_WINDOW_SLACK:
        raise ContextTruncated(
            f"the server counted {prompt_tokens} prompt tokens, which is where servers cut a prompt that does not fit "
            f"num_ctx = {window}: raise num_ctx"
        )
    if output_tokens is not None and prompt_tokens + output_tokens > window:
        raise ContextTruncated(
            f"{prompt_tokens} prompt and {output_tokens} answer tokens do not fit num_ctx = {window}: the server "
            "dropped part of the prompt while it answered; raise num_ctx or lower num_predict"
        )


class PromptCounts:
    """The prompt counts that an opened model has reported: the same prompt must count the same each time."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def check(self, request: Request, prompt_tokens: int | None) -> None:
        """
        Raises `ContextTruncated` for a count below the prompt's own floor, or other than the same prompt's before, and
        `ModelServerError` for one that is no count.
        """
        if prompt_tokens is None:
            return
        if prompt_tokens < 1:
            raise ModelServerError(f"the server counted {prompt_tokens} prompt tokens: expected 1 or more")
        floor = prompt_floor(request)
        if prompt_tokens < floor:
            raise ContextTruncated(
                f"the server counted {prompt_tokens} tokens for a prompt of {floor} words: it was cut to fit; "
                "raise the window"
            )
        before = self._seen.setdefault(self._prompt(request), prompt_tokens)
        if before != prompt_tokens:
            raise ContextTruncated(
                f"the server counted {prompt_tokens} tokens for a prompt that it counted as {before} before: one of "
                "the two was cut"
            )

    @staticmethod
    def _prompt(request: Request) -> str:
        said = [
            [
                [message.role, message.content, message.tool_name, message.tool_call_id],
                [[call.id, call.name, call.raw] for call in message.tool_calls],
            ]
            for message in request.messages
        ]
        offered = [[tool.name, tool.description, repr(tool.parameters)] for tool in request.tools]
        return digest_json([said, offered, request.decoding.num_ctx])
