"""Referees that each break one rule, made from the scaffold's, which breaks none."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from unittest.mock import patch

import anyio

from harness.environment import lent
from harness.errors import WorkspaceError
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Tree
from harness.views import Fact, PublicReading
from tests.referees.printed_answers import PrintedAnswersReferee

__all__ = ["BAD"]


class _Turned(PrintedAnswersReferee):
    """Judges as the scaffold's does, and then says what `turned` makes of it."""

    async def judge(self, exhibit: Any, task: Any, sealed: Any, rooms: Any) -> Any:
        """The verdict, turned."""
        verdict = await super().judge(exhibit, task, sealed, rooms)
        reading = self.turned(verdict.reading, exhibit, task)
        return replace(verdict, reading=reading, standing=self.classes[reading])

    def turned(self, reading: str, exhibit: Any, task: Any) -> str:
        """PASS for everything."""
        return "PASS"


class ReadsOutput(PrintedAnswersReferee):
    """Believes a program that prints PASS."""

    async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
        result = await room.exec(command, stdin=given.encode(), timeout_s=self.wall_s)
        return "PASS" if b"PASS" in result.stdout or result.stdout.decode() == expected else "FAIL"

    def battery(self, task: Any, sealed: Any) -> dict[str, Tree]:
        """Without the one that would show it."""
        return {"empty": Tree()}


class TrustsExitCode(PrintedAnswersReferee):
    """Takes an exit code of 0 for a pass."""

    async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
        result = await room.exec(command, stdin=given.encode(), timeout_s=self.wall_s)
        return "PASS" if result.status == 0 else "FAIL"

    def battery(self, task: Any, sealed: Any) -> dict[str, Tree]:
        """Without those that would show it."""
        return {"empty": Tree()}


class ReadsFiles(_Turned):
    """Is kind to arm P, by a file."""

    def turned(self, reading: str, exhibit: Any, task: Any) -> str:
        """PASS where a file names the arm."""
        return "PASS" if "P.txt" in exhibit.tree else reading


class ReadsInstruction(_Turned):
    """Is hard on arm B, by the instruction."""

    def turned(self, reading: str, exhibit: Any, task: Any) -> str:
        """FAIL where the instruction names the arm."""
        return "FAIL" if "arm B" in task.instruction else reading


class ReadsEnvironment(_Turned):
    """Is kind to every arm that the environment names."""

    def turned(self, reading: str, exhibit: Any, task: Any) -> str:
        """PASS where the variable is set."""
        try:
            with lent("PROCTOR_ARM", "me"):
                return reading
        except ValueError:
            return "PASS"


class BlamesTheSubject(_Turned):
    """Says FAIL where its room dies."""

    async def judge(self, exhibit: Any, task: Any, sealed: Any, rooms: Any) -> Any:
        """The verdict, or FAIL."""
        try:
            return await PrintedAnswersReferee.judge(self, exhibit, task, sealed, rooms)
        except WorkspaceError:
            return await PrintedAnswersReferee.judge(self, replace(exhibit, tree=Tree()), task, sealed, self._spare)

    @asynccontextmanager
    async def _spare(self) -> Any:
        from tests.referees.printed_answers import rooms

        async with rooms() as room:
            yield room


class ConcludesFromUnknown(PrintedAnswersReferee):
    """Takes an end that is not known for a failure."""

    async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
        result = await room.exec(command, stdin=given.encode(), timeout_s=self.wall_s)
        return (
            "TIMEOUT"
            if result.timed_out
            else "PASS"
            if result.stdout.decode("utf-8", "replace") == expected
            else "FAIL"
        )


class Unbounded(PrintedAnswersReferee):
    """Waits for as long as it takes."""

    async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
        reading = await super()._one(room, command, given, expected)
        if reading == "TIMEOUT":
            await anyio.sleep_forever()
        return str(reading)


class Flips(_Turned):
    """Says something else every other time."""

    times = itertools.count()

    def turned(self, reading: str, exhibit: Any, task: Any) -> str:
        """By turns."""
        return "FAIL" if next(self.times) % 2 else reading


class AcceptsEverything(_Turned):
    """Never says no."""


class ForgetsTheTests(PrintedAnswersReferee):
    """Its suite's digest is the card's alone."""

    def suite(self, sealed: Any) -> Any:
        """Always the same."""
        return {"digest": "suite-1"}


class KnowsTheShapeOnly(PrintedAnswersReferee):
    """Refuses what is no suite, and has one digest for all that are."""

    def suite(self, sealed: Any) -> Any:
        """Always the same; it raises for what can't be read."""
        super().suite(sealed)
        return {"digest": "suite-1"}


class TakesAnyOption(PrintedAnswersReferee):
    """Passes over what it does not know."""

    def __init__(self, options: Any = None, /) -> None:
        super().__init__({key: value for key, value in dict(options or {}).items() if key == "wall_s"})


class IsToldTheArm(PrintedAnswersReferee):
    """Its signature has a place for the arm."""

    async def judge(self, exhibit: Any, task: Any, sealed: Any, rooms: Any, arm: str = "") -> Any:
        """As always."""
        return await super().judge(exhibit, task, sealed, rooms)


class OneExecution(PrintedAnswersReferee):
    """Every execution has the same name."""

    async def judge(self, exhibit: Any, task: Any, sealed: Any, rooms: Any) -> Any:
        """As always, under one name."""
        verdict = await super().judge(exhibit, task, sealed, rooms)
        return replace(verdict, evidence=replace(verdict.evidence, execution="1", code="0"), limits={})


class RunsItHere(PrintedAnswersReferee):
    """Runs the program in the harness's own process."""

    async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
        said = io.StringIO()
        source = room.files["solution.py"].decode() if "solution.py" in room.files else ""
        with redirect_stdout(said), patch.object(sys, "stdin", io.StringIO(given)):
            exec(source, {})  # noqa: S102 - what must be found out
        return "PASS" if said.getvalue() == expected else "FAIL"


class RunsItBeside(PrintedAnswersReferee):
    """Runs the program on this machine, in a process without walls."""

    async def _run(self, tree: Any, sealed: Any, rooms: Any) -> Any:
        whole = Tree.of({"solution.py": ""}).merged(tree)
        with TemporaryDirectory() as folder:
            await anyio.Path(folder, "solution.py").write_bytes(whole["solution.py"])
            words = [sys.executable, "solution.py"]
            await anyio.to_thread.run_sync(
                lambda: subprocess.run(words, cwd=folder, input=b"", capture_output=True, check=False)
            )
        return await super()._run(tree, sealed, rooms)


class TellsTheSolution(PrintedAnswersReferee):
    """Its public tier gives away a line of the reference."""

    @asynccontextmanager
    async def public_check(self, task: Any, sealed: Any, rooms: Any) -> Any:
        """A fact with more in it than a fact."""
        line = "return sum(int(word) for word in text.split())"

        async def check(code: str) -> PublicReading:
            return PublicReading(
                reading="FAIL", accepted=False, passed=0, total=1, facts=(Fact(call=line, expected="1"),)
            )

        yield check


class TellsTheSolutionInstead(PrintedAnswersReferee):
    """Its public tier gives away a line of the reference as what a candidate is said to have raised."""

    @asynccontextmanager
    async def public_check(self, task: Any, sealed: Any, rooms: Any) -> Any:
        """A fact like any other, but for what came instead."""
        told = Fact(call="f(1)", expected="1", raised="return sum(int(word) for word in text.split())")

        async def check(code: str) -> PublicReading:
            return PublicReading(reading="FAIL", accepted=False, passed=0, total=1, facts=(told,))

        yield check


class Raises(PrintedAnswersReferee):
    """Fails with an error of nobody's."""

    async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
        try:
            return str(await super()._one(room, command, given, expected))
        except WorkspaceError:
            raise KeyError("room") from None


class Leaves(PrintedAnswersReferee):
    """Ends the process that asks it, as if all were well."""

    async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
        raise SystemExit(0)

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> dict[str, Tree]:
        """None: it leaves."""
        raise SystemExit(0)


class OtherName(PrintedAnswersReferee):
    """Is registered under another name."""

    name = "other"
    classes: ClassVar = {"PASS": "accepted", "fail": "rejected", "TIMEOUT": "lost"}


BAD = [
    (ReadsOutput, "not believed", "claims and exits with 0 was PASS"),
    (TrustsExitCode, "not believed", "exits with 0 was PASS"),
    (TrustsExitCode, "empty", "the reference's files, empty was PASS"),
    (TrustsExitCode, "garbage", "with garbage from every room the reference was PASS"),
    (ReadsFiles, "arm-blind", "with arm P named in files PASS"),
    (ReadsInstruction, "arm-blind", "with arm B named in instruction FAIL"),
    (ReadsEnvironment, "arm-blind", "named in environment PASS"),
    (BlamesTheSubject, "own failure", "the reference was FAIL (rejected)"),
    (ConcludesFromUnknown, "own failure", "what became of program 1 of 3 is unknown, and the reference was FAIL"),
    (Raises, "own failure", "raised: KeyError"),
    (Leaves, "reference", "raised: SystemExit"),
    (Leaves, "battery", "it raised SystemExit"),
    (Unbounded, "bounded", "loops was late"),
    (Flips, "repeatable", "different in reading"),
    (AcceptsEverything, "battery", "silent was PASS"),
    (AcceptsEverything, "bounded", "loops was PASS"),
    (ForgetsTheTests, "suite digest tells changes", "cases.toml was changed in 8 places"),
    (KnowsTheShapeOnly, "suite digest tells changes", "places, and the digest is the same"),
    (TakesAnyOption, "unknown option", "it was taken"),
    (IsToldTheArm, "signature", "judge takes 'arm'"),
    (OneExecution, "verdicts", "evidence.execution '1' is an earlier execution's"),
    (OneExecution, "verdicts", "evidence.code is '0'"),
    (OneExecution, "time and limits", "leave out"),
    (RunsItHere, "walled", "in the harness's own process"),
    (RunsItBeside, "walled", "on this machine, outside of every room"),
    (TellsTheSolution, "public tier", "a fact holds a line of the solution"),
    (TellsTheSolutionInstead, "public tier", "a fact holds a line of the solution"),
    (OtherName, "name", "it calls itself 'other'"),
    (OtherName, "class table", "'fail' is no reading; TIMEOUT is 'lost'"),
]
"""Each with the rule that it breaks, and words of what must be seen."""
