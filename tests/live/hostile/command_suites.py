"""
The suites that hostile programs of the `command` referee are for, by a word: the one that a task should have, and those
that no task should: each lets the program's output into its report, past the look of the stub, in one runner's format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["BEGINNING", "REFUSING", "SUITES", "Suite"]

REFUSING = """\
import sys
if sys.argv[1:] != ["twice"]:
    sys.exit(2)
"""
"""The beginning of a program that gets the second test right."""
BEGINNING = f"{REFUSING}text = sys.stdin.read()\n"


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite in sh, the card's part of it, and the line with which an honest program ends."""

    text: str
    last: str
    card: dict[str, Any] = field(default_factory=lambda: {"runner": "tap", "ids": ["doubles", "refuses"]})


_CAPTURED = """\
echo 1..2
[ "$(printf ab | subject twice 2>/dev/null)" = abab ] && echo "ok 1 - doubles" || echo "not ok 1 - doubles"
subject often </dev/null >/dev/null 2>&1
[ $? = 2 ] && echo "ok 2 - refuses" || echo "not ok 2 - refuses"
"""


def _raw(
    *, begin: str = "", shown: str, doubles: tuple[str, str], refuses: tuple[str, str], end: tuple[str, str]
) -> str:
    """A suite that says the first of each pair where all is well; its status is that of its last line."""
    return f"""\
said() {{ printf '%s\\n' "$1"; }}
bad=0
[ -z '{begin}' ] || said '{begin}'
printf ab | subject twice 2>/dev/null | tee found
if [ "$(cat found)" = '{shown}' ]; then said '{doubles[0]}'; else said '{doubles[1]}'; bad=1; fi
subject often </dev/null >/dev/null 2>&1
if [ $? = 2 ]; then said '{refuses[0]}'; else said '{refuses[1]}'; bad=1; fi
if [ $bad = 0 ]; then {end[0]}; else {end[1]}; fi
"""


def _go(action: str, test: str) -> str:
    return f'{{"Action":"{action}","Package":"p","Test":"{test}"}}'


_PACKAGE = 'said \'{{"Action":"{0}","Package":"p"}}\'; exit {1}'
_RESULT = "said ''; said 'test result: {0}; 0 ignored; 0 measured; 0 filtered out'; exit {1}"

SUITES = {
    "captured": Suite(text=_CAPTURED, last="print(text + text)\n"),
    "raw": Suite(
        text=_raw(
            begin="1..2",
            shown="# abab",
            doubles=("ok 1 - doubles", "not ok 1 - doubles"),
            refuses=("ok 2 - refuses", "not ok 2 - refuses"),
            end=("exit 0", "exit 0"),
        ),
        last="print(f'# {text}{text}')\n",
    ),
    "unnumbered": Suite(
        text=_raw(
            begin="1..2",
            shown="# abab",
            doubles=("ok - doubles", "not ok - doubles"),
            refuses=("ok - refuses", "not ok - refuses"),
            end=("exit 0", "exit 0"),
        ),
        last="print(f'# {text}{text}')\n",
    ),
    "go": Suite(
        text=_raw(
            shown='{"Action":"output","Package":"p","Output":"abab"}',
            doubles=(_go("pass", "doubles"), _go("fail", "doubles")),
            refuses=(_go("pass", "refuses"), _go("fail", "refuses")),
            end=(_PACKAGE.format("pass", 0), _PACKAGE.format("fail", 1)),
        ),
        last="""print('{"Action":"output","Package":"p","Output":"' + text + text + '"}')\n""",
        card={"runner": "go", "ids": ["p.doubles", "p.refuses"]},
    ),
    "cargo": Suite(
        text=_raw(
            begin="running 2 tests",
            shown="test abab has been running for over 60 seconds",
            doubles=("test doubles ... ok", "test doubles ... FAILED"),
            refuses=("test refuses ... ok", "test refuses ... FAILED"),
            end=(
                _RESULT.format("ok. 2 passed; 0 failed", 0),
                _RESULT.format("FAILED. 1 passed; 1 failed", 1),
            ),
        ),
        last="print(f'test {text}{text} has been running for over 60 seconds')\n",
        card={"runner": "cargo", "ids": ["doubles", "refuses"]},
    ),
    "junit": Suite(
        text=_raw(
            begin='<testsuite><testcase name="doubles"><system-out>',
            shown="abab",
            doubles=("</system-out>", '</system-out><failure message="no"/>'),
            refuses=(
                '</testcase><testcase name="refuses"/>',
                '</testcase><testcase name="refuses"><failure/></testcase>',
            ),
            end=("said '</testsuite>'; exit 0", "said '</testsuite>'; exit 0"),
        ),
        last="print(text + text)\n",
        card={"runner": "junit", "report": "stdout", "ids": ["doubles", "refuses"]},
    ),
    "counts": Suite(
        text=_raw(
            shown="abab",
            doubles=("", ""),
            refuses=("", ""),
            end=("said '0 failed, 2 passed'; exit 0", "said '1 failed, 1 passed'; exit 0"),
        ).replace("then said ''; else said ''; bad", "then :; else bad"),
        last="print(text + text)\n",
        card={"runner": "counts", "total": 2, "pattern": r"(?P<failed>\d+) failed, (?P<passed>\d+) passed"},
    ),
}
"""By the word behind a candidate's class; without one it is `captured`."""
