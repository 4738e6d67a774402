"""
The subject's side of the `pytest` referee: the process that imports the exhibit, in a room that holds no test.

It answers calls on the objects of the exhibit's modules. Nothing here is trusted: whatever the exhibit does to this
process, all it can bring about is an answer, and an answer is only ever data to the suite. This file runs inside
workspaces, so it uses the standard library, `pytest_wire` and `pytest_confine` only.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import resource
import signal
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from referees.pytest_confine import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, install, prctl, watcher_filter
from referees.pytest_wire import WireError, frame, pack, raw_frame, read_frame, unpack, write_all

TEXT = 2000
"""Characters of an error's text that cross."""

_BOUND = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)


class Shelf:
    """The objects that crossed as handles, by number."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}

    def keep(self, value: Any) -> list[Any]:
        """The handle of `value`: its number, and its class's name for messages."""
        number = self.numbers.get(id(value))
        if number is None:
            number = len(self.objects)
            self.objects.append(value)
            self.numbers[id(value)] = number
        return [number, type(value).__name__[:80]]

    def found(self, handle: list[Any]) -> Any:
        """What a handle that came back stands for; `[number, name]` is the method `name` of an object."""
        owner = self.objects[handle[0]]
        return owner if len(handle) == 1 else getattr(owner, handle[1])


def _text(value: object) -> str:
    try:
        return str(value)[:TEXT]
    except BaseException as error:  # noqa: BLE001 - the subject's own __str__ may raise anything
        return f"<{type(error).__name__} in __str__>"


def lineage(kind: type, shelf: Shelf) -> dict[str, Any]:
    """The subject's own classes in the MRO of an exception class, and the first built-in one."""
    chain: list[Any] = []
    for cls in kind.__mro__:
        if cls.__module__ == "builtins":
            return {"chain": chain, "base": cls.__name__}
        chain.append([shelf.keep(cls)[0], cls.__name__])
    return {"chain": chain, "base": "Exception"}


def describe(error: BaseException, shelf: Shelf) -> dict[str, Any]:
    """An exception as data: its lineage, its arguments, its text."""
    if not isinstance(error, Exception):
        return {"exit": f"{type(error).__name__}({_text(error)})"}
    try:
        args = [pack(arg, shelf.keep) for arg in error.args]
    except (WireError, RecursionError):
        args = []
    return {**lineage(type(error), shelf), "args": args, "text": _text(error)}


_METHOD = object()
_STOP = object()


def _lookup(owner: Any, name: str) -> Any:
    value = getattr(owner, name)
    return _METHOD if type(value) in _BOUND else value


def _next(iterator: Any) -> Any:
    try:
        return next(iterator)
    except StopIteration:
        return _STOP


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda owner, args, named: owner(*args, **named),
    "method": lambda owner, name, args, named: getattr(owner, name)(*args, **named),
    "get": _lookup,
    "set": setattr,
    "del": delattr,
    "iter": iter,
    "next": _next,
    "len": len,
    "bool": bool,
    "str": str,
    "item": lambda owner, key: owner[key],
    "setitem": lambda owner, key, value: owner.__setitem__(key, value),
    "delitem": lambda owner, key: owner.__delitem__(key),
    "in": lambda owner, key: key in owner,
    "isinstance": lambda owner, value: isinstance(value, owner),
    "enter": lambda owner: owner.__enter__(),
    "exit": lambda owner: owner.__exit__(None, None, None),
}


def answer(body: bytes, shelf: Shelf) -> dict[str, Any]:
    """The reply to one request: `v` a value, `m` a method of the same object, `stop` an end, `x` an exception."""
    try:
        operation, owner, arguments = json.loads(body)
        unpacked = [unpack(argument, shelf.found) for argument in arguments]
        value = _OPERATIONS[operation](shelf.objects[owner], *unpacked)
        if value is _METHOD or value is _STOP:
            return {"m": True} if value is _METHOD else {"stop": True}
        return {"v": pack(value, shelf.keep)}
    except BaseException as error:  # noqa: BLE001 - whatever the subject raises is its answer
        return {"x": describe(error, shelf)}


def _interface(modules: list[dict[str, Any]], shelf: Shelf) -> dict[str, Any]:
    """Import the modules and find the names: each a handle, an exception's chain, or missing."""
    names: dict[str, Any] = {}
    missing: list[str] = []
    for module in modules:
        loaded = importlib.import_module(module["module"])
        for name in [*module["names"], *module["exceptions"]]:
            full = f"{module['module']}.{name}"
            value = getattr(loaded, name, shelf)
            if value is shelf:
                missing.append(full)
            elif name in module["names"]:
                names[full] = shelf.keep(value)
            elif isinstance(value, type) and issubclass(value, Exception):
                names[full] = lineage(value, shelf)
            else:
                missing.append(f"{full} (an exception class)")
    return {"names": names, "missing": missing}


def serve(reader: int, writer: int, order: dict[str, Any]) -> None:
    """
    Import, say hello, then answer until the channel closes. An answer carries the number of its request.

    A copy of this process that the exhibit forked, and that finds its way back here, has nothing to say.
    """
    shelf, own, getpid = Shelf(), os.getpid(), os.getpid
    try:
        hello = _interface(order["interface"], shelf)
    except BaseException as error:  # noqa: BLE001 - a module may raise anything, SystemExit too
        name = type(error).__name__
        hello = {"failed": name, "text": f"{name}: {_text(error)}"}
    if getpid() != own:
        return
    write_all(writer, frame(b"H", hello))
    while True:
        kind, body = read_frame(reader)
        number, request = body[:4], body[4:]
        if kind == b"Q":
            write_all(writer, raw_frame(b"R", number + b"bye"))
            continue
        reply = answer(request, shelf)
        try:
            data = frame(b"R", reply)
        except (ValueError, RecursionError, MemoryError) as error:
            data = frame(b"R", {"x": describe(error, shelf)})
        if getpid() != own:
            return
        write_all(writer, raw_frame(b"R", number + data[5:]))


def _limit(order: dict[str, Any]) -> None:
    # A backstop, for each process alone: the monitor ends all of them together before one gets there.
    cpu = int(order["cpu_s"]) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_AS, (order["memory_bytes"], order["memory_bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def become_subject(reader: int, writer: int, folder: str, order: dict[str, Any]) -> NoReturn:
    """What the forked process does, to its end: it gives up everything that is the watcher's, and serves."""
    watcher = os.getppid()
    group = os.getpgid(watcher)
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_DUMPABLE, 1)  # what it may look at of itself is what any process may
    with suppress(OSError):
        # Where files or memory that no process holds fill the room, the kernel ends its watcher last.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    sys.argv = [""]
    for blocked in order["forbidden"]:
        sys.modules[blocked] = None  # type: ignore[assignment] # importlib's own way to say: may not be imported
    for ours in [name for name in sys.modules if name.partition(".")[0] == "referees"]:
        del sys.modules[ours]  # the exhibit may have modules of these names
    _limit(order)
    install(watcher_filter(platform.machine(), (watcher,), group))
    try:
        serve(reader, writer, order)
    finally:
        os._exit(70)
