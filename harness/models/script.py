"""What a scripted model answers, as the experiment file writes it down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from harness.models.options import Options, Strict

__all__ = ["Failure", "Reply", "ScriptedCall", "ScriptedOptions", "ScriptedUsage"]

Count: TypeAlias = Annotated[int, Field(ge=0)]
Seconds: TypeAlias = Annotated[float, Field(ge=0)]
Stop: TypeAlias = Literal["stop", "length", "tool_calls"]


def _compiles(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from error
    return value


def _as_replies(value: Any) -> Any:
    """A text stands for a reply, and one reply for a list of one."""
    items = [value] if isinstance(value, str | Mapping) else value
    if not isinstance(items, list | tuple):
        return items
    return [{"text": item} if isinstance(item, str) else item for item in items]


Pattern: TypeAlias = Annotated[str, AfterValidator(_compiles)]


class ScriptedUsage(Strict):
    """Token counts to report; `input` and `output` are unknown when left out."""

    input: Count | None = None
    cache_write_5m: Count | None = 0
    cache_write_1h: Count | None = 0
    cache_read: Count | None = 0
    output: Count | None = None


class ScriptedCall(Strict):
    """A tool call to answer with. `raw` stands for arguments that do not parse."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    raw: str | None = None


class Reply(Strict):
    """One answer. What it leaves out is as the options say, `stop` at last "tool_calls" with calls and else "stop"."""

    text: str = ""
    stop: Stop | None = None
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage | Literal["unknown"] | None = None
    delay_s: Seconds | None = None


Replies: TypeAlias = Annotated[tuple[Reply, ...], BeforeValidator(_as_replies)]


class Failure(Strict):
    """
    A failure to raise instead of an answer: for requests with a message that fits `match`, of those one in `one_in` by
    the request's seed, and of those the first `times` since the model was opened.
    """

    cause: Literal["model-server", "request-refused", "context-truncated"] = "model-server"
    message: str = "scripted failure"
    match: Pattern = ""
    one_in: Annotated[int, Field(ge=1)] = 1
    times: Annotated[int, Field(ge=1)] | None = None


class ScriptedOptions(Options):
    """The options of a scripted model."""

    replies: Replies = ()
    """Answers, each a text or a table; `pick` chooses among them."""

    by_task: dict[Pattern, Annotated[Replies, Field(min_length=1)]] = Field(default_factory=dict)
    """Answers by a regular expression, searched for in what the model was told, the latest message first."""

    pick: Literal["turn", "seed", "order"] = "turn"
    """
    Which of the answers: by how many the conversation holds already, by the request's seed, or by how many calls this
    opened model has had. They are used in order, and then again from the first.
    """

    usage: ScriptedUsage | Literal["unknown"] | None = None
    """What each reply reports; by default one token a word."""

    stop: Stop | None = None
    """How each reply ended."""

    delay_s: Seconds = 0.0
    """Seconds that each reply takes."""

    tool_calls: tuple[ScriptedCall, ...] = ()
    """Calls that each reply makes; alone, they make a model that calls for ever."""

    served_model: str | None = None
    """The model's name that each reply reports, by default the one asked for."""

    fail: tuple[Failure, ...] = ()
    """Failures to raise; the first that fits."""

    @model_validator(mode="after")
    def _says_something(self) -> ScriptedOptions:
        if not (self.replies or self.by_task or self.tool_calls or self.fail):
            raise ValueError("nothing to answer: expected `replies`, `by_task`, `tool_calls` or `fail`")
        return self
