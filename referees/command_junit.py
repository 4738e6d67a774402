"""
Reads JUnit's XML, as `ctest --output-junit` and many others write it.

By the expat parser of the standard library, with what could hide or multiply content refused where it begins: document
types and with them all entities, processing instructions, comments, elements that the format does not know, test cases
inside a text, and failures inside one that is taken as it stands.
"""

from __future__ import annotations

import re
import xml.parsers.expat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from referees.command_report import DETAIL, MOST, Told, Unreadable

__all__ = ["read_junit"]

DEPTH = 8
_SUITES = frozenset({"testsuites", "testsuite"})
_FAILED = frozenset({"failure", "error", "flakyFailure", "flakyError", "rerunFailure", "rerunError"})
_TEXTS = frozenset({"system-out", "system-err"})
_INSIDE: Mapping[str, frozenset[str]] = {
    "": _SUITES,
    "testsuites": frozenset({"testsuite", "testcase", "properties"}),
    "testsuite": frozenset({"testsuite", "testcase", "properties", *_TEXTS}),
    "testcase": frozenset({"skipped", "properties", *_TEXTS, *_FAILED}),
    "properties": frozenset({"property"}),
    **{name: frozenset({"stackTrace", *_TEXTS}) for name in _FAILED},
}
_CASE = re.compile(r"<testcase")
_RESULT = re.compile(r"</?(?:testcase|testsuites?|failure|error|skipped|flaky\w+|rerun\w+)[\s/>]")
_LONGEST = 40
"""Characters of a text that are looked at again with what follows: it comes in pieces."""
_STATUS = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}


@dataclass(slots=True)
class _Case:
    """One test case while it is read."""

    name: str
    words: list[str]
    said: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Suite:
    """What a suite claims to hold, and what was found in it."""

    attributes: Mapping[str, str]
    found: dict[str, int] = field(default_factory=lambda: {"tests": 0, "failures": 0, "skipped": 0})


def read_junit(data: bytes) -> list[Told]:
    """
    The test cases of a report, named `classname.name`, or `name` alone where both are the same or there is no class.

    Raises `Unreadable` for XML that is not UTF-8, not well formed or not this format's, and for counts that do not
    agree.
    """
    reader = _Reader()
    # Whatever encoding the document says: one that Python knows and expat does not could be any error.
    parser = xml.parsers.expat.ParserCreate("UTF-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.stop
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = _refuse("a document type")
    parser.StartCdataSectionHandler = reader.verbatim
    parser.EndCdataSectionHandler = reader.escaped
    parser.EntityDeclHandler = _refuse("an entity")
    parser.ProcessingInstructionHandler = _refuse("a processing instruction")
    parser.CommentHandler = _refuse("a comment")
    try:
        parser.Parse(data, True)  # noqa: FBT003 - the parser's own way to say that this is all
    except xml.parsers.expat.ExpatError as error:
        raise Unreadable(f"the report is no XML: {error}") from None
    return reader.told


def _refuse(what: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise Unreadable(f"the report has {what}")

    return refuse


class _Reader:
    def __init__(self) -> None:
        self.told: list[Told] = []
        self.path: list[str] = []
        self.suites: list[_Suite] = []
        self.case: _Case | None = None
        self.hiding = _CASE
        self.tail = ""

    def verbatim(self) -> None:
        """Text begins in which nothing is escaped: whatever is in it, the parser does not see."""
        self.hiding = _RESULT

    def escaped(self) -> None:
        """It ends."""
        self.hiding = _CASE

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        above = self.path[-1] if self.path else ""
        if name not in _INSIDE.get(above, frozenset()) or len(self.path) >= DEPTH:
            raise Unreadable(f"an element {name[:40]!r} in {above or 'the report'!r}")
        self.path.append(name)
        self.tail = ""
        if name in _SUITES:
            self.suites.append(_Suite(attributes))
        elif name == "testcase":
            self.case = _Case(_name(attributes), _status(attributes))
        elif above == "testcase" and self.case is not None and name not in {*_TEXTS, "properties"}:
            self.case.words.append("skipped" if name == "skipped" else "failed")
            self.case.said.append(attributes.get("message", "")[:DETAIL])

    def text(self, text: str) -> None:
        """Text inside an element: a failure's, and what a test put out, is kept for people."""
        inside = self.path[-1] if self.path else ""
        seen = self.tail + text
        if self.hiding.search(seen):
            raise Unreadable(
                f"a test's result inside the text of {inside!r}: a program's output may have hidden it there"
            )
        self.tail = seen[-_LONGEST:]
        if inside in {*_SUITES, "testcase", "properties"} and text.strip():
            raise Unreadable(f"text in {inside!r}: {text.strip()[:40]!r}")
        if self.case is not None and inside in {*_FAILED, *_TEXTS}:
            kept = self.case.said if inside in _FAILED else self.case.heard
            if sum(map(len, kept)) < DETAIL:
                kept.append(text[:DETAIL])

    def stop(self, name: str) -> None:
        """An element ends."""
        self.path.pop()
        self.tail = ""
        if name == "testcase" and self.case is not None:
            self._close(self.case)
            self.case = None
        elif name in _SUITES:
            _agree(self.suites.pop())

    def _close(self, case: _Case) -> None:
        word = next((word for word in ("failed", "skipped") if word in case.words), "passed")
        said = "\n".join(part.strip() for part in case.said if part.strip()) or "".join(case.heard).strip()
        self.told.append(Told(id=case.name, word=word, detail=said[:DETAIL] if word != "passed" else ""))
        if len(self.told) > MOST:
            raise Unreadable(f"more than {MOST} tests")
        for suite in self.suites:
            suite.found["tests"] += 1
            suite.found["failures"] += word == "failed"
            suite.found["skipped"] += word == "skipped"


def _name(attributes: Mapping[str, str]) -> str:
    name, owner = attributes.get("name", ""), attributes.get("classname", "")
    if not name:
        raise Unreadable("a test case without a name")
    return name if owner in {"", name} else f"{owner}.{name}"


def _status(attributes: Mapping[str, str]) -> list[str]:
    """What the attribute `status` says, where there is one."""
    status = attributes.get("status")
    if status is not None and status not in _STATUS:
        raise Unreadable(f"a test case with the status {status[:40]!r}: expected one of {', '.join(_STATUS)}")
    return [] if status is None else [_STATUS[status]]


def _agree(suite: _Suite) -> None:
    """A suite's counts, where it gives them, are of what is in it."""
    try:
        said = {key: int(suite.attributes[key]) for key in _COUNTS if key in suite.attributes}
    except ValueError:
        raise Unreadable(f"counts that are no numbers: {dict(suite.attributes)!r:.200}") from None
    claims = [("tests", said.get("tests"))]
    if "failures" in said:
        claims.append(("failures", said["failures"] + said.get("errors", 0)))
    if "skipped" in said:
        claims.append(("skipped", said["skipped"] + said.get("disabled", 0)))
    for key, count in claims:
        if count is not None and count != suite.found[key]:
            raise Unreadable(f"a suite says {key} {count}, and {suite.found[key]} are in it")


_COUNTS = ("tests", "failures", "errors", "skipped", "disabled")
