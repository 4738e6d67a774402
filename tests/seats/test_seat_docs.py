"""The reference of the seats says what the seats are: options and defaults, rules, tools, standings, events."""

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from harness import plugins
from harness.seats.extraction import Rule
from harness.seats.revise_actions import Malformed
from harness.seats.revise_admission import Refusal
from harness.seats.tool_specs import TOOLS
from harness.seats.tools import ToolStanding

PAGE = "\n" + (Path(__file__).parents[2] / "docs/reference/seats.md").read_text(encoding="utf-8")


def rows(heading):
    """First cells of the table below a heading, in order."""
    part = PAGE.split(f"\n{heading}\n", 1)[1]
    table = part.split("|\n|---", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)


def test_every_registered_seat_of_ours_has_a_section():
    """A seat that is built in is in the first table and has a section."""
    ours = [name for name, info in plugins.table("seats").items() if info.target.startswith("harness.")]
    assert sorted(rows("# Seats")) == sorted(ours)
    assert all(f"\n## `{name}`\n" in PAGE for name in ours)


@pytest.mark.parametrize("name", ["oneshot", "loop", "command", "revise", "scripted"])
def test_options_are_the_constructors_own(name):
    """Each option is in the seat's table with its default, and no other is."""
    parameters = inspect.signature(plugins.load("seats", name)).parameters
    assert rows(f"## `{name}`") == list(parameters)
    section = PAGE.split(f"\n## `{name}`\n", 1)[1]
    for option, parameter in parameters.items():
        told = re.search(rf"^\| `{option}` \|([^|]+)\|", section, re.MULTILINE)[1]
        shown = {None: ("none", "all"), (): ("`[]`",), (0,): ("`[0]`",), parameter.empty: ("",)}.get(parameter.default)
        if shown is None:
            value = parameter.default
            shown = (f"`{str(value).lower()}`",) if isinstance(value, bool) else (f'`"{value}"`', f"`{value}`")
        assert told.strip() in shown


def test_rules_tools_and_standings():
    """The tables hold the code's own lists."""
    assert sorted(rows("### How code is found")) == sorted(get_args(Rule))
    assert rows("### Actions of a reply") == list(get_args(Malformed))
    assert rows("### Admission of a patch") == list(get_args(Refusal))
    assert rows("## Tools") == list(TOOLS)
    assert sorted(re.findall(r"^\| `(served|refused|absent|failed)`", PAGE, re.MULTILINE)) == sorted(
        get_args(ToolStanding)
    )


def test_events_of_the_seats_are_told():
    """Every event that a seat writes is in the table."""
    folder = Path(__file__).parents[2] / "harness/seats"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    written = set(re.findall(r"transcript\.add\(\s*\"(\w+)\"", text))
    revising = {"start", "revision", "revised", "certified"}
    assert written == {"round", "mirror", "extraction", "public", "tool", "note", "laid", "program", *revising}
    assert written <= set(rows("## Events of the transcript"))


def test_tool_arguments_are_told():
    """The tools' table names each argument."""
    part = PAGE.split("\n## Tools\n", 1)[1]
    for name, tool in TOOLS.items():
        told = re.search(rf"^\| `{name}` \| ([^|]+) \|", part, re.MULTILINE)[1]
        assert re.findall(r"`(\w+)`", told) == list(tool.arguments)
