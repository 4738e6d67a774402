"""The rules of the tree that no linter knows: rooms, cycles, lengths, surroundings, and imports without effects."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture import (
    ambient,
    cycles,
    function_lengths,
    long_files,
    mentions,
    modules,
    name_faults,
    room_faults,
)

ROOT = Path(__file__).parents[1]

MOST_LINES = 400
SPECIAL_LINES = {"harness/ports.py": 140}
"""All extension contracts stand on one page."""

MOST_FUNCTION_LINES = 60
LONG_FUNCTIONS = {
    "cells/readings.py:score": 47,
}
"""Functions over 40 lines. None may grow, and none may be added without a word here on why."""

AMBIENT = {
    "harness/clock.py": {"secrets", "time", "datetime.now"},  # the one reader of the clock and of chance
    "harness/environment.py": {"os.environ"},  # the one reader of the environment
    # These run inside a workspace, where no module of ours is.
    "harness/workspaces/cell_paths.py": {"os.urandom"},
    "harness/workspaces/forwarder.py": {"time"},
    "referees/command_program.py": {"time"},
    "referees/command_stub.py": {"os.environ"},
    "referees/evalplus_zygote.py": {"os.environ", "random", "time"},
    "referees/pytest_judge.py": {"time"},
    "referees/pytest_monitor.py": {"time"},
    "referees/pytest_watch.py": {"time"},
}

HEAVY = {"anyio", "docker", "httpx", "numpy", "ollama", "openai", "pydantic", "pytest", "rich", "scipy", "structlog"}


def tree(folder: Path, files: dict[str, str]) -> Path:
    """A made-up source tree."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def test_the_tree_is_read():
    """The checks below look at real modules in every room."""
    found = modules(ROOT)
    assert {"harness.ports", "arms.text", "referees.evalplus", "fences.gate", "cells.run"} <= set(found)
    assert {module.room for module in found.values()} == {"harness", "arms", "referees", "fences", "cells"}


def test_rooms_import_what_they_may():
    """`harness` imports nothing of ours, arms, referees and fences only `harness`, cells also `fences`; all in full."""
    assert room_faults(ROOT) == []


def test_a_forbidden_import_is_found(tmp_path):
    """In every form: plain, from, inside a function, for types alone, relative, and of the tests."""
    made = tree(
        tmp_path,
        {
            "harness/a.py": "import cells.run\nimport json\n",
            "arms/a.py": "from referees import null\nfrom harness import ports\n",
            "referees/a.py": "def late():\n    from fences.gate import gate\n    return gate\n",
            "fences/a.py": (
                "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from cells.house import House\n"
            ),
            "cells/a.py": "from . import b\nfrom tests.x import y\nimport arms\nimport fences.gate\n",
        },
    )
    assert room_faults(made) == [
        "harness.a:1 imports cells.run",
        "arms.a:1 imports referees",
        "referees.a:2 imports fences.gate",
        "fences.a:4 imports cells.house",
        "cells.a:1 imports '.' by a relative name",
        "cells.a:2 imports tests.x",
        "cells.a:3 imports arms",
    ]


def test_no_modules_import_each_other():
    """Not at their top and not inside a function; imports for types alone take no part."""
    assert cycles(ROOT) == []


def test_a_cycle_is_found(tmp_path):
    """Also one of three, one through `from package import module`, and one that a function hides."""
    made = tree(
        tmp_path,
        {
            "harness/a.py": "import harness.b\n",
            "harness/b.py": "from harness import c\n",
            "harness/c.py": "def late():\n    import harness.a\n",
            "harness/d.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import harness.e\n",
            "harness/e.py": "import harness.d\n",
        },
    )
    assert cycles(made) == ["harness.a -> harness.b -> harness.c -> harness.a"]


def test_names_say_what_is_inside():
    """No utils, common, core, base, manager or helpers."""
    assert name_faults(ROOT) == []


def test_an_empty_name_is_found(tmp_path):
    """As a module or as a package; a longer name that holds the word is fine."""
    made = tree(tmp_path, {"cells/utils.py": "", "arms/core/x.py": "", "fences/cell_helper.py": ""})
    assert name_faults(made) == ["arms.core.x", "cells.utils"]


def test_files_are_short():
    """400 lines at most; the page of contracts 140."""
    assert long_files(ROOT, most=MOST_LINES, special=SPECIAL_LINES) == []
    assert "harness/ports.py" in {module.path.relative_to(ROOT).as_posix() for module in modules(ROOT).values()}


def test_a_long_file_is_found(tmp_path):
    """By the general figure and by a file's own."""
    made = tree(tmp_path, {"cells/a.py": "x = 1\n" * 401, "cells/b.py": "x = 1\n" * 400, "harness/p.py": "x = 1\n" * 9})
    assert long_files(made, most=400, special={"harness/p.py": 8}) == [
        "harness/p.py: 9 lines, expected 8 at most",
        "cells/a.py: 401 lines, expected 400 at most",
    ]


def function_faults(root: Path, known: dict[str, int]) -> list[str]:
    """Functions over 60 lines, over 40 without being on the list, or longer than on it; and lines of it that are done."""
    faults = []
    lengths = function_lengths(root)
    for name, lines in lengths.items():
        if lines > MOST_FUNCTION_LINES:
            faults.append(f"{name} has {lines} lines: expected {MOST_FUNCTION_LINES} at most")
        elif lines > known.get(name, 40):
            faults.append(f"{name} has {lines} lines: expected {known.get(name, 40)} at most")
    done = [name for name in known if lengths.get(name, 0) <= 40]
    return faults + [f"{name} is no longer over 40 lines: take it off the list" for name in done]


def test_functions_are_short():
    """60 lines at most, and over 40 only those of a list that may not grow."""
    assert function_faults(ROOT, LONG_FUNCTIONS) == []


def test_a_long_function_is_found(tmp_path):
    """Methods, async ones and nested ones count too."""

    def lines(name: str, count: int) -> str:
        return f"async def {name}():\n" + "    x = 1\n" * (count - 1)

    made = tree(
        tmp_path,
        {
            "cells/a.py": lines("huge", 61)
            + lines("new", 41)
            + lines("grown", 43)
            + lines("known", 42)
            + lines("ok", 40)
        },
    )
    known = {"cells/a.py:grown": 42, "cells/a.py:known": 42, "cells/a.py:ok": 41, "cells/a.py:gone": 41}
    assert function_faults(made, known) == [
        "cells/a.py:huge has 61 lines: expected 60 at most",
        "cells/a.py:new has 41 lines: expected 40 at most",
        "cells/a.py:grown has 43 lines: expected 42 at most",
        "cells/a.py:ok is no longer over 40 lines: take it off the list",
        "cells/a.py:gone is no longer over 40 lines: take it off the list",
    ]


def test_environment_clock_and_chance_have_one_reader_each():
    """Everything else asks `harness.environment`, `harness.clock` and `harness.seeds`."""
    found = ambient(ROOT)
    assert {path: reached for path, reached in found.items() if not reached <= AMBIENT.get(path, set())} == {}
    assert {"harness/clock.py", "harness/environment.py"} <= set(found)


def test_a_second_reader_is_found(tmp_path):
    """However it is written; a text that only speaks of it is no use of it."""
    made = tree(
        tmp_path,
        {
            "cells/a.py": "import os\nx = os.environ.get('A')\ny = os.getenv('B')\n",
            "cells/b.py": "from os import environ\nfrom time import monotonic\n",
            "cells/c.py": "import random, secrets, time\n",
            "cells/d.py": "from datetime import datetime\nx = datetime.now()\ny = datetime.fromisoformat('2026-01-01')\n",
            "cells/e.py": "PROGRAM = 'import os; os.environ'\n",
        },
    )
    assert ambient(made) == {
        "cells/a.py": {"os.environ", "os.getenv"},
        "cells/b.py": {"os.environ", "time"},
        "cells/c.py": {"random", "secrets", "time"},
        "cells/d.py": {"datetime.now"},
    }


def test_no_seat_or_arm_knows_the_sealed_half():
    """The type of the sealed half is named nowhere in the rooms of seats and arms."""
    assert mentions(ROOT, "SealedHalf", ("arms/", "harness/seats/", "harness/text_arm.py")) == []
    assert mentions(ROOT, "SealedHalf", ("referees/",)) != []


def test_a_seat_that_takes_the_sealed_half_is_found(tmp_path):
    """As a name, an attribute or a quoted annotation."""
    made = tree(
        tmp_path,
        {
            "arms/a.py": "def render(x: 'SealedHalf'): ...\n",
            "harness/seats/b.py": "from harness.tasks.task import SealedHalf\n",
            "harness/seats/c.py": "import harness.tasks.task as t\nx = t.SealedHalf\n",
            "referees/d.py": "def judge(x: SealedHalf): ...\n",
        },
    )
    assert mentions(made, "SealedHalf", ("arms/", "harness/seats/")) == [
        "harness/seats/b.py:1",
        "harness/seats/c.py:2",
        "arms/a.py:1",
    ]


def imported(root: Path, names: list[str], home: Path) -> dict[str, Any]:
    """What importing `names` in a fresh interpreter does and loads."""
    program = Path(__file__).with_name("import_effects.py")
    done = subprocess.run(
        [sys.executable, "-B", str(program), str(root), *names],
        cwd=home,
        env={"HOME": str(home), "TMPDIR": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.timeout(60)
def test_importing_has_no_effect(tmp_path):
    """No module makes a file, a thread or a process, or touches the environment, when it is imported."""
    assert imported(ROOT, list(modules(ROOT)), tmp_path)["effects"] == []
    assert list(tmp_path.iterdir()) == []


def test_an_effect_is_found(tmp_path):
    """Each kind of it."""
    made = tree(
        tmp_path / "tree",
        {
            "noisy/__init__.py": "",
            "noisy/file.py": "open('left', 'w').close()\n",
            "noisy/folder.py": "from pathlib import Path\nPath('made').mkdir()\n",
            "noisy/env.py": "import os\nos.environ['NOISY'] = '1'\n",
            "noisy/thread.py": (
                "import threading\ndone = threading.Event()\n"
                "threading.Thread(target=done.wait, name='noisy', daemon=True).start()\n"
            ),
            "noisy/program.py": "import subprocess\nsubprocess.run(['true'], check=True)\n",
            "noisy/quiet.py": "import json\nx = json.dumps(open('/dev/null').read())\n",
        },
    )
    found = imported(
        made, [f"noisy.{name}" for name in ("file", "folder", "env", "thread", "program", "quiet")], tmp_path
    )
    assert [text.split(":")[0] for text in found["effects"]] == [
        "noisy.file",
        "noisy.folder",
        "noisy.env",
        "noisy.env",
        "noisy.thread",
        "noisy.program",
    ]


@pytest.mark.parametrize("name", ["harness", "harness.ports", "arms", "referees", "fences", "cells", "cells.cli"])
def test_importing_a_room_loads_nothing_heavy(tmp_path, name):
    """What is heavy is loaded where it is used, so that a command starts at once."""
    assert HEAVY & set(imported(ROOT, [name], tmp_path)["loaded"]) == set()


def test_something_heavy_would_be_found(tmp_path):
    """A module that needs pydantic as it is imported is told apart."""
    assert "pydantic" in imported(ROOT, ["harness.experiment"], tmp_path)["loaded"]
