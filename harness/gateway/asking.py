"""What a wire makes of a body, and what holds for the bodies of all wires."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.messages import Message, ToolCall, ToolSpec
from harness.models.chat_wire import tool_arguments
from harness.seats.bounded import clipped

__all__ = [
    "Asked",
    "Identifier",
    "Most",
    "Part",
    "Refusal",
    "Stops",
    "ToolName",
    "answered_in_order",
    "called",
    "checked",
    "offered",
    "read",
    "sampling",
]

MESSAGES, PARTS, TOOLS, CALLS, STOPS = 4096, 1024, 256, 128, 16
"""The most of each in one request."""

Identifier: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]
ToolName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:/-]{1,128}$")]
Most: TypeAlias = Annotated[int, Field(ge=1)]
"""The most tokens of an answer; above the pinned figure it lowers nothing."""

Stops: TypeAlias = Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=STOPS)]

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DIALECTS = ("http://json-schema.org/", "https://json-schema.org/")


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """A request that is not served: the HTTP status it is answered with, and why, in words for the agent's author."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = clipped(why, 600)


class Part(BaseModel):
    """A part of a body. What is not named is refused, and nothing is taken for what it is not: True is no 1."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """
    What an agent asks, in the harness's own values.

    `most` and `stop` can only shorten the answer. `unused` names what was asked of the sampling, which is pinned.
    `counting` asks for the size of the prompt alone; `usage` for the usage inside an event stream.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    most: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    usage: bool = False
    counting: bool = False
    unused: tuple[str, ...] = ()


Body = TypeVar("Body", bound=Part)


def read(kind: type[Body], data: Mapping[str, Any]) -> Body:
    """`data` as a body of `kind`. Raises `Refusal` with the first three faults, never with what was in the body."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        faults = [
            f"{'.'.join(str(part) for part in fault['loc'])[:120]}: {fault['msg'][:160]}"
            for fault in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
        raise Refusal(400, f"{'; '.join(faults[:3])}{more}") from None


def checked(messages: Iterable[Message]) -> tuple[Message, ...]:
    """
    The conversation, with the names of the tools that its results are of. Raises `Refusal` for one that no chat is: a
    system message after the others, a result without its call, a call's id twice, no word of a user.
    """
    made: list[Message] = []
    waiting: dict[str, str] = {}
    begun = False
    for message in messages:
        begun |= message.role != "system"
        if message.role == "system" and begun:
            raise Refusal(400, "a system message stands after other messages: expected it to come first")
        if message.role == "tool":
            name = waiting.pop(message.tool_call_id or "", None)
            if name is None:
                raise Refusal(400, f"a tool's result answers no call of the message before: {message.tool_call_id!r}")
            made.append(replace(message, tool_name=name))
            continue
        waiting = {call.id: call.name for call in message.tool_calls}
        if len(waiting) != len(message.tool_calls):
            raise Refusal(400, "a message holds two tool calls with one id")
        made.append(message)
    if not any(message.role == "user" for message in made):
        raise Refusal(400, "the conversation has no message of a user")
    return _one_system(made)


def _one_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """System messages as one: many a chat template takes the first and drops the rest without a word."""
    system = [message for message in messages if message.role == "system"]
    if len(system) < 2:
        return tuple(messages)
    head = Message(role="system", content="\n\n".join(message.content for message in system))
    return (head, *(message for message in messages if message.role != "system"))


def answered_in_order(messages: Iterable[Message]) -> list[Message]:
    """
    Messages of a wire whose calls have no ids: each call gets one, and each result the id of the first unanswered call
    of its name, or of any name if it says none.
    """
    made: list[Message] = []
    waiting: list[ToolCall] = []
    for turn, message in enumerate(messages):
        if message.role == "tool":
            found = next((call for call in waiting if message.tool_name in (None, call.name)), None)
            if found is not None:
                waiting.remove(found)
            made.append(replace(message, tool_call_id=None if found is None else found.id))
            continue
        calls = tuple(
            replace(call, id=f"call-{turn}-{number}") for number, call in enumerate(message.tool_calls, start=1)
        )
        waiting = list(calls)
        made.append(replace(message, tool_calls=calls))
    return made


def offered(name: str, description: str | None, schema: Mapping[str, Any] | None) -> ToolSpec:
    """A tool as it is offered to the model. Raises `Refusal` for a schema that sends its reader elsewhere."""
    parameters = {"type": "object", "properties": {}, **(schema or {})}
    if parameters["type"] != "object" or not isinstance(parameters["properties"], dict):
        raise Refusal(400, f"the parameters of the tool {name!r} are no JSON Schema of an object")
    _check_schema(parameters, name)
    return ToolSpec(name=name, description=description or "", parameters=parameters)


def _check_schema(value: Any, tool: str) -> None:
    """A reference to elsewhere would be fetched by whoever resolves it."""
    if isinstance(value, list):
        for item in value:
            _check_schema(item, tool)
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if isinstance(item, str):
            away = (
                (key in _REFERENCES and not item.startswith("#"))
                or (key == "$schema" and not item.startswith(_DIALECTS))
                or (key == "$id" and ":" in item)
            )
            if away:
                raise Refusal(400, f"the schema of the tool {tool!r} leads elsewhere: {key} is {item!r:.100}")
        else:
            _check_schema(item, tool)


def called(identifier: str, name: str, arguments: str | Mapping[str, Any]) -> ToolCall:
    """
    A call that the agent says the model made. Arguments that are no object travel inside one, as `unparsed`: a model
    server may refuse the whole conversation for them.
    """
    if isinstance(arguments, str):
        parsed = tool_arguments(arguments or "{}")
        if parsed is not None:
            return ToolCall(id=identifier, name=name, arguments=parsed, raw=arguments or "{}")
        arguments = {"unparsed": arguments}
    return ToolCall(id=identifier, name=name, arguments=dict(arguments), raw=json.dumps(dict(arguments)))


def sampling(body: Part, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the fields `names` that the agent has set."""
    return tuple(name for name in names if getattr(body, name, None) is not None)
