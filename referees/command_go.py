"""Reads the events of `go test -json`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from referees.command_report import DETAIL, Found, Told, Unreadable, leaves

__all__ = ["read_go"]

_WORDS = {"pass": "passed", "fail": "failed", "skip": "skipped"}
_PASSING_BY = frozenset({"start", "run", "pause", "cont", "output"})


@dataclass(slots=True)
class _Test:
    """One test while its events come in; `word` is None until it ended."""

    word: str | None = None
    said: list[str] = field(default_factory=list)


def read_go(data: bytes) -> list[Told]:
    """
    The tests, named `package.Test/sub`. One that never ended failed, if its package did: it took its process down.

    Raises `Unreadable` for a line that is no event, a test or package that ends twice, and a package whose end is
    missing or at odds with its tests.
    """
    tests: dict[tuple[str, str], _Test] = {}
    packages: dict[str, str | None] = {}
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        try:
            _take(_event(line), tests, packages)
        except Unreadable as error:
            raise Unreadable(f"line {number} of the report, {line[:120]!r}: {error}") from None
    found = [_found(package, name, test, packages[package]) for (package, name), test in tests.items()]
    for package, word in packages.items():
        failed = any(item.word == "failed" and item.path[0] == package for item in found)
        if word is None or (failed and word != "failed"):
            raise Unreadable(
                f"package {package!r} {'did not end' if word is None else f'is {word}, its tests are not'}"
            )
        if word == "failed" and not failed:
            found.append(
                Found(path=(package, "(package)"), word="failed", detail="the package failed, no test of it did")
            )
    return leaves(found, lambda path: f"{path[0]}.{'/'.join(path[1:])}")


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        raise Unreadable("expected an event of `go test -json`") from None
    texts = ("Action", "Package", "Test", "Output")
    if type(event) is not dict or any(type(event.get(key, "")) is not str for key in texts):
        raise Unreadable("expected an event of `go test -json`")
    if not event.get("Package"):
        raise Unreadable("an event of no package: did the suite compile?")
    return event


def _take(event: dict[str, Any], tests: dict[tuple[str, str], _Test], packages: dict[str, str | None]) -> None:
    action, package, name = event.get("Action"), event["Package"], event.get("Test", "")
    word = _WORDS.get(str(action))
    if word is None and action not in _PASSING_BY:
        raise Unreadable(f"an event {str(action)[:40]!r}")
    if packages.setdefault(package, None) is not None:
        raise Unreadable("an event after its package ended")
    if not name:
        packages[package] = word
        return
    if action == "run" and (package, name) in tests:
        raise Unreadable("a test that ran before")
    test = tests.setdefault((package, name), _Test())
    if word is not None and test.word is not None:
        raise Unreadable("a test that ends twice")
    test.word = word or test.word
    if action == "output" and sum(map(len, test.said)) < DETAIL:
        test.said.append(event.get("Output", ""))


def _found(package: str, name: str, test: _Test, ended: str | None) -> Found:
    if test.word is None and ended != "failed":
        raise Unreadable(f"test {name!r} did not end, and its package did not fail")
    said = "".join(line for line in test.said if not line.lstrip().startswith(("=== ", "--- ")))
    return Found(path=(package, *name.split("/")), word=test.word or "failed", detail=said.strip())
