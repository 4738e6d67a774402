"""
What the withheld suite holds in the subject's place: stand-ins that forward calls and compare nothing but plain data.

A `Remote` is equal to itself alone, so an object whose `__eq__` always agrees never gets to run. An exception of the
subject's is raised here as a class made here. This file runs inside workspaces, so it uses the standard library,
`pytest_wire` and `pytest_raised` only.
"""

from __future__ import annotations

import builtins
import json
import mmap
import types
from collections.abc import Callable, Iterator, MutableSequence
from typing import Any

from referees.pytest_raised import made_from
from referees.pytest_wire import CLASSES, HANDLES, LABEL, LINEAGE, WireError, frame, pack, read_frame, unpack, write_all

CRASH = "CRASH"
IS_METHOD = object()
IS_END = object()


class SubjectGone(BaseException):
    """The subject's process has ended or broke the protocol. Not an `Exception`: no `raises(Exception)` catches it."""


class SuiteFault(BaseException):
    """The suite does what no suite may. Not an `Exception` either, so that no `raises` takes it for the subject's."""


class Client:
    """
    The suite's end of the channel. `open` is False while the suite is being imported: no call may be made then. `turn`
    is odd while the subject is waited for, and another number each time, for whoever watches how long the suite takes.
    """

    def __init__(self, reader: int, writer: int, turn: MutableSequence[int] | mmap.mmap | None = None) -> None:
        self.reader = reader
        self.writer = writer
        self.turn = bytearray(1) if turn is None else turn
        self.open = False
        self.fault: str | None = None
        self.last = ""
        self.remotes: dict[int, Remote] = {}
        self.classes: dict[int, type[Exception]] = {}
        self.methods: set[tuple[int, str]] = set()

    def ask(self, operation: str, owner: int, *arguments: Any) -> Any:
        """Send one request and understand its answer: a value, or the subject's own exception, raised here."""
        if not self.open and operation == "get":
            # pytest itself looks at everything that a test module holds
            raise AttributeError("the subject's attributes can be read in a test or a fixture only")
        if not self.open:
            raise SuiteFault("the suite calls the subject while it is imported: move the call into a test or a fixture")
        if self.fault is not None:
            raise SubjectGone(f"the subject is gone ({self.fault})")
        try:
            request = frame(b"C", [operation, owner, [pack(argument, _handle) for argument in arguments]])
        except WireError as error:
            raise SuiteFault(f"the suite passes {error}") from None
        write_all(self.writer, request)
        self.turn[0] = (self.turn[0] + 1) % 256
        kind, body = read_frame(self.reader)
        self.turn[0] = (self.turn[0] + 1) % 256
        if kind == b"D":
            raise self.gone(*json.loads(body))
        try:
            value, raised = self._understood(json.loads(body), operation)
        except (WireError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError) as nonsense:
            # what came is the subject's, and may be anything
            raise self.gone(CRASH, f"an answer that is none: {nonsense}") from None
        if raised is None:
            if value is not IS_METHOD and value is not IS_END:
                self.last = _brief(value)
            return value
        self.last = _brief(raised)
        raise raised

    def gone(self, fault: str, why: str) -> SubjectGone:
        """Note that the subject is gone; from here on every call fails."""
        self.fault = fault
        return SubjectGone(why)

    def _understood(self, reply: dict[str, Any], operation: str) -> tuple[Any, BaseException | None]:
        """The value that an answer carries, or the exception to raise for it."""
        if "v" in reply:
            return unpack(reply["v"], self.remote), None
        if "x" in reply:
            return None, self.exception(reply["x"])
        if reply.get("m") is True and operation == "get":
            return IS_METHOD, None
        if reply.get("stop") is True and operation == "next":
            return IS_END, None
        raise WireError("not an answer")

    def remote(self, handle: list[Any]) -> Remote:
        """The one stand-in of a handle."""
        number, name = handle
        if type(number) is not int or type(name) is not str:
            raise WireError("not a handle")
        if number not in self.remotes:
            if len(self.remotes) >= HANDLES:
                raise WireError(f"more than {HANDLES} objects of the subject's")
            self.remotes[number] = Remote(self, number, name[:LABEL])
        return self.remotes[number]

    def exception_class(self, lineage: dict[str, Any]) -> type[Exception]:
        """The class made here for an exception class of the subject's; a built-in one is itself."""
        base = getattr(builtins, str(lineage["base"]), None)
        kind: type[Exception] = base if isinstance(base, type) and issubclass(base, Exception) else Exception
        if issubclass(kind, (StopIteration, StopAsyncIteration)):
            # raised by a call, it would end a `map` of the suite's own in silence: `all(map(...))` would be true
            kind = RuntimeError
        if len(lineage["chain"]) > LINEAGE:
            raise WireError(f"an exception of {len(lineage['chain'])} classes: expected at most {LINEAGE}")
        for number, name in reversed(lineage["chain"]):
            if type(number) is not int or type(name) is not str:
                raise WireError("not an exception")
            if number not in self.classes:
                if len(self.classes) >= CLASSES:
                    raise WireError(f"more than {CLASSES} exception classes of the subject's")
                own = {"__str__": _own_text, "__module__": "subject"}
                self.classes[number] = type(name[:LABEL], (kind,), own)
            kind = self.classes[number]
        return kind

    def exception(self, data: dict[str, Any]) -> BaseException:
        """The exception that an answer describes."""
        if "exit" in data:
            return self.gone(CRASH, f"the subject ended its process: {str(data['exit'])[:300]}")
        kind = self.exception_class(data)
        args = tuple(unpack(item, self.remote) for item in data["args"])
        made = made_from(kind, args, own=bool(data["chain"]))
        made.args = args
        made.__dict__["_text"] = str(data["text"])
        return made


def _handle(value: Any) -> list[Any]:
    if type(value) is Remote:
        return [object.__getattribute__(value, "_number")]
    if type(value) is RemoteMethod:
        return [object.__getattribute__(value.owner, "_number"), value.name]
    raise SuiteFault(
        f"the suite passes a value of type {type(value).__name__} to the subject: only plain data (None, bool, int, "
        "float, str, bytes, bytearray, list, tuple, dict, set, frozenset) and the subject's own objects can cross"
    )


def _own_text(self: Any) -> str:
    return str(self.__dict__.get("_text", ""))


def _brief(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an integer too long to print, say
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 200 else text[:200] + "..."


class RemoteMethod:
    """A method of one of the subject's objects."""

    def __init__(self, owner: Remote, name: str) -> None:
        self.owner = owner
        self.name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call it, in the subject's room."""
        return _ask(self.owner, "method", self.name, list(args), named)

    def __repr__(self) -> str:
        return f"<subject's method {self.name}>"


def _ask(remote: Remote, operation: str, *arguments: Any) -> Any:
    client: Client = object.__getattribute__(remote, "_client")
    return client.ask(operation, object.__getattribute__(remote, "_number"), *arguments)


def _typed(operation: str, kind: type) -> Callable[[Remote], Any]:
    """A dunder whose answer must be of exactly one type, as Python itself asks of it."""

    def forward(self: Remote) -> Any:
        value = _ask(self, operation)
        if type(value) is not kind:
            raise TypeError(
                f"{operation}() of the subject's object gave {type(value).__name__}: expected {kind.__name__}"
            )
        return value

    return forward


class Remote:
    """
    One of the subject's objects, functions, classes or modules. What can be done with it: call it, get, set and delete
    attributes and items, iterate, `len`, `in`, `bool`, `str`, `with`, and `isinstance(x, it)`. Equality is identity.
    """

    __slots__ = ("_client", "_name", "_number")

    def __init__(self, client: Client, number: int, name: str) -> None:
        object.__setattr__(self, "_client", client)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_name", name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call it, in the subject's room."""
        return _ask(self, "call", list(args), named)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        client, number = object.__getattribute__(self, "_client"), object.__getattribute__(self, "_number")
        if (number, name) not in client.methods:
            value = client.ask("get", number, name)
            if value is not IS_METHOD:
                return value
            client.methods.add((number, name))  # it is asked once: a method stays one
        return RemoteMethod(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "del", name)

    def __getitem__(self, key: Any) -> Any:
        return _ask(self, "item", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _ask(self, "setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        _ask(self, "delitem", key)

    def __contains__(self, key: Any) -> bool:
        return bool(_ask(self, "in", key))

    def __iter__(self) -> Iterator[Any]:
        iterator = _ask(self, "iter")
        return iterator if type(iterator) is Remote else iter(iterator)

    def __next__(self) -> Any:
        value = _ask(self, "next")
        if value is IS_END:
            raise StopIteration
        return value

    __len__ = _typed("len", int)
    __bool__ = _typed("bool", bool)
    __str__ = _typed("str", str)

    def __enter__(self) -> Any:
        return _ask(self, "enter")

    def __exit__(self, *_: object) -> None:
        _ask(self, "exit")

    def __instancecheck__(self, value: object) -> bool:
        return type(value) is Remote and bool(_ask(self, "isinstance", value))

    def __repr__(self) -> str:
        return f"<subject's {object.__getattribute__(self, '_name')}>"


class SubjectModule(types.ModuleType):
    """A module of the subject's as the suite imports it: exactly the names that the card declares."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the card's interface does not declare {self.__name__}.{name}")
