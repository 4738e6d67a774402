"""The page and the Markdown: no number that is not in the record, nothing that a name can do, the same bytes again."""

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from cells.cell_lines import cell_lines
from cells.html.page import html_report
from cells.readings import score
from cells.report import document_of
from cells.report_facts import facts_to_json
from cells.report_markdown import markdown_report
from cells.revision_reading import read_revisions
from cells.settled import settle
from cells.strata import placer
from harness.analysis import Analysis
from tests.cells.page_text import Page, foreign_numbers
from tests.cells.report_cases import ANALYSIS, full_facts, outcomes_of
from tests.cells.scoring_cases import key, outcome
from tests.cells.test_report import facts as small_facts
from tests.cells.trails import events, kept


def board_of(seed):
    """The scoreboard of a run with another outcome in each cell."""
    return score(*outcomes_of(seed), ANALYSIS, head="4711:" + "ab12" * 16, registration_id="full-0123456789ab")


def facts_of(case):
    """The facts of a case, by name."""
    match case:
        case "full":
            return full_facts()
        case "small":
            return small_facts()
        case "revised":
            return full_facts(revisions=revised())
        case "revised, under way":
            declared = [key(1, "A"), key(2, "A")]
            board = score(declared, [outcome(declared[0], "PASS")], Analysis(), head="1:ab", registration_id="r")
            return full_facts(board=board, revisions=revised())
        case "nothing recorded":
            return full_facts(
                board=score([key(1, "A")], [], Analysis(), head=None, registration_id="r"), cells=(), unlocks=()
            )
        case int(seed):
            declared, outcomes = outcomes_of(seed)
            return full_facts(board=board_of(seed), cells=tuple(cell_lines("full", settle(declared, outcomes))))


CASES = ["full", "small", "nothing recorded", "revised", "revised, under way", 1, 2, 3]


@cache
def revised():
    """Three correct starts that a guard kept and a stale trace destroyed, one wrong start, three escalations."""
    cells = [
        *((task, "stale", "FAIL", events("+--", shipped="-")) for task in (1, 2, 3)),
        *((task, "guarded", "PASS", events("+++", shipped="+", actions=["escalate", "keep"])) for task in (1, 2, 3)),
        *((4, arm, "PASS", events("--+", shipped="+")) for arm in ("stale", "guarded")),
    ]
    with TemporaryDirectory() as folder:
        outcomes = [kept(Path(folder), key(task, arm), word, told) for task, arm, word, told in cells]
        settled = settle([one.cell for one in outcomes], outcomes)
        return read_revisions(Path(folder), settled, place=placer(("task",), ()))


def test_a_run_that_revised_has_a_section_of_its_own():
    """Correct now and ever, work lost, harm, repair, soundness and escalations by arm, and the arms against each other."""
    document = document_of(facts_of("revised"))
    names = [section.name for section in document.sections]
    assert names.index("revisions") == names.index("contrasts") + 1
    for text in (markdown_report(document), " ".join(Page(html_report(document)).words)):
        assert "arms against each other, by pairs of cells" in text
        assert "0.750 (3/4)" in text
    (work,) = [
        line for line in markdown_report(document).splitlines() if line.startswith("| guarded | none | m | 4 of 4")
    ]
    assert work == "| guarded | none | m | 4 of 4 | 0.000 (0/4) | 0.000 (0/3) | 1.000 (1/1) | 1.000 (4/4) | 0 | 0 | 3 |"


def test_revisions_of_a_run_under_way_are_not_compared():
    """Nor has the JSON any comparison; a run of another seat has no section at all."""
    facts = facts_of("revised, under way")
    text = markdown_report(document_of(facts))
    assert "by pairs of cells" not in text
    assert "Comparisons are withheld until the record is whole." in text
    assert facts_to_json(facts)["revisions"]["contrasts"] is None
    assert facts_to_json(facts_of("full"))["revisions"] is None
    assert "## Revisions" not in markdown_report(document_of(facts_of("full")))


@pytest.mark.parametrize("case", CASES)
def test_no_number_is_the_reports_own(case):
    """Each number in the words of the page and of the Markdown is one of the JSON that they are made of."""
    facts = facts_of(case)
    document, data = document_of(facts), json.loads(json.dumps(facts_to_json(facts), allow_nan=False))
    page = Page(html_report(document))
    assert foreign_numbers(page.words, data) == []
    assert foreign_numbers([markdown_report(document)], data) == []


@pytest.mark.parametrize("planted", ["7.7777", "98,765", "3.3e-07", "123457"])
def test_a_number_from_elsewhere_is_found(planted):
    """One that stands in a fact, a cell of a table, a note or a figure's words, and in no JSON."""
    facts = full_facts()
    data, document = facts_to_json(facts), document_of(facts)
    section = document.sections[4]
    sheet = section.parts[0]
    spoilt = [
        replace(document, head=(*document.head, f"about {planted}")),
        *(
            replace(document, sections=(replace(section, parts=(part,)),))
            for part in (
                replace(sheet, rows=((planted, *sheet.rows[0][1:]),)),
                replace(sheet, notes=(f"p {planted}",)),
                replace(next(document.plots), alt=(f"C1 {planted}",)),
            )
        ),
    ]
    for one in spoilt:
        assert foreign_numbers(Page(html_report(one)).words, data) == [planted]
        assert foreign_numbers([markdown_report(one)], data) == [planted]


def test_ticks_are_round_and_the_only_figures_of_an_axis():
    """A tick has one or two digits that are not 0: it is a place on an axis, and measures nothing."""
    ticks = Page(html_report(document_of(full_facts()))).ticks
    assert len(ticks) > 20
    assert all(len(re.sub(r"[.,]", "", tick).strip("0")) <= 2 for tick in ticks)


@pytest.mark.parametrize("case", CASES)
def test_the_same_record_gives_the_same_bytes(case):
    """Nothing of when or where it was made is in it."""
    once, again = (document_of(facts_of(case)) for _ in range(2))
    assert html_report(once) == html_report(again)
    assert markdown_report(once) == markdown_report(again)


@pytest.mark.parametrize("case", CASES)
def test_both_say_every_section_table_and_figure(case):
    """The page and the Markdown are of the same sections, in the same order."""
    document = document_of(facts_of(case))
    page, text = Page(html_report(document)), markdown_report(document)
    titles = [section.title for section in document.sections]
    assert [words for words in page.words if words in titles][: 2 * len(titles)] == titles * 2
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == titles
    assert sum(tag == "figure" for tag, _ in page.elements) == len(list(document.plots)) == text.count("### Figure: ")


def test_the_page_asks_for_nothing():
    """There is no script, and no address in any attribute or in the style sheet but those of its own sections."""
    text = html_report(document_of(full_facts()))
    page = Page(text)
    assert {tag for tag, _ in page.elements} & {"script", "img", "iframe", "object", "base", "form", "embed"} == set()
    links = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in {"href", "src", "action", "srcset", "data", "xlink:href", "style"} or name.startswith("on")
    ]
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    assert {link for link in links if not link.startswith("#")} == {"data:,"}
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert not re.search(r"url\(|@import|https?:|expression", style)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert ("meta", {"http-equiv": "Content-Security-Policy", "content": policy}) in page.elements


def test_the_page_can_be_heard():
    """Tables have a caption and scopes, figures a name and words, ids are unique, the language is said."""
    page = Page(html_report(document_of(full_facts())))
    count = {tag: sum(one == tag for one, _ in page.elements) for tag, _ in page.elements}
    assert count["table"] == count["caption"]
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes]
    assert {name for names in named for name in names.split()} <= set(ids)
    drawn = [attributes for tag, attributes in page.elements if tag == "svg" and "aria-hidden" not in attributes]
    assert len(drawn) == count["figure"] == count["desc"] == 5
    assert all(attributes["role"] == "img" for attributes in drawn)
    assert ("html", {"lang": "en"}) in page.elements


HOSTILE = [
    "<script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</td></table><h2>Forged</h2>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "]]><!--",
    "--></svg>",
    "&lt;script&gt; &amp; {{ 7*7 }} {% raw %}",
    "\u202eevil\u202c \u2066x\u2069",
    "\x00\x07\x1b[2J\x9b",
    "a\r\nb\u2028c",
]


@pytest.mark.parametrize("evil", HOSTILE)
def test_text_of_a_record_is_printed_and_never_obeyed(evil):
    """In every place where a record's text can stand the page has the same elements as with plain text."""
    (plain, tame), document = tame_report(), document_of(spoilt(evil))
    text = html_report(document)
    wild = Page(text)
    assert wild.prose == tame.prose
    drawn = {"svg", "line", "rect", "circle", "path", "text", "desc"}
    assert {tag for tag, _ in wild.elements} == {tag for tag, _ in tame.prose} | drawn
    text.encode("utf-8")
    assert all(char.isprintable() or char == "\n" for char in text)
    markdown = markdown_report(document)
    assert "<script" not in re.sub(r"^```sh\n.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
    assert all(char.isprintable() or char == "\n" for char in markdown)
    assert markdown.count("\n") == plain.count("\n")


@cache
def tame_report():
    """The Markdown and the page with plain text in each place."""
    document = document_of(spoilt("plain"))
    return markdown_report(document), Page(html_report(document))


def spoilt(text):
    """Facts with a text in each place that others write: names, qualifiers, details, evidence, digests, paths."""
    analysis = Analysis(
        contrasts=[{"name": f"C{text}", "treatment": "treated", "control": "plain", "qualifiers": [text]}],
        ratios=[
            {
                "name": f"R{text}",
                "quantity": "usd",
                "treatment": "treated",
                "control": "plain",
                "alternative": "greater",
                "sd_ln": 0.3,
                "qualifiers": [text],
            }
        ],
    )
    declared, outcomes = outcomes_of(replicates=1)
    board = score(declared, outcomes, analysis, head=text, registration_id=text, not_enforced={text: text})
    names = tuple(replace(row, label=text) if hasattr(row, "label") else row for row in full_facts().gates.refusals)
    gates = replace(full_facts().gates, unequal=(text,), refusals=names)
    row = dict.fromkeys(("probe", "language", "expected", "finding_up", "evidence_up", "weakening"), text)
    registration = {"id": text, "name": text, "question": text, "frozen_at": text, "source": text, "digest": text}
    return full_facts(
        board=board,
        gates=gates,
        probes=[row],
        controls=[{"task": text, "name": text, "reading": text, "standing": text, "held": False}],
        plan={text: text, "models": [text]},
        registration={**registration, "pins": {text: text, "x": {"digest": text}}, "refused": [{"cell": text}]},
        unlocks=tuple(replace(item, arm=text, model=text) for item in full_facts().unlocks),
        cells=tuple(replace(line, arm=text, outcome_class=text) for line in full_facts().cells),
    )


def test_figures_stay_on_their_drawing():
    """Whatever the data, each mark lies inside the drawing: one task, equal figures, very unequal ones, hundreds."""
    for tasks, spread in [(1, 1.0), (2, 1.0), (7, 1e9), (100, 30.0)]:
        cells = [key(task, arm) for task in range(tasks) for arm in ("treated", "plain")]
        outcomes = [
            outcome(cell, "PASS", usd=spread if cell.arm == "treated" and int(cell.task) % 2 == 0 else 1.0)
            for cell in cells
        ]
        board = score(cells, outcomes, ANALYSIS, head="1:a", registration_id="r")
        page = Page(html_report(document_of(full_facts(board=board))))
        box, height = (0.0, 0.0), 0.0
        for tag, attributes in page.elements:
            if tag == "svg":
                box = (0.0, float(attributes["viewbox"].split()[2]))
                height = float(attributes["viewbox"].split()[3])
            for name in ("x", "x1", "x2", "cx", "y", "y1", "y2", "cy"):
                if name in attributes and tag != "svg":
                    value = float(attributes[name])
                    assert math.isfinite(value)
                    assert box[0] <= value <= (box[1] if "x" in name else height)


def test_without_the_template_engine_there_is_markdown_alone(tmp_path, monkeypatch):
    """A page of an older record is taken away, so that what lies side by side tells of one record."""
    from cells import report_files

    document = document_of(full_facts())
    assert set(report_files.write_document(document, tmp_path)) == {"md", "html"}
    monkeypatch.setattr(report_files, "find_spec", lambda _name: None)
    assert set(report_files.write_document(document, tmp_path)) == {"md"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.md"]
