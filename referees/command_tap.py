"""Reads TAP, versions 13 and 14, with subtests, as `node --test` prints it too; stricter than most who read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from referees.command_report import Found, Told, Unreadable, leaves

__all__ = ["read_tap"]

DEPTH = 8
STEP = 4
"""Spaces that a subtest is set in by."""

_PLAN = re.compile(r"1\.\.(\d{1,6})(?:\s+#(.*))?")
_TEST = re.compile(r"(not )?ok\b(?:\s+(\d{1,6}))?(?:\s+-)?(?:\s+(.*))?")
_HIDDEN = re.compile(r"not ok|\bok \d")
_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(skip|todo)\w*(?:\s.*)?$", re.IGNORECASE)


@dataclass(slots=True)
class _Level:
    """The tests of one level, and of the subtests that no test line has closed yet."""

    plan: int | None = None
    ended: bool = False
    found: list[Found] = field(default_factory=list)
    count: int = 0
    inner: list[Found] = field(default_factory=list)


def read_tap(data: bytes) -> list[Told]:
    """
    The tests of a TAP report, subtests named `outer > inner`.

    Raises `Unreadable` for a line that is no TAP, a plan that is missing, doubled or not kept, numbers out of order,
    and `Bail out!`; and for a comment, a plan's too, or a block with a test's line in it, which a program whose output
    got in here may have hidden there.
    """
    reader = _Reader()
    for number, line in enumerate(_lines(data), 1):
        try:
            reader.take(line)
        except Unreadable as error:
            raise Unreadable(f"line {number} of the report, {line[:120]!r}: {error}") from None
    return leaves(reader.end(), " > ".join)


def _lines(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "replace")
    yield from text.removesuffix("\n").split("\n") if text else ()


class _Reader:
    def __init__(self) -> None:
        self.levels = [_Level()]
        self.block: str | None = None
        self.block_of: _Level | None = None
        self.said: list[str] = []
        self.begun = False

    def take(self, line: str) -> None:
        """One line, by what it may be at its place."""
        if self.block is not None:
            self._in_block(line)
            return
        bare = line.strip()
        begun, self.begun = self.begun, self.begun or bool(bare)
        if not bare or bare.startswith("#"):
            _nothing_hidden(bare)
            return
        if re.fullmatch(r"TAP version 1[34]", line) and not begun:
            return
        if bare == "---" and self.block_of is not None and line == f"{' ' * (STEP * self._depth + 2)}---":
            self.block, self.said = line[:-3], []
            return
        self.block_of = None
        self._told(line, bare)

    @property
    def _depth(self) -> int:
        return len(self.levels) - 1

    def _told(self, line: str, bare: str) -> None:
        depth, rest = divmod(len(line) - len(line.lstrip(" ")), STEP)
        plan, test = _PLAN.fullmatch(bare), _TEST.fullmatch(bare)
        if rest or depth > min(self._depth + 1, DEPTH) or not (plan or test):
            raise Unreadable("expected a plan, a test, a comment or a YAML block of the test before it")
        if depth > self._depth:
            self.levels.append(_Level())
        if plan:
            self._planned(depth, int(plan[1]), plan[2] or "")
        elif test:
            self._tested(depth, test)

    def _planned(self, depth: int, count: int, comment: str) -> None:
        level = self.levels[-1]
        _nothing_hidden(comment)
        if depth < self._depth or level.plan is not None:
            raise Unreadable("a plan inside a subtest that has not ended" if depth < self._depth else "a second plan")
        level.plan, level.ended = count, level.count > 0

    def _tested(self, depth: int, test: re.Match[str]) -> None:
        while depth < self._depth:
            closed = _closed(self.levels.pop())
            self.levels[-1].inner.extend(closed)
            if depth < self._depth:
                raise Unreadable("subtests of two levels end at once")
        level = self.levels[-1]
        level.count += 1
        if level.ended:
            raise Unreadable("a test after the plan that ended its level")
        if test[2] is not None and int(test[2]) != level.count:
            raise Unreadable(f"expected number {level.count}")
        name, word = _named(test, level.count)
        level.found += [Found(path=(name, *item.path), word=item.word, detail=item.detail) for item in level.inner]
        level.inner.clear()
        level.found.append(Found(path=(name,), word=word))
        self.block_of = level

    def _in_block(self, line: str) -> None:
        assert self.block is not None
        assert self.block_of is not None
        if line == f"{self.block}...":
            last = self.block_of.found[-1]
            self.block_of.found[-1] = Found(path=last.path, word=last.word, detail="\n".join(self.said))
            self.block = self.block_of = None
        elif line.strip() and not line.startswith(self.block):
            raise Unreadable("a YAML block that does not end before it")
        else:
            _nothing_hidden(line)
            self.said += [line.removeprefix(self.block)[:200]] * (len(self.said) < 40)

    def end(self) -> list[Found]:
        """Everything found. Raises `Unreadable` for a report that stops in the middle."""
        if self.block is not None or self._depth:
            raise Unreadable("the report stops inside a block or a subtest")
        return _closed(self.levels[0])


def _nothing_hidden(line: str) -> None:
    if _HIDDEN.search(line):
        raise Unreadable("a test's line inside a comment or a block")


def _closed(level: _Level) -> list[Found]:
    if level.plan is None or level.plan != level.count:
        raise Unreadable(f"{level.count} tests, and a plan of {'none' if level.plan is None else level.plan}")
    if level.inner:
        raise Unreadable("subtests without the test that they belong to")
    return level.found


def _named(test: re.Match[str], number: int) -> tuple[str, str]:
    """Name and word of a test line; a directive keeps it from passing."""
    text = (test[3] or "").rstrip()
    directive = _DIRECTIVE.search(text)
    if directive is not None:
        text = text[: directive.start()].rstrip()
    name = text.replace("\\#", "#").replace("\\\\", "\\") or str(number)
    if directive is None or (test[1] and directive[1].lower() == "skip"):
        return name, "failed" if test[1] else "passed"
    return name, "skipped" if directive[1].lower() == "skip" else "todo"
