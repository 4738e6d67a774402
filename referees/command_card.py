"""What the `command` referee needs to know of a task: its runner, its ids, its report, and the program it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, field_validator, model_validator

from harness.tasks.card import Card, Limits
from harness.tree import clean_path
from referees.command_report import MOST

__all__ = ["RUNNERS", "CommandCard", "CommandLimits", "Runner"]

Runner: TypeAlias = Literal["cargo", "go", "node", "ctest", "junit", "tap", "counts"]


def _whole(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL, which no argument and no variable can")
    return text


Word: TypeAlias = Annotated[str, AfterValidator(_whole)]
Argv: TypeAlias = Annotated[list[Word], Field(min_length=1)]
Place: TypeAlias = Literal["stdout", "file"]
Variable: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class _Usual:
    """How a runner is usually called, and where it then puts its report."""

    def __init__(self, command: list[str], report: Place, prepare: list[list[str]] | None = None) -> None:
        self.command, self.report, self.prepare = command, report, prepare or []


RUNNERS: Mapping[str, _Usual] = MappingProxyType(
    {
        "cargo": _Usual(["cargo", "test", "--offline", "--no-fail-fast", "--tests"], "stdout"),
        "go": _Usual(["go", "test", "-json", "-count=1", "./..."], "stdout"),
        "node": _Usual(["node", "--test", "--test-reporter=tap"], "stdout"),
        "ctest": _Usual(
            ["ctest", "--test-dir", "build", "--output-junit", "{report}"],
            "file",
            [["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]],
        ),
        "junit": _Usual([], "file"),
        "tap": _Usual([], "stdout"),
        "counts": _Usual([], "stdout"),
    }
)
"""The runners by name. One without a usual command has to be given one."""

_OUT = (
    "where the program under test could write it: leave the key out, or say 'stdout' or 'file' ({report} in `command`, "
    "PROCTOR_REPORT in its environment), both of which are in the suite's room"
)


class CommandLimits(Limits):
    """What the subject, and the suite's own side, may use; a limit left out is the referee's own."""

    build_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds of the processor that building the exhibit may use, and as many in which nothing of it could run."""
    judge_s: Annotated[float, Field(gt=0)] | None = None
    """Seconds by the clock that the suite's own side may take on top of `wall_s`."""


class CommandCard(Card):
    """The keys of `[proctor.card]`, and those that every card may have."""

    runner: Runner
    """What runs the suite, and how its report is read."""
    command: list[Word] = Field(default_factory=list)
    """The runner's command, started in the suite's folder; `{report}` is the path of the report's file."""
    prepare: list[Argv] = Field(default_factory=list)
    """Commands run in the suite's folder before the runner, without the program: building the suite."""
    report: Place = "stdout"
    """Where the runner puts its report, in the suite's room."""
    ids: list[str] = Field(default_factory=list)
    """Every test that the report names; none for `counts`."""
    total: Annotated[int, Field(ge=1, le=MOST)] | None = None
    """How many tests there are, for `counts` alone."""
    pattern: str = ""
    """For `counts` alone: a regular expression with the groups `passed` and `failed`, that one line matches."""
    program: Argv
    """The program under test, started in the exhibit's folder; the suite's arguments follow."""
    needs: list[str] = Field(default_factory=list)
    """Files that there must be once the exhibit is built, the program itself aside."""
    build: list[Argv] = Field(default_factory=list)
    """Commands run in the exhibit's folder before the program is called."""
    ignore: list[str] = Field(default_factory=list)
    """Folders and files of the exhibit that are left out: what was built before is built again."""
    main: str = ""
    """The file that holds the program: where degenerate programs are written, by its suffix."""
    environment: dict[Variable, Word] = Field(default_factory=dict)
    """Variables for the build, the runner and the program."""
    crossing: list[Variable] = Field(default_factory=list)
    """Variables that cross from a test to the program that it calls."""
    limits: CommandLimits = CommandLimits()
    """What may be used."""
    linked: bool = False
    """Refused: the exhibit in the runner's own process."""

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, data: object) -> object:
        """A runner's usual command and report take the place of what is not said."""
        usual = RUNNERS.get(str(data.get("runner"))) if isinstance(data, dict) else None
        if not isinstance(data, dict) or usual is None:
            return data
        if data.get("command"):
            return {"report": usual.report, **data}
        return {"report": usual.report, "prepare": usual.prepare, **data, "command": usual.command}

    @field_validator("report", mode="before")
    @classmethod
    def _out_of_reach(cls, place: object) -> object:
        if isinstance(place, str) and place not in {"stdout", "file"}:
            raise ValueError(f"a report is refused from {_OUT}")
        return place

    @field_validator("main")
    @classmethod
    def _inside(cls, main: str) -> str:
        return clean_path(main) if main else main

    @field_validator("linked")
    @classmethod
    def _apart(cls, linked: bool) -> bool:  # noqa: FBT001 - pydantic calls it
        if linked:
            raise ValueError(
                "the exhibit in the runner's room could write the report. Leave it out, and have the suite call "
                "`subject`: for a library, a small driver program that is built with the exhibit"
            )
        return linked

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.command:
            raise ValueError(f"runner {self.runner!r} has no usual command: give `command`")
        doubled = sorted({test for test in self.ids if self.ids.count(test) > 1})
        if doubled:
            raise ValueError(f"ids: {', '.join(map(repr, doubled))} listed more than once")
        self._counted() if self.runner == "counts" else self._named()
        return self

    def _named(self) -> None:
        if not self.ids:
            raise ValueError(f"runner {self.runner!r} names its tests: give `ids`, every one of them")
        if self.total is not None or self.pattern:
            raise ValueError(f"`total` and `pattern` are for the runner 'counts', and this is {self.runner!r}")

    def _counted(self) -> None:
        if self.ids or self.total is None:
            raise ValueError("runner 'counts' names no test: give `total`, how many there are, and no `ids`")
        try:
            groups = set(re.compile(self.pattern).groupindex)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"pattern {self.pattern[:200]!r} is no regular expression: {error}") from None
        if not {"passed", "failed"} <= groups <= {"passed", "failed", "skipped"}:
            raise ValueError(
                f"pattern {self.pattern!r} has the groups {sorted(groups)}: expected (?P<passed>...), (?P<failed>...) "
                "and, where the runner counts them, (?P<skipped>...)"
            )

    @property
    def declared(self) -> list[str]:
        """The tests that must pass: the ids, or as many numbers as there are tests."""
        return self.ids or [str(number) for number in range(1, (self.total or 0) + 1)]
