"""The declaration is strict: nothing unknown, nothing said twice, nothing left to a guess."""

import re

import pytest

from cells.declared.declaration import Declaration, load_declaration, parse_declaration
from cells.declared.naming import left_out_of, sets_of
from cells.declared.opening import read_declared
from cells.declared.rows import name_of, name_text
from harness.errors import DeclarationError
from tests.cells.declared.sets import DECLARATION, read, written
from tests.pages import ROOT
from tests.test_templates import fields_of

CONTRASTS = """
[[analysis.contrasts]]
name = "C1"
treatment = "diet"
control = "plain"
[[analysis.contrasts]]
name = "C2"
treatment = "plain"
control = "diet"
[[readings]]"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("question =", "questoin =", "unknown key 'questoin'. Did you mean 'question'?"),
        ('usd = "usd"', 'usdd = "usd"', "sources.0.columns.usdd: unknown key 'usdd'. Did you mean 'usd'?"),
        ('model = "m"\n', "", "model has neither a column nor a constant"),
        ('model = "m"', 'model = "m"\ntask = "LRU"', "task has both a column and a constant"),
        ('usd = "usd"\n', "", "columns.lower_bound without columns.usd"),
        ('reading = "suite"\n', "", "ends has a word for DECLARED: expected columns.reading"),
        ('"HALT(usd)"', '"HALT(cost)"', "expected HALT with its limit, one of HALT(tokens), HALT(usd)"),
        ('"HALT(usd)"', '"HALT"', "expected HALT with its limit"),
        ('"FAILED_BOOT"', '"FAILED_BOOT(x)"', "expected DECLARED, HALT(limit), FAILED_BOOT, VOID(cause)"),
        ('"FAILED_BOOT"', '"VOID"', "expected DECLARED, HALT(limit), FAILED_BOOT, VOID(cause)"),
        ('"FAILED_BOOT"', '"LOST"', "expected DECLARED, HALT(limit), FAILED_BOOT, VOID(cause)"),
        ('PASS = "accepted"', 'PASS = "rejected"', "the verdict 'PASS' can't be called so here"),
        ('PASS = "accepted"', 'HALT = "accepted"', "the verdict 'HALT' can't be called so here"),
        ('PASS = "accepted"', 'ok = "accepted"', "the verdict 'ok' can't be called so here"),
        ('PASS = "accepted"', 'PASS = "good"', "sources.0.verdicts.PASS"),
        ('cells = ["r2/a1"]', 'cells = ["r2"]', "the cell 'r2' has no run and id: expected run/id"),
        ('includes = ["first"]', 'includes = ["fist"]', "unknown reading 'fist'. Did you mean 'first'?"),
        ('name = "first"', 'name = "all"', "the reading 'all' is there more than once"),
        ('name = "first"', 'name = "first"\ncomparisons = ["premum"]', "unknown comparison 'premum'. Did you mean"),
        ('name = "first"', 'name = "first"\ndigest = "abc"', "readings.1.digest"),
        ("[[readings]]", "agreement = { magnitude = -1 }\n[[readings]]", "agreement.magnitude"),
        ('files = ["cells.csv"]', f'files = []\nsha256 = ["{"0" * 64}"]', "1 digests for 0 files"),
        ('files = ["cells.csv"]', 'files = ["cells.csv"]\nyes = ["no"]', "'no' means both yes and no"),
        ('question = "Does the diet cost more?"', "question = 7", "question: Input should be a valid string"),
    ],
)
def test_a_declaration_that_says_something_wrong_is_refused(old, new, said):
    """With the place, the value, what was expected, and the nearest known name."""
    text = DECLARATION.replace(old, new, 1)
    assert text != DECLARATION
    if new.startswith("agreement"):
        text = "agreement = { magnitude = -1 }\n" + DECLARATION
    with pytest.raises(DeclarationError, match=re.escape(said)):
        parse_declaration(text)


def test_a_reading_keeps_a_family_together():
    """Holm's adjustment is over all of a family: a reading that drops one of its tests would flatter the others."""
    text = DECLARATION.replace("[[readings]]", CONTRASTS, 1)
    assert parse_declaration(text)
    with pytest.raises(DeclarationError, match="comparisons leaves out 'C2' of the family 'primary'"):
        parse_declaration(text.replace('name = "first"', 'name = "first"\ncomparisons = ["C1"]'))
    assert parse_declaration(text.replace('name = "first"', 'name = "first"\ncomparisons = ["C1", "C2"]'))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["r2/a1"]', '["r2/a1", "r1/a1"]', "reading 'all' names the cell r1/a1 twice"),
        ('cells = ["r2/a1"]', 'cells_file = "gone.txt"', "gone.txt can't be read"),
        ('name = "first"', 'name = "first"\nincludes = ["all"]', "includes itself, by all -> first -> all"),
        ('includes = ["first"]\ncells = ["r2/a1"]', "", "reading 'all' has no cell"),
        ('["r2/a1"]', '["r2/a1"]\n[[left_out]]\ncells = ["r2/a1"]\nreason = "no"', "is left out, and in reading 'all'"),
    ],
)
def test_a_set_that_can_not_be_one_is_refused(tmp_path, old, new, said):
    """Each cell once, each reading of something, none of itself."""
    declaration = parse_declaration(DECLARATION.replace(old, new, 1))
    with pytest.raises(DeclarationError, match=re.escape(said)):
        left_out_of(declaration, sets_of(declaration, tmp_path), tmp_path)


def test_a_list_of_names(tmp_path):
    """Comments and empty lines are none; a line without a run is told with its number."""
    (tmp_path / "names.txt").write_text("# cells of autumn\n\nr2/a1\n", "utf-8")
    text = DECLARATION.replace('cells = ["r2/a1"]', 'cells_file = "names.txt"')
    found = read(tmp_path, declaration=text)
    assert found.final
    assert set(found.readings[0].lists) == {"names.txt"}
    (tmp_path / "names.txt").write_text("r2/a1\na1\n", "utf-8")
    with pytest.raises(DeclarationError, match=r"names\.txt, line 2: the cell 'a1' has no run and id"):
        read(tmp_path, declaration=text)


@pytest.mark.parametrize("name", [("r", "a/b"), ("a/b", "c"), ("a%2Fb", "c"), ("100%", "c"), ("%25/", "x")])
def test_a_name_comes_back_from_its_text(name):
    """Whatever is in a run or an id, its text is that of no other cell."""
    assert name_of(name_text(name)) == name


def test_an_arm_that_no_cell_has_is_told(tmp_path):
    """A misspelt arm is no comparison of nothing."""
    with pytest.raises(
        DeclarationError, match=r"reading 'all' can't be computed:\n.*unknown arm 'dite'\. Did you mean 'diet'"
    ):
        read(tmp_path, declaration=DECLARATION.replace('treatment = "diet"', 'treatment = "dite"'))


def test_files_that_are_no_declaration(tmp_path):
    """Not there, no TOML, no text; a byte-order mark is none of these."""
    with pytest.raises(DeclarationError, match="does not exist: `proctor declare"):
        load_declaration(tmp_path / "gone.toml")
    path = tmp_path / "d.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(DeclarationError, match="can't be read"):
        load_declaration(path)
    path.write_text("[", "utf-8")
    with pytest.raises(DeclarationError, match="is not valid TOML"):
        load_declaration(path)
    path = written(tmp_path, declaration="﻿" + DECLARATION)
    assert read_declared(path).final


def test_every_field_stands_on_its_page():
    """The reference names every key that a declaration may have, but for those of the analysis, which have a page."""
    page = (ROOT / "docs" / "reference" / "declaration.md").read_text("utf-8")
    elsewhere = fields_of(type(Declaration.model_fields["analysis"].default), set())
    missing = {name for table, name in fields_of(Declaration, set()) - elsewhere if f"`{name}`" not in page}
    assert missing == set()
