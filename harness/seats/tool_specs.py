"""The tools that a seat can have: what each takes, as a schema for the model and as a check of what the model sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.errors import unknown_name
from harness.messages import ToolSpec

__all__ = ["TOOLS", "Argument", "Tool", "check_arguments", "spec"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """
    One argument of a tool. `most` is the greatest number, or the most bytes of a text; `default` makes it optional.
    Only a text with `any_byte` may hold a NUL: no path, pattern or command can.
    """

    kind: Literal["string", "integer"]
    about: str
    most: int
    default: str | int | None = None
    any_byte: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A tool: what it does, in words for the model, and its arguments."""

    about: str
    arguments: Mapping[str, Argument]


_PATH = Argument(kind="string", about="A path in /workspace.", most=4096)
_FOLDER = Argument(
    kind="string", about="A folder in /workspace; /workspace itself if left out.", most=4096, default="."
)
_TEXT = 4 << 20

TOOLS: Mapping[str, Tool] = {
    "run": Tool(
        about="Run a command with bash in /workspace. There is no network. Shows its output and exit status.",
        arguments={"command": Argument(kind="string", about="The command.", most=64 << 10)},
    ),
    "read": Tool(
        about="Show a text file.",
        arguments={
            "path": _PATH,
            "start": Argument(kind="integer", about="First line to show, from 1.", most=10**9, default=1),
            "lines": Argument(kind="integer", about="How many lines to show.", most=10**9, default=10**9),
        },
    ),
    "write": Tool(
        about="Write a whole file, with the folders above it. What was in it is gone.",
        arguments={
            "path": _PATH,
            "content": Argument(kind="string", about="All of the file.", most=_TEXT, any_byte=True),
        },
    ),
    "edit": Tool(
        about="Replace one piece of a file. The old text must be in the file exactly once.",
        arguments={
            "path": _PATH,
            "old": Argument(kind="string", about="The text to replace.", most=_TEXT, any_byte=True),
            "new": Argument(kind="string", about="The text to put there.", most=_TEXT, any_byte=True),
        },
    ),
    "list": Tool(about="List a folder.", arguments={"path": _FOLDER}),
    "search": Tool(
        about="Search the text files of a folder, and of those below it, for lines that match a regular expression.",
        arguments={
            "pattern": Argument(kind="string", about="A Python regular expression.", most=1000),
            "path": _FOLDER,
        },
    ),
    "submit": Tool(
        about="Say that the work is done. This ends the session; the files in /workspace are the result.",
        arguments={"note": Argument(kind="string", about="A word on the result.", most=2000, default="")},
    ),
}
"""Every tool by name, in the order in which a model is shown them."""


def spec(name: str) -> ToolSpec:
    """The tool `name` as a model is offered it."""
    arguments = TOOLS[name].arguments
    return ToolSpec(
        name=name,
        description=TOOLS[name].about,
        parameters={
            "type": "object",
            "properties": {key: {"type": item.kind, "description": item.about} for key, item in arguments.items()},
            "required": [key for key, item in arguments.items() if item.default is None],
            "additionalProperties": False,
        },
    )


def check_arguments(name: str, given: object) -> dict[str, Any]:
    """
    The arguments of the tool `name` with its defaults, or `ValueError` with a sentence fit for the model: arguments
    may be anything that JSON can say, and what JSON can't.
    """
    if given is None:
        raise ValueError(f"the arguments of {name} did not parse: expected one JSON object")
    if not isinstance(given, Mapping):
        # The caller answers the model whatever was wrong, so all of it comes as one kind of error.
        raise ValueError(  # noqa: TRY004
            f"{name} takes its arguments by name, as one JSON object, not as {type(given).__name__}"
        )
    wanted = TOOLS[name].arguments
    for key in given:
        if key not in wanted:
            raise ValueError(f"{name}: {unknown_name('argument', _short(key), wanted)}")
    missing = [key for key, item in wanted.items() if item.default is None and key not in given]
    if missing:
        raise ValueError(f"{name} needs {' and '.join(missing)}; its arguments are {', '.join(wanted)}")
    return {key: _value(name, key, item, given.get(key, item.default)) for key, item in wanted.items()}


def _value(name: str, key: str, item: Argument, value: object) -> str | int:
    if item.kind == "integer":
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= item.most:
            raise ValueError(f"{name}: {key} must be a whole number from 1 to {item.most}")
        return value
    if not isinstance(value, str):
        raise ValueError(f"{name}: {key} must be text, not {type(value).__name__}")  # noqa: TRY004 - see above
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: character {error.start} of {key} is half a surrogate pair") from None
    if size > item.most:
        raise ValueError(f"{name}: {key} has {size} bytes: expected at most {item.most}")
    if "\0" in value and not item.any_byte:
        raise ValueError(f"{name}: {key} holds a NUL character")
    return value


def _short(key: object) -> str:
    return str(key)[:80] if isinstance(key, str) else type(key).__name__
