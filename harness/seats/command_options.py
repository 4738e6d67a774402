"""The options of the seat `command`, checked when it is made."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.errors import PluginError
from harness.seats import options
from harness.seats.placeholders import check_placeholders
from harness.walls import SECRET_LIKE

__all__ = ["environment", "files", "key_variables", "model_name", "statuses", "words"]

_EVERYWHERE = ("address", "base_url", "home", "instruction_file", "model")
_IN_WORDS = (*_EVERYWHERE, "instruction")
_FILE_BYTES = 1 << 20
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHERE = "seat 'command'"


def words(argv: object) -> tuple[str, ...]:
    """`argv` as the words of a command whose first is a program, or `PluginError`."""
    if not isinstance(argv, (list, tuple)) or not argv:
        raise PluginError(f"{_WHERE}: argv is {argv!r}: expected a list of words, the program first")
    for word in argv:
        if not isinstance(word, str) or "\0" in word:
            raise PluginError(f"{_WHERE}: argv has {word!r}: expected texts without NUL")
        _check_encodable("argv", word)
        check_placeholders(f"{_WHERE}: argv", word, _IN_WORDS)
    if not argv[0].strip() or "{seat." in argv[0] or argv[0].startswith("-"):
        raise PluginError(f"{_WHERE}: argv begins with {argv[0]!r}: expected the name or path of a program")
    return tuple(argv)


def model_name(value: object) -> str:
    """`value` as a name that every wire can carry, or `PluginError`."""
    name = options.text("command", "model_name", value)
    if not _MODEL_NAME.fullmatch(name):
        raise PluginError(f"{_WHERE}: model_name is {value!r}: expected letters, digits and ._:/@- alone")
    return name


def _check_encodable(name: str, text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PluginError(f"{_WHERE}: {name}: character {error.start} is not encodable as UTF-8") from None


def _table(name: str, value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise PluginError(f"{_WHERE}: {name} is {value!r}: expected a table of texts")
    for key, text in value.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise PluginError(f"{_WHERE}: {name} has {key!r} = {text!r}: expected texts")
        _check_encodable(f"{name}.{key}", text)
        check_placeholders(f"{_WHERE}: {name}.{key}", text, _EVERYWHERE)
    return dict(value)


def files(value: object, *, taken: str) -> Mapping[str, str]:
    """`value` as texts by relative path, none of them at the path `taken`, or `PluginError`."""
    made: dict[str, str] = {}
    for name, text in _table("files", value).items():
        path = options.file_path("command", "files", name)
        if len(text.encode()) > _FILE_BYTES:
            raise PluginError(f"{_WHERE}: files.{name} has {len(text.encode())} bytes: expected {_FILE_BYTES} at most")
        if path in made or path == taken:
            other = "the instruction's file" if path == taken else "there twice"
            raise PluginError(f"{_WHERE}: files has {path!r}, which is {other}")
        made[path] = text
    for path in (*made, taken):
        if above := next((other for other in (*made, taken) if path.startswith(f"{other}/")), None):
            raise PluginError(f"{_WHERE}: files has {path!r} below {above!r}, which is a file")
    return made


def environment(value: object) -> Mapping[str, str]:
    """`value` as variables whose names do not sound like a secret, or `PluginError`."""
    given = _table("environment", value)
    for name, text in given.items():
        _check_variable("environment", name)
        if "\0" in text:
            raise PluginError(f"{_WHERE}: environment.{name} has a NUL")
        if re.search(SECRET_LIKE, name, re.IGNORECASE):
            raise PluginError(
                f"{_WHERE}: environment has {name!r}, which sounds like a secret: nothing secret goes into a "
                "workspace. If the program insists on a key, name the variable in key_variables: the gateway needs none"
            )
    return given


def key_variables(value: object) -> tuple[str, ...]:
    """`value` as a list of different variables' names, or `PluginError`."""
    if not isinstance(value, (list, tuple)):
        raise PluginError(f"{_WHERE}: key_variables is {value!r}: expected a list of variables' names")
    for name in value:
        _check_variable("key_variables", name)
        if value.count(name) > 1:
            raise PluginError(f"{_WHERE}: key_variables has {name!r} twice")
    return tuple(value)


def _check_variable(where: str, name: object) -> None:
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        raise PluginError(f"{_WHERE}: {where} has {name!r}: expected a variable's name")


def statuses(value: object) -> tuple[int, ...]:
    """`value` as a list of exit statuses with at least one, or `PluginError`."""
    if not isinstance(value, (list, tuple)) or not value:
        raise PluginError(f"{_WHERE}: success_statuses is {value!r}: expected a list of exit statuses")
    return tuple(options.whole("command", "success_statuses", status, low=0, high=255) for status in value)
