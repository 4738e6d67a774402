"""The reference page and the room's table say what the code has."""

from __future__ import annotations

from pathlib import Path

from referees.evalplus import EvalPlusReferee
from referees.evalplus_options import EvalPlusOptions

ROOT = Path(__file__).parents[2]


def test_every_option_and_class_is_on_the_reference_page() -> None:
    """An option or class that is added, renamed or given another standing shows on the page."""
    page = (ROOT / "docs" / "reference" / "referees.md").read_text()
    section = page[page.index("## `evalplus`") : page.index("## `null`")]
    for name in EvalPlusOptions.model_fields:
        assert f"| `{name}` |" in section, name
    for reading, standing in EvalPlusReferee.classes.items():
        assert f"| `{reading}` | {standing} |" in section, reading


def test_every_module_is_in_the_table_of_the_room() -> None:
    """The room's README names each module of the referee, and none that is not there."""
    table = (ROOT / "referees" / "README.md").read_text()
    there = {path.name for path in (ROOT / "referees").glob("evalplus*.py")}
    assert there == {
        line.split("`")[1] for line in table.splitlines() if line.startswith("| `evalplus") and ".py`" in line
    }
