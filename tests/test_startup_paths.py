"""What is loaded when a command starts, and what the gate's own scripts say of a run that left tests out."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {"anyio", "docker", "httpx", "numpy", "ollama", "openai", "pydantic", "requests", "scipy", "structlog"}
"""Each costs more time than all of `proctor --help` may take, or near it."""


def script(path: str):
    """A script of the repository as a module, which no package holds."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def loaded(code: str) -> set[str]:
    """The top-level modules that a new interpreter holds after `code`."""
    ask = f"import json, sys\n{code}\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True, cwd=ROOT)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_harness_loads_nothing_heavy():
    """`import harness` is there at once, because no large library comes with it."""
    assert loaded("import harness") & HEAVY == set()


def test_help_loads_nothing_heavy():
    """`proctor --help` prints its text without one of the libraries that commands work with."""
    code = "from typer.testing import CliRunner\nfrom cells.cli import app\nassert CliRunner().invoke(app, ['--help']).exit_code == 0"
    assert loaded(code) & (HEAVY | {"harness.models", "fences"}) == set()


def test_a_heavy_import_would_be_seen():
    """The check above sees a library that was loaded."""
    assert "pydantic" in loaded("import harness.experiment") & HEAVY


def case(name: str, inside: str = "") -> str:
    """One test of a JUnit report."""
    return f'<testcase classname="tests.live.test_it" name="{name}">{inside}</testcase>'


def report(folder: Path, *cases: str) -> Path:
    """A report of these tests."""
    path = folder / "live.xml"
    path.write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>", encoding="utf-8")
    return path


def enough(group: str) -> list[str]:
    """As many passed tests of a group as the gate asks for."""
    return [case(f"test_{n}[{group}]") for n in range(script(".ci/live_ran.py").LEAST[group])]


def test_a_whole_live_run_has_no_faults(tmp_path):
    """Enough passed tests in each group and none skipped: nothing to say."""
    groups = [one for group in script(".ci/live_ran.py").LEAST for one in enough(group)]
    assert script(".ci/live_ran.py").faults(report(tmp_path, *groups)) == []


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        pytest.param([], "0 live tests passed on docker", id="none"),
        pytest.param(enough("docker"), "0 live tests passed on bubblewrap", id="one-group"),
        pytest.param([*enough("docker"), *enough("bubblewrap")[1:]], "passed on bubblewrap: expected", id="too-few"),
        pytest.param(
            [*enough("docker"), *enough("bubblewrap")], "0 live tests passed on report_page", id="without-the-browser"
        ),
        pytest.param(
            [*enough("docker"), *enough("bubblewrap")[1:], case("test_x[bubblewrap]", "<failure/>")],
            "passed on bubblewrap: expected",
            id="failed-do-not-count",
        ),
        pytest.param(
            [*enough("docker"), *enough("bubblewrap"), case("test_left_out", "<skipped/>")],
            "skipped: tests.live.test_it.test_left_out",
            id="skipped",
        ),
    ],
)
def test_a_live_run_that_left_tests_out_is_refused(tmp_path, cases, said):
    """No test at all, a group without tests, failed ones and skipped ones are each named."""
    found = script(".ci/live_ran.py").faults(report(tmp_path, *cases))
    assert any(said in fault for fault in found), found


def test_a_live_run_without_a_whole_report_is_refused(tmp_path):
    """Neither a missing report nor one that was cut short passes for a run."""
    faults = script(".ci/live_ran.py").faults
    assert "never ran" in faults(tmp_path / "live.xml")[0]
    (tmp_path / "live.xml").write_text("<testsuites><testsuite>", encoding="utf-8")
    assert "cut short" in faults(tmp_path / "live.xml")[0]


def test_a_slow_start_fails_the_benchmark(capsys):
    """The median decides, and the first, cold start is not counted."""
    startup = script("bench/startup.py")
    times = iter([9.0, 0.1, 0.2, 0.1])
    assert startup.judge("import harness", startup.measure([], 3, lambda _command: next(times)))
    assert not startup.judge("import harness", [0.1, 0.16, 0.2])
    assert "ABOVE the limit of 0.15 s" in capsys.readouterr().out


def test_every_make_target_is_said_to_be_there():
    """`make help` lists what can be made, and everything it lists is no file's name."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([a-z]+):.*## ", text, flags=re.MULTILINE))
    phony = set(re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)[1].split())
    assert listed == phony
    assert {"quickstart", "test", "bench", "help"} <= listed
