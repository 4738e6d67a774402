"""A wrecked suite as the control: with its assertions taken out, mutants survive that the whole suite kills."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cells.cli import app

LRU = Path(__file__).parents[2] / "examples" / "systems" / "lru"
pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


def without_assertions(source: str) -> str:
    """The same suite, in which every assertion is a statement that asserts nothing."""

    class Wreck(ast.NodeTransformer):
        def visit_Assert(self, node: ast.Assert) -> ast.Expr:
            return ast.Expr(value=node.test)

    return ast.unparse(ast.fix_missing_locations(Wreck().visit(ast.parse(source))))


def test_mutants_survive_a_wrecked_suite_and_not_the_whole_one(tmp_path: Path) -> None:
    """The same four mutants: all killed with a margin, and exit code 0; then most survive, and exit code 3."""
    whole = tmp_path / "whole"
    shutil.copytree(LRU, whole)
    for path in sorted((whole / "mutants").glob("*.toml"))[4:]:
        path.unlink()
    wrecked = tmp_path / "wrecked"
    shutil.copytree(whole, wrecked)
    for path in (wrecked / "tests").glob("*.py"):
        path.write_text(without_assertions(path.read_text("utf-8")), "utf-8")
    found = {}
    for name, place in (("whole", whole), ("wrecked", wrecked)):
        ended = CliRunner().invoke(app, ["task", "check", str(place), "--backend", "bubblewrap", "--json"])
        found[name] = (ended.exit_code, json.loads(ended.stdout)[0])
    code, one = found["whole"]
    assert (code, one["holds"], one["counts"]["mutant"]) == (0, True, {"held": 4, "of": 4})
    assert one["least_margin"] >= 1
    assert one["dead"]["tests"] is not None
    code, one = found["wrecked"]
    assert (code, one["holds"], one["least_margin"]) == (3, False, 0)
    assert one["counts"]["reference"] == {"held": 1, "of": 1}
    assert one["counts"]["mutant"]["held"] <= 1
    assert any(": survived (PASS)" in why for why in one["why"])
