"""
Assumption inversion: what the code takes for granted of its arguments, where a violated assertion's are otherwise.

Which assumptions there are to look for, and how each and its inversion are worded, stands in a corpus that the
experiment brings: a JSON file, pinned with the arm. How one is seen in code is written here, by name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from arms.controllers.port import Seen
from arms.controllers.reading import arguments, number, tree
from harness.canonical import digest_bytes
from harness.errors import PluginError, unknown_name
from harness.mirror import MOST_FACTS
from harness.written import json_of

__all__ = ["ASSUMPTIONS", "CORPUS_SCHEMA", "AssumptionInversion", "corpus_of"]

CORPUS_SCHEMA = "proctor-assumptions/1"
_WORDS_CHARS = 160
_SEQUENCES = (str, list, tuple)
_TEMPLATES: Mapping[str, str] = {
    "line": "- the code takes it that {holds}; but {inverted}: {call} must equal {expected}"
}


def _calls(node: ast.AST, *names: str) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in names
        case _:
            return False


def _takes_a_member(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(slice=ast.Constant(value=int())):
            return True
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))):
            return True
        case ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=right):
            return _calls(right, "len")
        case ast.Call(keywords=keywords):
            return _calls(node, "max", "min") and not any(word.arg == "default" for word in keywords)
        case _:
            return False


def _next_to_each_other(node: ast.AST) -> bool:
    match node:
        case ast.Subscript(slice=ast.BinOp(op=ast.Add() | ast.Sub(), right=ast.Constant(value=1))):
            return True
        case _:
            return _calls(node, "bisect", "bisect_left", "bisect_right", "groupby")


def _counts(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
            return True
        case _:
            return _calls(node, "range", "int")


def _counts_up(node: ast.AST) -> bool:
    return _calls(node, "range", "sqrt", "isqrt", "factorial", "log") or isinstance(node, ast.While)


def _forgets_repeats(node: ast.AST) -> bool:
    return isinstance(node, ast.Set | ast.SetComp | ast.DictComp) or _calls(
        node, "set", "fromkeys", "index", "frozenset"
    )


def _compares(node: ast.AST) -> bool:
    return _calls(node, "sorted", "sort", "sum", "max", "min", "join")


def _reads_letters(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return text.isalpha() and text == text.lower()
        case _:
            return _calls(node, "ord", "islower", "isupper", "count", "startswith")


def _given(args: tuple[Any, ...]) -> Iterator[Any]:
    """The arguments, and their members where they have any."""
    for argument in args:
        yield argument
        if isinstance(argument, list | tuple | set | frozenset):
            yield from argument


def _empty(args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, (str, bytes, list, tuple, set, dict)) and not one for one in args)


def _unsorted(args: tuple[Any, ...]) -> bool:
    for one in args:
        if isinstance(one, _SEQUENCES):
            try:
                if list(one) != sorted(one):
                    return True
            except TypeError:
                continue
    return False


def _fractions(args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, float) for one in _given(args))


def _negative(args: tuple[Any, ...]) -> bool:
    return any((found := number(one)) is not None and found <= 0 for one in _given(args))


def _repeated(args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, _SEQUENCES) and any(item in one[:at] for at, item in enumerate(one)) for one in args)


def _mixed(args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, list | tuple) and len({type(item) for item in one}) > 1 for one in args)


def _capitals(args: tuple[Any, ...]) -> bool:
    return any(isinstance(one, str) and one != one.lower() for one in _given(args))


ASSUMPTIONS: Mapping[str, tuple[Callable[[ast.AST], bool], Callable[[tuple[Any, ...]], bool]]] = MappingProxyType(
    {
        "non-empty": (_takes_a_member, _empty),
        "sorted": (_next_to_each_other, _unsorted),
        "whole": (_counts, _fractions),
        "positive": (_counts_up, _negative),
        "unique": (_forgets_repeats, _repeated),
        "one-type": (_compares, _mixed),
        "lower-case": (_reads_letters, _capitals),
    }
)
"""How an assumption shows in a node of the code, and which arguments contradict it."""


class AssumptionInversion:
    """
    The assumptions of the corpus, in its order, that the code makes and the arguments of a violated assertion
    contradict, each inverted. It fires where there is one; never on code that can't be parsed.

    `corpus` are the bytes of the file. Without it the controller can be looked at and not used. Raises `PluginError`
    for a corpus that is not what it should be.
    """

    name = "assumption-inversion"

    def __init__(self, corpus: bytes | None = None) -> None:
        self._corpus = None if corpus is None else corpus_of(corpus)
        self.lacks = (
            None
            if corpus is not None
            else 'a corpus of assumptions: give it, and each of its mirrors, corpus = "FILE" in the experiment file'
        )
        self.settings: Mapping[str, Any] = {"corpus": None if corpus is None else digest_bytes(corpus)}
        self.templates: Mapping[str, str] = {**_TEMPLATES, **_worded(self._corpus or {})}
        self.claims = frozenset(holds for holds, _inverted in (self._corpus or {}).values())

    def lines(self, given: Seen) -> Sequence[str] | None:
        """A line for each assumption that is contradicted, at most six; None without one."""
        parsed = tree(given.code)
        if self._corpus is None or parsed is None:
            return None
        calls = [(fact, arguments(fact.call)) for fact in given.facts]
        found = []
        for name, (holds, inverted) in self._corpus.items():
            shows, contradicts = ASSUMPTIONS[name]
            told = next((fact for fact, args in calls if args and contradicts(args)), None)
            if told is not None and any(shows(node) for node in ast.walk(parsed)):
                words = {"holds": holds, "inverted": inverted, "call": told.call, "expected": told.expected}
                found.append(_TEMPLATES["line"].format(**words))
        return found[:MOST_FACTS] or None


def _worded(corpus: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {
        f"{what} {name}": text
        for name, pair in corpus.items()
        for what, text in zip(("holds", "inverted"), pair, strict=True)
    }


def corpus_of(data: bytes) -> dict[str, tuple[str, str]]:
    """
    A corpus: an object with `schema` and `assumptions`, a list of `name`, `holds` and `inverted`, each name once and
    one of `ASSUMPTIONS`. The words are one printable line without quotation marks, so that no fact is hidden in them.

    Raises `PluginError` that names what is wrong.
    """
    where = "assumption corpus"
    try:
        told = json_of(data)
    except ValueError as error:
        raise PluginError(f"{where}: it is not JSON: {error}") from None
    if not isinstance(told, dict) or set(told) != {"schema", "assumptions"} or told["schema"] != CORPUS_SCHEMA:
        raise PluginError(f'{where}: expected the keys "schema" ({CORPUS_SCHEMA}) and "assumptions", and no others')
    if not isinstance(told["assumptions"], list) or not told["assumptions"]:
        raise PluginError(f"{where}: assumptions is {_short(told['assumptions'])}: expected a list with at least one")
    found: dict[str, tuple[str, str]] = {}
    for number_, entry in enumerate(told["assumptions"], start=1):
        place = f"{where}: assumption {number_}"
        if not isinstance(entry, dict) or set(entry) != {"name", "holds", "inverted"}:
            raise PluginError(f'{place}: expected the keys "name", "holds" and "inverted", and no others')
        if entry["name"] not in ASSUMPTIONS:
            raise PluginError(f"{place}: {unknown_name('name', str(entry['name']), ASSUMPTIONS)}")
        if entry["name"] in found:
            raise PluginError(f"{place}: {entry['name']!r} is there twice")
        found[entry["name"]] = (_words(place, entry, "holds"), _words(place, entry, "inverted"))
    return found


def _words(place: str, entry: Mapping[str, Any], key: str) -> str:
    text = entry[key]
    good = isinstance(text, str) and text.strip() == text and 0 < len(text) <= _WORDS_CHARS and text.isprintable()
    if not good or set("'\"`{}") & set(text):
        raise PluginError(
            f"{place}: {key} is {_short(text)}: expected one line of at most {_WORDS_CHARS} characters without "
            "quotation marks and braces"
        )
    return str(text)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
