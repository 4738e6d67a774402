"""The report of a declared set, and of an amended and audited run: both verdicts beside each other, no number of its own."""

import json

from cells.amended import Amended
from cells.html.page import html_report
from cells.report import document_of
from cells.report_declared import declared_document, declared_facts, declared_to_json
from cells.report_facts import facts_to_json
from cells.report_markdown import markdown_report
from cells.table_rows import tables_of
from cells.table_sources import declared_sources
from harness.amendment import Amendment
from tests.cells.declared.sets import DECLARATION, ROWS, read, written
from tests.cells.page_text import Page, foreign_numbers
from tests.cells.report_cases import full_facts
from tests.cells.test_cli import proctor
from tests.cells.test_report_page import board_of

__all__ = ["proctor"]


def test_the_disagreement_stands_first(tmp_path):
    """Before any figure; then sources, each reading with its tables and figures, and how to check it."""
    document = declared_document(declared_facts(read(tmp_path), "diet"))
    assert document.head[0].startswith("the readings disagree, or can't be held against each other, in 2 ways")
    assert "all and first agree in sign and not in magnitude on premium: LRU 2.0000 against 1.5000" in document.head[1]
    titles = [section.title for section in document.sections]
    assert titles == ["Sources", "Reading all", "Reading first", "Check it again"]
    assert [plot.title for plot in document.plots] == ["premium: premium per problem", "Cost against class"] * 2
    text = markdown_report(document)
    assert text.index("not in magnitude") < text.index("## Sources") < text.index("## Reading all")


def test_no_number_of_a_declared_report_is_its_own(tmp_path):
    """Each number in the words of the page and of the Markdown is one of the JSON; a planted one is found."""
    facts = declared_facts(read(tmp_path), "diet")
    document, data = declared_document(facts), json.loads(json.dumps(declared_to_json(facts), allow_nan=False))
    page = Page(html_report(document))
    assert foreign_numbers(page.words, data) == []
    assert foreign_numbers([markdown_report(document)], data) == []
    assert foreign_numbers([*page.words, "p 0.7777"], data) == ["0.7777"]


def test_names_of_a_declared_set_are_printed_and_never_obeyed(tmp_path):
    """Of cells, tasks and the question; a reading's name can have no markup."""
    evil = "<script>alert(1)</script>"
    rows = ROWS.replace("LRU", evil).replace("a5", f"a5{evil}")
    declaration = DECLARATION.replace("r1/a5", f"r1/a5{evil}").replace("Does the diet", f"{evil} Does the diet")
    document = declared_document(declared_facts(read(tmp_path, rows=rows, declaration=declaration), evil))
    assert "script" not in {tag for tag, _ in Page(html_report(document)).elements}
    assert evil not in markdown_report(document)


def test_the_tables_of_a_declared_set_are_told_apart_by_reading(tmp_path):
    """A cell has its own run and id; one that is in two readings is a row of each."""
    tables = tables_of(declared_sources(read(tmp_path), "diet"))
    names = [(row["reading"], row["run"], row["id"]) for row in tables["cells"]]
    assert len(names) == len(set(names)) == 11
    assert ("first", "r2", "a1") not in names
    assert {row["source"] for row in tables["cells"]} == {"diet"}
    (boot,) = [row for row in tables["cells"] if row["id"] == "a5" and row["reading"] == "first"]
    assert (boot["class"], boot["usd"], boot["price"], boot["replicate"]) == ("FAILED_BOOT", None, "void", None)
    assert {(row["reading"], row["name"]) for row in tables["ratios"]} == {("all", "premium"), ("first", "premium")}


def test_the_commands_take_a_declared_set(proctor, tmp_path):
    """report, export and query read the same declaration as score."""
    path = written(tmp_path)
    report = proctor("report", "--declaration", path, "--json")
    assert report.json == {"md": str(tmp_path / "report.md"), "html": str(tmp_path / "report.html")}
    assert proctor("export", "--declaration", path, "--to", tmp_path / "tables").code == 0
    sql = "SELECT reading, count(*) AS n FROM cells GROUP BY ALL ORDER BY 1"
    assert proctor("query", sql, "--declaration", path, "--csv").out == "reading,n\nall,6\nfirst,5\n"
    assert proctor("query", sql, "--declaration", path, "--cells", tmp_path / "gone.csv").code == 2
    assert "expected one, or --declaration" in proctor("report").err


AMENDED = Amended(
    number=1,
    dated="2026-12-01T00:00:00Z",
    outcomes=11,
    content=Amendment(
        reason="a task was unsound",
        changes="task Paxos is withdrawn",
        withdrawn=[{"task": "made/Paxos", "reason": "its suite passes the stub"}],
        checks=[{"name": "few halts", "figure": "halted", "at_most": 20}],
    ),
    checks=(),
    repository=None,
)
AUDITS = (
    {"verdict": "AUDIT-FAILURE", "head": "11:aa", "by_invariant": {"seeds": 2, "chain": 0}},
    {"verdict": "CLEAN", "head": "12:bb", "by_invariant": {"seeds": 0, "chain": 0}},
)


def test_frozen_and_amended_stand_side_by_side_and_so_do_audits():
    """The frozen scoreboard keeps its place; the amended one has a section; no audit takes another's place."""
    facts = full_facts(amended=board_of(3), amendments=(AMENDED,), audits=AUDITS)
    document = document_of(facts)
    titles = [section.title for section in document.sections]
    assert titles[-3:] == ["Audit", "As amended", "Check it again"]
    text = markdown_report(document)
    assert "amended 1 times: see As amended" in text.partition("## Registration")[0]
    assert "Audit verdict 1 of 2: AUDIT-FAILURE, read up to head 11:aa, findings: seeds 2." in document.head
    assert "Audit verdict 2 of 2: CLEAN, read up to head 12:bb." in document.head
    assert "| 1 | 2026-12-01T00:00:00Z | 11 | task Paxos is withdrawn | a task was unsound |" in text
    assert "\\[as amended\\]" not in text.partition("## As amended")[0]
    assert text.count("\\[as amended\\]") > 5
    data = json.loads(json.dumps(facts_to_json(facts), allow_nan=False))
    assert foreign_numbers(Page(html_report(document)).words, data) == []


def test_the_commit_is_told_with_what_was_not_committed():
    """And that there was none."""
    registration = full_facts().registration
    repository = {"commit": "c" * 40, "dirty": ["a.toml"], "dirty_count": 1}
    text = markdown_report(document_of(full_facts(registration={**registration, "repository": repository})))
    assert f"- git commit {'c' * 40}" in text
    assert "- git: 1 paths are not committed: a.toml" in text
    assert "- git commit: none, the experiment file stood in no repository" in markdown_report(
        document_of(full_facts())
    )
