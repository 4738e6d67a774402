"""Turning what goes wrong at a model server into the error that says whose failure it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from harness.errors import ModelServerError

__all__ = ["bounded", "reply_within"]

WORDS = 500
"""How many characters of a server's own words an error message may carry."""


def bounded(words: object, *, without: str | None = None) -> str:
    """
    A server's own words as printable text of bounded length, for an error message.

    `without` is a secret: a server may echo it, and no message may.
    """
    text = str(words)
    if without:
        text = text.replace(without, "<key>")
    text = "".join(ch if ch.isprintable() else " " for ch in text).strip()
    return text if len(text) <= WORDS else f"{text[:WORDS]}... ({len(text)} characters)"


@contextmanager
def reply_within(seconds: float, server: str) -> Iterator[None]:
    """Cancels what it holds after `seconds`, and raises `ModelServerError` that names the `server`."""
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError as error:
        raise ModelServerError(
            f"{server} gave no reply within {seconds:g} s; see whether it is overloaded, or raise `timeout_s`"
        ) from error
