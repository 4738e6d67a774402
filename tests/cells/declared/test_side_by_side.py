"""Readings side by side: what each is over, whether they agree, and what refuses them."""

import json

import pytest

from cells.bounds import declared_set
from cells.declared.as_json import side_by_side_to_json
from cells.declared.opening import write_pins
from cells.declared.view import parts_of
from cells.score_view import plain
from harness.errors import DeclarationError
from tests.cells.declared.sets import DECLARATION, ROWS, read, written


def test_each_reading_tells_its_set(tmp_path):
    """Declared, priced and refused a price; the classes with the END first; the digest is of the names alone."""
    both, first = read(tmp_path).readings
    assert (both.declared, both.priced, both.without_price) == (6, 5, ("r1/a5",))
    assert {name: count for name, count in first.classes.items() if count} == {
        "PASS": 2,
        "FAIL": 1,
        "HALT": 1,
        "FAILED_BOOT": 1,
    }
    assert first.classes["NO_BUILD"] == 0
    assert both.digest != first.digest
    assert first.digest == declared_set(f"r1/a{number}" for number in (5, 4, 3, 2, 1)).digest
    assert read(tmp_path, rows="\n".join(reversed(ROWS.splitlines()))).readings[1].digest == first.digest


def test_the_disagreement_is_printed_first(tmp_path):
    """The words are the tool's: which two, what they agree in, and each figure that differs."""
    found = read(tmp_path)
    sentence = (
        "all and first agree in sign and not in magnitude on premium: LRU 2.0000 against 1.5000; they agree in "
        "significance; they agree in which tasks clear the floor."
    )
    assert found.accords[0].sentence == sentence
    assert not found.accords[0].whole
    assert found.accords[1].sentence == "all and first differ in the counts of classes: PASS 3 against 2."
    lines = plain(parts_of(found)).splitlines()
    assert lines[1] == f"- {sentence}"
    (line,) = (line for line in lines if line.startswith("premium: 2 of 2") and "LRU 1.5000" in line)
    assert "p 0.25, no verdict: best attainable p 0.25 at level 0.05" in line
    assert f"set {found.readings[0].digest}: 6 declared, 5 priced, 1 refused a price" in lines
    assert any(line.endswith(f"[first, set {found.readings[1].digest[:12]}]") for line in lines)


def test_a_declared_tolerance_makes_them_agree(tmp_path):
    """With a third allowed 2.0 and 1.5 are alike; without it they are not."""
    changed = DECLARATION.replace("[[readings]]", "[agreement]\nmagnitude = 0.34\n[[readings]]", 1)
    assert read(tmp_path, declaration=changed).accords[-1].differ == ()
    narrower = changed.replace("0.34", "0.3")
    assert read(tmp_path, declaration=narrower).accords[0].differ == ("magnitude",)


def test_a_sign_that_turns_is_told(tmp_path):
    """A cell of spring that is dear turns LRU round."""
    found = read(tmp_path, rows=ROWS.replace("PASS,1.00", "PASS,9.00"))
    assert found.accords[0].differ == ("sign", "magnitude")
    assert (
        "differ in sign and in magnitude on premium: LRU 0.5455 against 1.5000, 1 above 1 and 1 below against 2 and 0"
        in (found.accords[0].sentence)
    )


def test_json_holds_all_of_it(tmp_path):
    """It is JSON, names the set of each reading, and each board is a scoreboard."""
    data = json.loads(json.dumps(side_by_side_to_json(read(tmp_path)), allow_nan=False))
    assert [reading["status"] for reading in data["readings"]] == ["final", "final"]
    assert data["readings"][0]["board"]["ratios"][0]["wins"] == 2
    assert data["accords"][0]["differ"] == ["magnitude"]
    assert set(data["sources"].values()) <= {digest for digest in data["sources"].values() if len(digest) == 64}


def board(tmp_path, at=1, **changes):
    """One reading of the changed set; it must be refused, and nothing withheld may be there."""
    found = read(tmp_path, **changes)
    reading = found.readings[at]
    assert reading.board.status == "refused"
    assert not found.final
    assert all(ratio.p_value is None for ratio in reading.board.ratios)
    assert any("are not held against each other" in accord.sentence for accord in found.accords)
    return reading


def test_a_missing_cell_is_named(tmp_path):
    """A row removed from the file refuses every reading that names its cell."""
    reading = board(tmp_path, rows=ROWS.replace("a3,r1,LZW,plain,LANDED,FAIL,4.00,False,100,x\n", ""))
    assert reading.missing == ("r1/a3",)
    assert "missing cell r1/a3: declared, and no row of the sources is of it" in reading.board.problems


def test_a_renamed_cell_is_missing_and_undeclared(tmp_path):
    """Under its new name it is of a declared condition, and in no reading."""
    reading = board(tmp_path, rows=ROWS.replace("a3,r1", "b3,r1").replace("a3", "b3"))
    assert (reading.missing, reading.undeclared) == (("r1/a3",), ())
    reading = board(tmp_path, rows=ROWS.replace("a1,r1", "b1,r1"))
    assert (reading.missing, reading.undeclared) == (("r1/a1",), ())
    other = board(tmp_path, at=0, rows=ROWS.replace("a1,r1", "b1,r1"))
    assert (other.missing, other.undeclared) == (("r1/a1",), ("r1/b1",))


def test_an_equal_row_counts_once_and_is_said(tmp_path):
    """The file has a row twice: de-duplicated by identity, and the p-value is what it was."""
    found = read(tmp_path, rows=ROWS + "\n" + ROWS.splitlines()[1])
    assert found.final
    assert found.readings[1].again == ("r1/a2",)
    assert found.readings[1].board.ratios[0].p_value == read(tmp_path).readings[1].board.ratios[0].p_value
    assert "said again word for word, each counted once: 1 cells: r1/a2" in plain(parts_of(found))


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("a2,r1,LRU,diet,LANDED,PASS,3.50,True,150,x", "the rows of try 1 differ in spend.price.usd 3.0 and 3.5"),
        ("a2,r1,LZW,diet,LANDED,PASS,3.00,True,150,x", "its rows differ in task 'LRU' and 'LZW'"),
        ("a2,r1,LRU,diet,LANDED,FAIL,3.00,True,150,x", "verdict.reading 'PASS' and 'FAIL'"),
    ],
)
def test_conflicting_rows_are_named_with_what_differs(tmp_path, second, said):
    """A cell twice with rows that can't both be true is refused, whichever comes first."""
    reading = board(tmp_path, rows=f"{ROWS}\n{second}")
    assert reading.conflicting == ("r1/a2",)
    assert any(said in problem and "conflicting cell r1/a2" in problem for problem in reading.board.problems)


def test_an_undeclared_cell_of_a_declared_condition_refuses(tmp_path):
    """Who may choose among the cells of a condition without saying so may choose the result."""
    row = "a9,r1,LRU,diet,LANDED,PASS,30.0,False,1,x"
    reading = board(tmp_path, rows=f"{ROWS}\n{row}")
    assert reading.undeclared == ("r1/a9",)
    left = DECLARATION + '\n[[left_out]]\ncells = ["r1/a9"]\nreason = "another suite"\n'
    found = read(tmp_path, rows=f"{ROWS}\n{row}", declaration=left)
    assert found.final
    assert found.left_out == {"r1/a9": "another suite"}
    assert "left out, another suite: 1 cells: r1/a9" in plain(parts_of(found))


def test_a_cell_of_another_condition_is_named_and_refuses_only_a_whole_set(tmp_path):
    """A file may hold other experiments, unless the declaration says that it does not."""
    row = "z1,r9,Paxos,other,LANDED,PASS,1.0,False,1,x"
    found = read(tmp_path, rows=f"{ROWS}\n{row}")
    assert (found.final, found.elsewhere) == (True, ("r9/z1",))
    assert "in no reading, and of no reading's condition: 1 cells: r9/z1" in plain(parts_of(found))
    whole = board(tmp_path, rows=f"{ROWS}\n{row}", declaration="whole = true\n" + DECLARATION)
    assert any("undeclared cell r9/z1" in problem and "`whole`" in problem for problem in whole.board.problems)


def test_a_set_that_grew_expires_what_was_told_of_it(tmp_path):
    """A reading that was registered with its digest is refused when a cell joins it, and passes while none does."""
    digest = read(tmp_path).readings[1].digest
    pinned = DECLARATION.replace('name = "first"\n', f'name = "first"\ndigest = "{digest}"\n')
    assert read(tmp_path, declaration=pinned).final
    grown = pinned.replace('"r1/a5"]', '"r1/a5", "r3/a1"]')
    reading = board(tmp_path, rows=f"{ROWS}\na1,r3,LRU,plain,LANDED,PASS,1.00,False,90,y", declaration=grown)
    assert any(problem.startswith("the set of reading first has changed") for problem in reading.board.problems)


def test_a_repriced_row_is_found_by_its_digest(tmp_path):
    """A list of names with the digest of each cell's rows names the cell whose price was changed."""
    assert [path.name for path in write_pins(written(tmp_path), tmp_path)] == ["all.cells.txt", "first.cells.txt"]
    with pytest.raises(DeclarationError, match="is there already"):
        write_pins(written(tmp_path), tmp_path)
    listed = DECLARATION.replace(
        'cells = ["r1/a1", "r1/a2", "r1/a3", "r1/a4", "r1/a5"]', 'cells_file = "first.cells.txt"'
    )
    assert read(tmp_path, declaration=listed).final
    reading = board(tmp_path, declaration=listed, rows=ROWS.replace("PASS,3.00", "PASS,3.01"))
    assert reading.changed == ("r1/a2",)
    assert "changed cell r1/a2: what its rows say is not what was declared" in reading.board.problems
    assert set(reading.lists) == {"first.cells.txt"}


def test_another_file_than_the_pinned_one_is_refused(tmp_path):
    """A re-priced cell makes another file; the file's digest finds it before anything is read."""
    (source,) = read(tmp_path).sources.values()
    pinned = DECLARATION.replace('files = ["cells.csv"]', f'files = ["cells.csv"]\nsha256 = ["{source}"]')
    assert read(tmp_path, declaration=pinned).final
    with pytest.raises(DeclarationError, match=r"cells.csv is not the file that was declared"):
        read(tmp_path, declaration=pinned, rows=ROWS.replace("3.00", "3.01"))


def test_readings_that_ask_different_things_are_not_held_against_each_other(tmp_path):
    """A reading that computes no comparison has none in common with the other."""
    changed = DECLARATION.replace('name = "first"\n', 'name = "first"\ncomparisons = []\n')
    assert read(tmp_path, declaration=changed).accords == ()
