"""The conformance suite refuses each bad referee for its own reason, and takes the scaffold's, from which they differ."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.conformance.candidates import claiming, emptied, endless, labelled, marked
from harness.conformance.rows import Conformance
from harness.conformance.suite import RULES, check_referee
from harness.errors import ExperimentError, UsageError
from harness.tree import Tree
from harness.workspaces.exhibits import put
from tests.referees.bad_referees import BAD
from tests.referees.printed_answers import TASK, PrintedAnswersReferee, rooms

TOLD = {"public tier", "sealed material"}


async def found(make: Any, **changes: Any) -> Conformance:
    """The rows of a referee, in rooms where programs are read."""
    given = {"name": "printed-answers", "bound_s": 0.2, **changes}
    return await check_referee(make, TASK, rooms, **given)


@pytest.mark.anyio
async def test_the_scaffold_conforms() -> None:
    """Every rule is shown, in order, and holds; what can't be decided is told."""
    seen: list[str] = []
    result = await found(PrintedAnswersReferee, seen=lambda row: seen.append(row.rule))
    assert result.refusal == ""
    assert result.conforms
    assert [row.rule for row in result.rows] == seen == list(RULES)
    assert {row.rule for row in result.rows if row.held is None} == TOLD
    assert result.to_json()["conforms"] is True


@pytest.mark.anyio
@pytest.mark.parametrize(("make", "rule", "words"), BAD, ids=[f"{make.__name__}-{rule}" for make, rule, _ in BAD])
async def test_a_bad_referee_is_refused_with_the_reason(make: Any, rule: str, words: str) -> None:
    """The rule that it breaks, in words that say what was seen and what was expected."""
    needed = {rule, "reference", "empty"} if rule in {"verdicts", "time and limits"} else {rule}
    result = await found(make, rules=needed)
    assert not result.conforms
    (broken,) = (row for row in result.broken if row.rule == rule)
    assert words in broken.seen
    assert f"{rule}: {broken.seen} (expected: {broken.expected})" in result.refusal


@pytest.mark.anyio
async def test_nothing_hostile_is_tried_where_candidates_run_on_this_machine() -> None:
    """It would have ended the process that asks; not measured is not held."""
    from tests.referees.bad_referees import RunsItHere

    result = await found(RunsItHere, rules={"walled", "bounded", "not believed"})
    assert [(row.rule, row.held) for row in result.rows] == [
        ("walled", False),
        ("bounded", False),
        ("not believed", False),
    ]
    assert "would have run on this machine" in result.rows[1].seen


@pytest.mark.anyio
async def test_the_room_of_the_exhibit_is_looked_into() -> None:
    """A referee that lays its cases beside the exhibit is seen to; one that does not is seen not to."""

    class LaysThem(PrintedAnswersReferee):
        async def _run(self, tree: Tree, sealed: Any, rooms: Any) -> Any:
            return await super()._run(tree.merged(sealed.tests), sealed, rooms)

    plain = await found(PrintedAnswersReferee, rules={"sealed material"})
    assert plain.rows[0].seen == "none in the 1 of 1 rooms that got the exhibit"
    laid = await found(LaysThem, rules={"sealed material"})
    assert laid.rows[0].held is None
    assert "got the exhibit and 2 of 2 lines of the sealed tests" in laid.rows[0].seen

    class LaysOne(PrintedAnswersReferee):
        """What is expected, without the words around it that stand in the file."""

        async def _one(self, room: Any, command: Any, given: str, expected: str) -> str:
            await put(room, Tree.of({"expected": expected}))
            return str(await super()._one(room, command, given, expected))

    cases = TASK.sealed.tests.text("cases.toml")
    words = cases + '[words]\ngiven = ""\nexpected = "nobody but the referee knows what has to be printed here"\n'
    task = replace(TASK, sealed=replace(TASK.sealed, tests=Tree.of({"cases.toml": words})))
    for make, seen in ((LaysOne, "0 of 3 lines of the sealed tests and parts of 1 more"), (PrintedAnswersReferee, "")):
        one = await check_referee(make, task, rooms, name="printed-answers", rules={"sealed material"})
        assert one.rows[0].seen == (f"room 1 of 1 got the exhibit and {seen}" if seen else plain.rows[0].seen)


def test_the_scaffold_refuses_what_is_no_time() -> None:
    """NaN is neither below nor above any bound; seconds are numbers."""
    for seconds in (float("nan"), float("inf"), 0, -1.0, True, "2", None):
        with pytest.raises(ExperimentError, match=r"wall_s is .* expected seconds above 0"):
            PrintedAnswersReferee(wall_s=seconds)
    assert PrintedAnswersReferee(wall_s=2).wall_s == 2.0


@pytest.mark.anyio
async def test_an_unknown_language_is_not_measured_but_for_candidates_of_ones_own() -> None:
    """Not measured is refused; with an endless candidate given it is measured."""

    class Elsewhere(PrintedAnswersReferee):
        def reference(self, sealed: Any) -> Tree:
            return Tree.of(
                {"solution.zz": sealed.solution["solution.py"], "solution.py": sealed.solution["solution.py"]}
            )

    assert endless(Tree.of({"a.zz": "x"})) == {}
    result = await found(Elsewhere, rules={"bounded"}, hostile={"spins": Tree.of({"solution.py": "while True"})})
    assert result.conforms
    assert "spins" in result.rows[0].seen


@pytest.mark.anyio
async def test_an_unknown_rule_is_refused() -> None:
    """With the nearest that there is."""
    with pytest.raises(UsageError, match="Did you mean 'bounded'"):
        await found(PrintedAnswersReferee, rules={"bound"})


PYTHON = '"""Text."""\n\nfrom __future__ import annotations\n\nimport os\n\n\n@str\ndef f(x):\n    return x\n'


def test_candidates_in_python_start_before_anything_else() -> None:
    """Behind text and imports from the future, where it still compiles; functions are taken apart by their bodies."""
    reference = Tree.of({"solution.py": PYTHON, "data.json": "{}"})
    made: Mapping[str, Tree] = {**endless(reference), **claiming(reference)}
    for name, tree in made.items():
        if "claims" not in name or "nothing but" not in name:
            ast.parse(tree["solution.py"])
        assert tree["solution.py"] != reference["solution.py"]
    loops = made["loops"].text("solution.py").splitlines()
    assert loops.index("while True:") > loops.index("from __future__ import annotations")
    assert loops.index("while True:") < loops.index("import os")
    assert "while True:\n        pass" in made["loops when called"].text("solution.py")
    assert made["is empty beside planted reports"]["solution.py"] == b""
    assert emptied(reference).size == 0


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/usr/bin/python3.11 -I"])
def test_a_program_without_an_ending_goes_by_its_first_line(first: str) -> None:
    """And keeps it, so that it can still be started."""
    reference = Tree.of({"tally": f"{first}\n\n\ndef f():\n    return 1\n", "other": "#!/usr/bin/awk\n", "plain": "x"})
    for name, tree in endless(reference).items():
        assert tree.text("tally").startswith(f"{first}\n"), name
        assert "while True" in tree.text("tally") or "sleep(10**6)" in tree.text("tally")
        assert (tree["other"], tree["plain"]) == (reference["other"], reference["plain"])
    shell = Tree.of({"run": "#!/bin/sh\necho 1\n"})
    assert endless(shell)["loops"].text("run").startswith("#!/bin/sh\nwhile :")


@pytest.mark.parametrize("suffix", [".sh", ".js", ".c", ".rs", ".go", ".v", ".lean", ".dfy"])
def test_other_languages_have_endless_candidates(suffix: str) -> None:
    """Each in its own place of the file: a shell's behind its first line, Rust's at the end."""
    reference = Tree.of({f"solution{suffix}": "#!/bin/sh\necho 1\n"})
    loops = endless(reference)["loops"].text(f"solution{suffix}")
    assert loops.startswith("#!/bin/sh\n")
    assert loops.endswith("echo 1\n") == (suffix in {".sh", ".js", ".c", ".v"})


def test_a_marked_candidate_leaves_its_mark_where_it_runs(tmp_path: Path) -> None:
    """In the modules of its process and as a file; a reference of neither Python nor shell has none."""
    tree = marked(Tree.of({"solution.py": "x = 1\n"}), "proctor_mark", str(tmp_path / "mark"))
    assert tree is not None
    namespace: dict[str, Any] = {}
    exec(tree.text("solution.py"), namespace)  # noqa: S102 - two lines of our own and a mark
    assert sys.modules.pop("proctor_mark") is sys
    assert (tmp_path / "mark").exists()
    assert namespace["x"] == 1
    assert labelled(Tree.of({"a.rs": "x", "b.zz": "y"}), "word") == Tree.of(
        {"a.rs": "x\n// word\n", "b.zz": "y", "ABOUT.txt": "word\n"}
    )
    assert marked(Tree.of({"solution.rs": "fn main() {}"}), "m", "p") is None
