"""
Did the live tests run? Reads pytest's JUnit XML and exits 1, saying why, unless each group has passed tests in it and
none was skipped.

    python .ci/live_ran.py build/gate/live.xml
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree as ET

LEAST = {"docker": 20, "bubblewrap": 20, "report_page": 10}
"""Passed tests that each group must have, of a workspace or of the page in a browser: their names contain the word."""


def faults(report: Path) -> list[str]:
    """What is wrong with the run that `report` tells of; empty when nothing is."""
    try:
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314  # our own pytest wrote it a moment ago
    except FileNotFoundError:
        return [f"there is no {report}: the live tests never ran, or not to their end"]
    except ET.ParseError as error:
        return [f"{report} is not whole ({error}): the live tests were cut short"]
    found = [f"skipped: {_name(case)}" for case in cases if case.find("skipped") is not None]
    passed = [
        _name(case) for case in cases if not any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
    ]
    for group, least in LEAST.items():
        count = sum(group in name.lower() for name in passed)
        sys.stdout.write(f"   live tests passed on {group}: {count}\n")
        if count < least:
            found.append(f"{count} live tests passed on {group}: expected {least} at least")
    return found


def _name(case: ET.Element) -> str:
    return f"{case.get('classname', '')}.{case.get('name', '')}"


def main() -> int:
    """The exit status."""
    if len(sys.argv) != 2:
        sys.stderr.write("expected one argument, the JUnit XML of the live tests\n")
        return 2
    found = faults(Path(sys.argv[1]))
    for fault in found:
        sys.stderr.write(f"   live tests: {fault}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
