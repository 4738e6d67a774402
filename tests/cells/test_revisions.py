"""The reading of revisions: each figure on made-up trails whose counts are made by hand."""

import pytest

from cells.revision_reading import AtRevision, read_revisions
from cells.revision_trail import read_trail, trail_of
from cells.revision_view import revision_sheets, revisions_to_json
from cells.score_view import plain
from cells.settled import settle
from cells.strata import placer
from harness.canonical import canonical_bytes
from harness.transcript import transcript_path
from tests.cells.scoring_cases import key, outcome
from tests.cells.trails import events, kept

TASK = placer(("task",), ())


def read(folder, *cells):
    """The reading of cells as (task, arm, word, events)."""
    outcomes = [kept(folder, key(task, arm), word, told) for task, arm, word, told in cells]
    return read_revisions(folder, settle([one.cell for one in outcomes], outcomes), place=TASK)


def test_current_and_ever_correct_by_revision(tmp_path):
    """A lost state stays in `ever`; a cell that ended early keeps its last; a stopped one is known as far as it came."""
    found = read(
        tmp_path,
        (1, "A", "PASS", events("-++", shipped="+")),
        (2, "A", "FAIL", events("-+-", shipped="-")),
        (3, "A", "PASS", events("-+", shipped="+")),
        (4, "A", "HALT(tokens)", events("+-")),
        (5, "A", "FAIL", events("-?-", shipped="-")),
    )
    (arm,) = found.arms
    assert arm.by_revision == (
        AtRevision(revision=0, known=5, correct=1, traced=5, ever=1),
        AtRevision(revision=1, known=4, correct=3, traced=4, ever=4),
        AtRevision(revision=2, known=4, correct=2, traced=3, ever=3),
    )
    assert (arm.traced, arm.held, arm.lost) == (3, 3, 1)


def test_harm_repair_and_soundness(tmp_path):
    """Harm and repair are what shipped; a completion is sound only with both the certificate and the verdict."""
    found = read(
        tmp_path,
        (1, "A", "PASS", events("+-+", shipped="+")),
        (2, "A", "FAIL", events("+--", shipped="-")),
        (3, "A", "PASS", events("+--", shipped="+", restored=True)),
        (4, "A", "FAIL", events("-++", shipped="+")),
        (5, "A", "FAIL", events("---", shipped="-")),
        (6, "A", "PASS", events("---", shipped="-")),
        (7, "A", "UNSCORABLE", events("-++", shipped="+")),
        (8, "A", "HALT(wall)", events("++")),
        (9, "A", "FAIL", events("+-")),
    )
    (arm,) = found.arms
    assert (arm.correct_starts, arm.harmed) == (3, 1)
    assert (arm.wrong_starts, arm.repaired) == (4, 2)
    assert (arm.judged, arm.sound, arm.unsound) == (7, 2, 1)
    assert (arm.lost, arm.restored) == (3, 1)


def test_replies_are_counted_by_rule(tmp_path):
    """Actions, notes and evidence, summed over cells."""
    actions, notes = ["patch", "escalate"], [None, None]
    found = read(
        tmp_path,
        (1, "A", "PASS", events("-++", shipped="+", actions=actions, notes=notes, handlings=["shown", "rejected"])),
        (2, "A", "FAIL", events("---", shipped="-", actions=["patch", "keep"], notes=["raises", "no-action"])),
        (3, "A", "FAIL", events("--", actions=["keep"], notes=["no-action"], handlings=["shown"], stale=True)),
    )
    (arm,) = found.arms
    assert (arm.patches, arm.admitted, arm.escalated, arm.stale_shown) == (2, 1, 1, 1)
    assert arm.notes == {"no-action": 2, "raises": 1}
    assert arm.handlings == {"none": 2, "rejected": 1, "shown": 2}


def test_a_missing_transcript_is_missing_and_not_zero(tmp_path):
    """Taken away, changed, or never there: the cell is unseen, and in no figure."""
    cells = [key(task, "A") for task in range(1, 6)]
    outcomes = [kept(tmp_path, cell, "PASS", events("-++", shipped="+")) for cell in cells[:3]]
    transcript_path(tmp_path, cells[1], 1).unlink()
    with transcript_path(tmp_path, cells[2], 1).open("ab") as file:
        file.write(b"{}\n")
    outcomes += [outcome(cells[3], "PASS"), outcome(cells[4], "VOID(workspace)")]
    found = read_revisions(tmp_path, settle(cells, outcomes), place=TASK)
    (arm,) = found.arms
    assert (arm.declared, arm.seen, arm.judged, arm.wrong_starts) == (5, 1, 1, 1)
    assert read_trail(tmp_path, outcomes[2]) is None


def test_another_seat_has_no_reading(tmp_path):
    """Rounds are no revisions: nothing is made up of them."""
    cell = key(1, "A")
    found = read_revisions(tmp_path, settle([cell], [kept(tmp_path, cell, "PASS", [("round", {})])]), place=TASK)
    assert (found.arms, found.contrasts) == ((), ())
    assert trail_of([]) is None


def test_arms_are_compared_by_pairs_and_tasks(tmp_path):
    """Two correct starts that only the guard kept, one pair alike, and a wrong start that is no pair of `kept`."""
    found = read(
        tmp_path,
        *((task, "stale", "FAIL", events("+--", shipped="-")) for task in (1, 2)),
        *((task, "guarded", "PASS", events("+++", shipped="+")) for task in (1, 2)),
        *((3, arm, "PASS", events("+++", shipped="+")) for arm in ("stale", "guarded")),
        *((4, arm, "FAIL", events("---", shipped="-")) for arm in ("stale", "guarded")),
    )
    contrasts = {item.measure: item for item in found.contrasts}
    kept_ones = contrasts["kept"]
    assert (kept_ones.treatment, kept_ones.control) == ("guarded", "stale")
    assert (kept_ones.pairs, kept_ones.clusters, kept_ones.b01, kept_ones.b10) == (3, 3, 2, 0)
    assert kept_ones.p_exact == 0.5
    assert kept_ones.p_clustered == pytest.approx(0.1573, abs=1e-4)  # z = 2 / sqrt(2)
    assert kept_ones.difference == pytest.approx(2 / 3)
    assert (kept_ones.low, kept_ones.high) == (0, 1)
    repaired = contrasts["repaired"]
    assert (repaired.pairs, repaired.b01, repaired.low, repaired.p_clustered) == (1, 0, None, 1.0)
    assert contrasts["sound"].pairs == 4


def test_cells_that_share_a_task_are_one_cluster(tmp_path):
    """Four replicates of one task move together: the clustered test and the interval say that little is known."""
    outcomes = [
        kept(tmp_path, key(1, arm, replicate), word, events("+" + 2 * end, shipped=end))
        for arm, word, end in (("stale", "FAIL", "-"), ("guarded", "PASS", "+"))
        for replicate in (1, 2, 3, 4)
    ]
    found = read_revisions(tmp_path, settle([one.cell for one in outcomes], outcomes), place=TASK)
    item = found.contrasts[0]
    assert (item.pairs, item.clusters, item.b01) == (4, 1, 4)
    assert item.p_exact == 0.125
    assert item.p_clustered == pytest.approx(0.3173, abs=1e-4)
    assert item.low is None


def test_the_tables_and_the_json_say_it_all(tmp_path):
    """Shares with their counts, what is undefined as such, and no comparison before the record is whole."""
    found = read(
        tmp_path,
        (1, "A", "PASS", events("-++", shipped="+")),
        (1, "B", "FAIL", events("-+-", shipped="-")),
    )
    text = plain(revision_sheets(found, final=True))
    assert "1.000 (1/1)" in text
    assert "undefined" in text
    assert "arms against each other" in text
    assert "arms against each other" not in plain(revision_sheets(found, final=False))
    told = revisions_to_json(found, final=True, registration_id="r")
    canonical_bytes(told)
    assert told["arms"][1]["lost"] == 1
    assert told["contrasts"][0]["measure"] == "repaired"
    assert revisions_to_json(found, final=False)["contrasts"] is None
