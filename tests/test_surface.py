"""The documentation says what the code offers, all of it, and nothing that would not be there."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import get_args

import anyio
import pytest
import typer

from cells.amending import amend
from cells.audit.auditing import audit_run, keep_audit, names_of_invariants, says
from cells.checking import How, check_tasks, keep, run_cases
from cells.cli import app
from cells.cli.door import ExitCode
from cells.promotion.effect import Effect
from cells.promotion.promoted import Audited, Figures, Promotion, Target
from cells.rescore import rescore
from cells.run import run
from fences.policy import FencePolicy
from fences.receipt import Receipt
from harness import errors, values
from harness.amendment import NEVER, Amendment, Notice, Withdrawal
from harness.analysis import Analysis, Contrast, Ratio
from harness.clock import SystemClock
from harness.experiment import Experiment
from harness.outcome import CellOutcome, Spend
from harness.plugins import KINDS, load, table
from harness.record import read_entries
from tests.architecture import modules
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run
from tests.pages import ROOT, pages
from tests.surface import (
    appended_kinds,
    command_faults,
    commands,
    export_faults,
    section,
    variables,
)
from tests.test_architecture import tree
from tests.test_templates import fields_of

REFERENCE = ROOT / "docs" / "reference"

GUESTS = frozenset(
    {
        # Sent into a workspace as text, and run there: no module of ours imports from them by name.
        "harness.tasks.mark_search",
        "harness.workspaces.cell_archive",
        "harness.workspaces.cell_helper",
        "harness.workspaces.cell_paths",
        "harness.workspaces.forwarder",
        "referees.evalplus_child",
        "referees.evalplus_confine",
        "referees.evalplus_zygote",
        "referees.pytest_confine",
        "referees.pytest_judge",
        "referees.pytest_monitor",
        "referees.pytest_remote",
        "referees.pytest_subject",
        "referees.pytest_watch",
        "referees.pytest_wire",
        "referees.verifier_room",
        "referees.verifier_solver",
    }
)
WITHOUT_ALL = GUESTS | {"harness.ports"}
"""Modules without `__all__`. The page of contracts is its own list."""


def page(name: str) -> str:
    """A page of the reference."""
    return (REFERENCE / name).read_text("utf-8")


def not_named(names: set[str], text: str) -> set[str]:
    """Those of `names` that do not stand in `text` as code."""
    return {name for name in names if f"`{name}`" not in text and f"`{name}=" not in text}


def test_every_command_and_option_is_documented():
    """Each command has a section with each of its options."""
    assert command_faults(typer.main.get_command(app), page("commands.md")) == []
    assert len(list(commands(typer.main.get_command(app), "proctor"))) > 20


def test_a_command_or_option_that_is_not_documented_is_found():
    """A section that is gone, and an option that its section leaves out."""
    text = page("commands.md")
    without = text.replace("`proctor reap", "`proctor reep").replace(
        section(text, "`proctor verify "), section(text, "`proctor verify ").replace("--head", "")
    )
    assert command_faults(typer.main.get_command(app), without) == [
        "proctor reap has no section",
        "proctor reap: --json is not in its section",
        "proctor verify: --head is not in its section",
    ]


def test_every_documented_command_exists():
    """No section of the page is about a command that is gone."""
    known = {path for path, _command in commands(typer.main.get_command(app), "proctor")}
    headed = re.findall(r"^#+ `(proctor[a-z -]*)", page("commands.md"), re.MULTILINE)
    assert len(headed) > 20
    assert {name.strip() for name in headed} <= known


def test_every_mention_of_a_command_exists():
    """Wherever a page says `proctor WORD` as code, WORD is a command."""
    first = {path.split()[1] for path, _command in commands(typer.main.get_command(app), "proctor") if " " in path}
    wrong = [
        f"{name}: proctor {word}"
        for name, text in pages().items()
        for word in re.findall(r"`proctor ([a-z]+)", text)
        if word not in first
    ]
    assert wrong == []


def experiment_pages() -> str:
    """The pages that have the fields of the experiment file."""
    return page("experiment-file.md") + page("predictions.md")


def experiment_page_faults(text: str) -> set[tuple[str, str]]:
    """Fields of the experiment file that the page does not have in a table's first column."""
    rows = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    return {(table, name) for table, name in fields_of(Experiment, set()) if name not in rows}


def test_every_field_of_the_experiment_file_is_documented():
    """In a table of the page, with the default that it has."""
    text = experiment_pages()
    assert experiment_page_faults(text) == set()
    for model in (Analysis, Contrast, Ratio):
        for name in model.model_fields:
            assert f"| `{name}` |" in text


def test_a_field_that_is_not_documented_is_found():
    """Without its row a field is missing."""
    text = experiment_pages().replace("| `lifetime_s` |", "| lifetime_s |")
    assert {name for _table, name in experiment_page_faults(text)} == {"lifetime_s"}


def test_defaults_on_the_page_are_those_of_the_code():
    """A plain default stands in the row of its field."""
    text = experiment_pages()
    missing = []
    seen: set[type] = set()
    fields_of(Experiment, seen)  # type: ignore[arg-type]
    for model in seen:
        for name, field in model.model_fields.items():  # type: ignore[attr-defined]
            default = field.default
            if isinstance(default, bool | int | float | str) and default is not None:
                shown = f'"{default}"' if isinstance(default, str) else str(default).lower()
                if f"| `{name}` | `{shown}` |" not in text and f"`{name}` is {shown} by default" not in text:
                    missing.append(f"{name} = {shown}")
    assert missing == []


def test_every_key_of_the_fence_is_documented():
    """On the page that the experiment file's page sends to."""
    text = (ROOT / "docs/explanation/fences.md").read_text("utf-8")
    for key in set(FencePolicy().to_json()) - {"limits"}:
        assert re.search(rf"^{key} = ", text, re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_plugin_is_documented(kind):
    """Each registered plugin of Proctor's own stands on the page of plugins or its kind's own page, and loads."""
    texts = page("plugins.md") + "".join(page(f"{kind}.md") if (REFERENCE / f"{kind}.md").exists() else "")
    ours = {name for name, info in table(kind).items() if info.distribution == "proctor"}
    assert ours
    assert not_named(ours, texts) == set()
    assert f"`proctor.{kind}`" in page("plugins.md")
    for name in ours:
        assert callable(load(kind, name))


def test_the_table_of_entry_points_is_the_installed_one():
    """What pyproject.toml registers is what is found: an old installation would test something else."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    assert set(points) == {f"proctor.{kind}" for kind in KINDS}
    for kind in KINDS:
        found = {name: info.target for name, info in table(kind).items() if info.distribution == "proctor"}
        assert found == points[f"proctor.{kind}"]


def test_something_that_is_not_documented_is_found():
    """A name that stands on a page as a word only is not documented."""
    assert not_named({"oneshot", "twoshot"}, "`oneshot` and twoshot") == {"twoshot"}


def test_every_environment_variable_is_documented():
    """Those that the one reader names; the two that EvalPlus names are made of the benchmark's name."""
    named = variables(ROOT)
    assert "f'{benchmark.upper()}_OVERRIDE_PATH'" in named
    named -= {"f'{benchmark.upper()}_OVERRIDE_PATH'"}
    named |= {"HUMANEVAL_OVERRIDE_PATH", "MBPP_OVERRIDE_PATH"}
    assert not_named(named, page("environment.md")) == set()
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", page("environment.md"), re.MULTILINE))
    assert listed == named


def test_a_variable_is_found_in_every_form(tmp_path):
    """Asked for by get, by index, or put together."""
    made = tree(
        tmp_path,
        {
            "harness/environment.py": (
                "import os\na = os.environ.get('A')\nb = os.environ['B']\nc = os.environ.get(f'{x}_C')\nd = other.get('D')\n"
            )
        },
    )
    assert variables(made) == {"A", "B", "f'{x}_C'"}


def test_every_kind_of_entry_is_documented():
    """What the code appends to a record has a section, and no section is about a kind that nothing writes."""
    written = appended_kinds(ROOT)
    assert {"run.opened", "cell.ended", "record.repaired"} <= written
    headed = set(re.findall(r"^### `([a-z.]+)`$", page("record.md"), re.MULTILINE))
    assert headed == written


def test_a_kind_of_entry_is_found(tmp_path):
    """By a journal's add and a record's append, and not by a list's or a transcript's."""
    made = tree(
        tmp_path,
        {
            "cells/a.py": "async def f(journal, house):\n    await journal.add('x.one', {})\n    await house.journal.add('x.two', 1)\n",
            "cells/b.py": "def f(record, rows, transcript):\n    record.append('x.three', {})\n    rows.append('no')\n    transcript.add('no')\n",
        },
    )
    assert appended_kinds(made) == {"x.one", "x.two", "x.three"}


def test_every_field_of_an_outcome_is_documented():
    """In the section of the entry that holds it."""
    text = section(page("record.md"), "`cell.ended`")
    names = {*CellOutcome.__dataclass_fields__, *Spend.__dataclass_fields__, *values.Usage.__dataclass_fields__}
    names |= {*values.Verdict.__dataclass_fields__, *values.Evidence.__dataclass_fields__}
    names |= {*values.TierReading.__dataclass_fields__, *(item.name for item in fields(values.TestReading))}
    assert not_named(names, text) == set()


AMENDMENT = """
reason = "r"
changes = "c"
notices = [{ contrast = "P over B", text = "t" }]
checks = [{ name = "k", figure = "halted", at_most = 0 }]
"""


MET_AT_THE_END = '[[stops]]\nname = "all passed"\nfigure = "passed"\nat_least = 6\n'


def written_bodies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The fields of each kind of entry that a whole run on fakes writes; it is torn, rescored and amended too."""

    async def play() -> Path:
        with fakes(monkeypatch, fake_backend(folder)):
            frozen = await frozen_run(folder, more=MET_AT_THE_END)
            await run(frozen.folder, watcher=Quiet())
            with (frozen.folder / "record.jsonl").open("ab") as file:
                file.write(b'{"at":')
            await rescore(frozen.folder, clock=SystemClock(), keep=True, seen=lambda _row: None, told=print)
            cases = await run_cases(frozen.folder, is_run=True, clock=SystemClock(), say=lambda _text: None)
            checked = await check_tasks(
                cases, How(), clock=SystemClock(), say=lambda _text: None, seen=lambda _one: None
            )
            keep(frozen.folder, checked, clock=SystemClock())
            (folder / "amendment.toml").write_text(AMENDMENT, "utf-8")
            amend(frozen.folder, folder / "amendment.toml", clock=SystemClock())
            keep_audit(frozen.folder, audit_run(frozen.folder), clock=SystemClock())
        return frozen.folder

    bodies: dict[str, set[str]] = {}
    for entry in read_entries(anyio.run(play) / "record.jsonl"):
        bodies.setdefault(entry.kind, set()).update(entry.body)
        if entry.kind in {"control.judged", "suite.characterised"}:
            bodies[entry.kind].update(entry.body["rows"][0])
    return bodies


def test_every_field_of_an_entry_is_documented(tmp_path, monkeypatch):
    """What a real run writes into the body of an entry stands in the section of its kind."""
    bodies = written_bodies(tmp_path, monkeypatch)
    # Fakes have no fence and no image.
    assert set(bodies) == appended_kinds(ROOT) - {"effect.promoted", "fence.probed", "judging.probed", "leaks.searched"}
    bodies["effect.promoted"] = set(Promotion.model_fields)
    bodies["leaks.searched"] = {"image", "files", "leaks", "not_looked_into", "too_short_to_find", "where", "what"}
    bodies["fence.probed"] = {"receipt", "receipt_digest", "rows", *Receipt.__dataclass_fields__}
    for kind, names in bodies.items():
        assert not_named(names, section(page("record.md"), f"`{kind}`")) == set(), kind


def test_every_field_of_an_amendment_is_documented():
    """On its own page, with all that no amendment touches."""
    text = page("amendments.md")
    names = {*Amendment.model_fields, *Withdrawal.model_fields, *Notice.model_fields, *NEVER}
    assert not_named(names, text) == set()


def test_every_field_of_a_promotion_is_documented():
    """On its own page."""
    names = {name for part in (Audited, Effect, Figures, Target) for name in part.model_fields}
    assert not_named(names, page("promotions.md")) == set()


def test_every_invariant_is_documented():
    """In the table of the page of audits, in the words of its class, and in its order."""
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", section(page("audit.md"), "Invariants"), re.MULTILINE)
    assert rows == [(name, says(name)) for name in names_of_invariants()]


def test_every_exit_code_is_documented():
    """With its figure and its name, and no other."""
    rows = re.findall(r"^\| (\d) \| `([A-Z_]+)` \|", page("exit-codes.md"), re.MULTILINE)
    assert {(int(code), name) for code, name in rows} == {(code.value, code.name) for code in ExitCode}


def test_every_error_is_documented():
    """Each class of the tree of errors, on the page of exit codes or, for blame, on that of outcomes with its cause."""
    classes = {name: item for name, item in vars(errors).items() if isinstance(item, type)}
    known = {name: item for name, item in classes.items() if issubclass(item, errors.ProctorError)}
    blame = {name: item for name, item in known.items() if issubclass(item, errors.Blamed)}
    assert len(blame) > 5
    assert not_named(set(known) - set(blame), page("exit-codes.md")) == set()
    for name, item in blame.items():
        assert f"| `{item.cause}` | `{name}` |" in page("outcomes.md")


def test_every_end_price_and_limit_is_documented():
    """By the word that is on disk, with its fields."""
    text = page("outcomes.md")
    for union in (values.End, values.Price):
        for item in get_args(union):
            kind = item.__dataclass_fields__["kind"].default
            row = next((line for line in text.splitlines() if line.startswith(f"| `{kind}` |")), "")
            assert row
            assert not_named(set(item.__dataclass_fields__) - {"kind"}, row) == set()
    assert not_named(set(get_args(values.Limit)), text) == set()


def test_every_class_of_a_referee_is_documented():
    """Each reading of each built-in referee, with its standing on the referee's own page."""
    text, own = page("outcomes.md"), page("referees.md")
    for name in ("command", "evalplus", "lean", "null", "pytest", "rocq"):
        classes = load("referees", name)({}).classes
        assert not_named(set(classes), text) == set()
        for reading, standing in classes.items():
            assert re.search(rf"`{reading}`", own)
            assert standing in own


def commands_of_the_app() -> set[tuple[str, str]]:
    """The functions that are reached as commands, by module and name."""
    found = set()
    for _path, command in commands(typer.main.get_command(app), "proctor"):
        if command.callback is not None:
            inner = getattr(command.callback, "__wrapped__", command.callback)
            found.add((inner.__module__, inner.__name__))
    return found


def test_all_names_what_is_there_and_what_is_public_is_in_it():
    """Both ways, for functions and classes; constants and aliases are public where `__all__` says so."""
    assert export_faults(ROOT, without=WITHOUT_ALL, registered=commands_of_the_app()) == []
    assert set(modules(ROOT)) >= WITHOUT_ALL


def test_a_wrong_all_is_found(tmp_path):
    """A name that is not there, one that is missing, and a module without one."""
    made = tree(
        tmp_path,
        {
            "cells/a.py": "__all__ = ['gone', 'here']\ndef here(): ...\ndef left(): ...\ndef _own(): ...\ndef run(): ...\n",
            "cells/b.py": "class Offered: ...\n",
            "cells/c.py": "X = 1\n",
        },
    )
    assert export_faults(made, without=frozenset(), registered={("cells.a", "run")}) == [
        "cells.a: __all__ names gone, which is not there",
        "cells.a: left is public and not in __all__",
        "cells.b has no __all__: Offered",
    ]
