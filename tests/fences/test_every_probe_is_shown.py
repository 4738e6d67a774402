"""A probe without its three cases shows nothing: each registered one has them, by its kind or in its family's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from fences.programs import ProgramProbe
from fences.receipt import registered_probes
from fences.shell_programs import ShellProbe


class Unshown:
    """A probe that no test knows."""

    name = "unshown"
    language = "nobody's"


def by_its_kind(probe):
    """Whether `test_probe_findings.py` shows its findings, as it does of every structural program and every script."""
    return isinstance(probe, ShellProbe) or (isinstance(probe, ProgramProbe) and probe.is_one_program())


def shown_in(probe):
    """The tests of families that name the probe's class or take all of its language, and that show every finding."""
    found = []
    for path in Path(__file__).parent.glob("test_probes_*.py"):
        text = path.read_text("utf-8")
        named = type(probe).__name__ in text or f'probe.language == "{probe.language}"' in text
        if (
            named
            and all(word in text for word in ("SERVED", "INCONCLUSIVE"))
            and ("DENIED" in text or "ABSENT" in text)
        ):
            found.append(path.name)
    return found


@pytest.mark.parametrize("probe", registered_probes(), ids=lambda probe: probe.name)
def test_every_registered_probe_shows_its_findings(probe):
    """Turned down, served, unclear."""
    assert by_its_kind(probe) or shown_in(probe), f"{probe.name}: add its three cases to a test_probes_*.py"


def test_a_probe_that_no_test_knows_is_found():
    """The rule itself can fail."""
    assert not by_its_kind(Unshown())
    assert not shown_in(Unshown())
