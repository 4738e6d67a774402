"""
SWE-bench's own grading, by the package itself, on logs written in the formats of four runners. The same worker grades
here that runs instances: what it replaces in the package is nothing that grading calls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from referees.swebench import tiers_of
from referees.swebench_run import answered

LOGS = Path(__file__).parent / "swebench_logs"
NAMES = {
    "pytest": ("parse_log_pytest", "testing/test_mark.py::test_fixed[a-1]", "testing/test_mark.py::test_kept"),
    "django": (
        "parse_log_django",
        "test_fixed (utils_tests.test_dates.DateTests)",
        "A day that has always worked.",
    ),
    "sympy": ("parse_log_sympy", "test_fixed", "test_kept"),
    "jest": ("parse_log_jest", "fixed", "kept"),
}
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


async def graded(name: str) -> dict[str, Any]:
    """The package's report on the log of that name."""
    parser, fixed, kept = NAMES[name.partition("_")[0]]
    instance = {
        "instance_id": "demo__demo-1",
        "image": "demo",
        "repo": "demo/demo",
        "version": "1",
        "eval_script": "",
        "FAIL_TO_PASS": [fixed],
        "PASS_TO_PASS": [kept],
        "log_parser": parser,
        "eval_type": "pass_and_fail",
    }
    order = {"instance": instance, "patch": "a patch", "log": (LOGS / f"{name}.txt").read_text("utf-8"), "nonce": "n"}
    report: dict[str, Any] = (await answered(order, within_s=100))["report"]
    return report


@pytest.mark.parametrize("runner", list(NAMES))
async def test_resolved_and_not(runner: str) -> None:
    """Both tests as they should be is resolved; the same log with the one that was to be fixed failing is not."""
    good = await graded(f"{runner}_resolved")
    assert (good["resolved"], [tier.passed for tier in tiers_of(good)]) == (True, [1, 1])
    bad = await graded(f"{runner}_unresolved")
    assert (bad["resolved"], [tier.passed for tier in tiers_of(bad)]) == (False, [0, 1])
    assert [tier.reading for tier in tiers_of(bad)] == ["UNRESOLVED", "RESOLVED"]


@pytest.mark.parametrize(
    ("name", "tiers"), [("missing", 2), ("cut", 0), ("timed_out", 0), ("patch_failed", 0), ("exit_belies", 0)]
)
async def test_logs_of_no_result(name: str, tiers: int) -> None:
    """A test that is missing, a log cut short, its marks of a time-out or a patch, a status that belies it: unresolved."""
    report = await graded(f"pytest_{name}")
    assert (report["resolved"], len(tiers_of(report))) == (False, tiers)
