"""The report: every section, no figure of its own, and nothing that text from a record can break."""

import re
from dataclasses import replace
from types import SimpleNamespace

from cells.gate_trips import GateTrips, read_trips
from cells.readings import score
from cells.report import document_of
from cells.report_facts import ReportFacts
from cells.report_markdown import markdown_report
from harness.analysis import Analysis
from harness.blobs import BlobStore
from tests.cells.scoring_cases import key, outcome, verdict_of
from tests.cells.test_score_view import made_board

REGISTRATION = {
    "id": "made-0123456789ab",
    "name": "made",
    "question": "Does A pass more than B?",
    "frozen_at": "2026-11-30T16:00:00Z",
    "refused": [{"cell": "made|7|A|none|m|1", "gate": "disjoint", "detail": "the workspace meets the denied set"}],
}
PROBES = [
    {
        "probe": "dns",
        "language": "python",
        "expected": ["DENIED"],
        "finding_up": "DENIED",
        "evidence_up": "EAI_AGAIN",
        "finding_down": "SERVED",
        "evidence_down": "answered",
        "weakening": "host network",
        "holds": True,
        "ms": 12.5,
    },
    {"probe": "engine-socket", "expected": ["ABSENT"], "finding_up": "ABSENT", "finding_down": None, "holds": None},
]
CONTROLS = [
    {"task": "made/1", "name": "reference", "reading": "PASS", "standing": "accepted", "held": True},
    {"task": "made/2", "name": "reference", "reading": "PASS", "standing": "accepted", "held": True},
    {"task": "made/1", "name": "empty", "reading": "PASS", "standing": "accepted", "held": False},
]
NO_TRIPS = GateTrips(counts=(), refusals=(), unequal=())
PLAN = {"tries_of_a_void": 2, "concurrency": 1, "backend": "docker"}


def facts(board=None, **more):
    """The facts of the made-up set."""
    given = {"registration": REGISTRATION, "probes": PROBES, "controls": CONTROLS, "plan": PLAN, "gates": NO_TRIPS}
    return ReportFacts(board=board or made_board(), **(given | more))


def report(board=None, **more):
    """The Markdown of the made-up set."""
    return markdown_report(document_of(facts(board, **more)))


def test_every_section_is_there_in_order():
    """Question, registration and head come first, then the checks, the readings, and how to check again."""
    text = report()
    assert text.startswith("# Report: made\n\n> Does A pass more than B?\n\n- registration made-0123456789ab\n")
    assert "- record head 9:feed" in text
    assert "- frozen at 2026-11-30T16:00:00Z" in text.partition("## Registration")[2].partition("## Fence")[0]
    titles = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert [title for title in titles if title != "Further tables"] == [
        *(
            "Registration",
            "Fence",
            "Controls",
            "Plan",
            "Census",
            "Conditions",
            "Contrasts",
            "Predictions",
            "Cost",
            "Halts and voids",
            "Gates",
            "Audit",
            "Check it again",
        ),
    ]
    assert "proctor verify RUN --head 9:feed" in text
    assert "proctor rescore RUN" in text


def test_the_checks_are_told_with_their_failures():
    """A probe that was not measured and a control that does not hold are said in words and counted apart."""
    text = report()
    assert "1 of 2 rows hold, 0 do not, 1 were not measured." in text
    assert "| dns | python | DENIED | DENIED | EAI_AGAIN | host network | SERVED | yes |" in text
    assert "| engine-socket | undefined | ABSENT | ABSENT | undefined | undefined | undefined | not measured |" in text
    assert "2 of 3 controls hold." in text
    assert "| reference | PASS | accepted | yes | 2 |" in text
    assert "| made/1 | empty | PASS | accepted | no |" in text.partition("### Controls that do not hold")[2]
    assert "### Cells refused at freeze" in text
    assert "made\\|7\\|A\\|none\\|m\\|1" in text


def test_the_flow_of_a_population_is_told():
    """Where units were chosen by a pool, the report says how many were left at each step; elsewhere nothing stands."""
    row = {"benchmark": "made", "capped": 58, "dead": 119, "excluded": 1, "initial": 164, "model": "m", "primary": 60}
    outlook = {"population": {"sample": "primary", "select": "dead", "flow": [row]}}
    plan = report(registration=REGISTRATION | {"outlook": outlook}).partition("## Plan")[2].partition("## Census")[0]
    assert "| benchmark | model | initial | dead | excluded | capped | primary |" in plan
    assert "| made | m | 164 | 119 | 1 | 58 | 60 |" in plan
    assert "Sample 'primary' of the units that are dead." in plan
    every = {"population": {**outlook["population"], "select": "all", "sample": "disjoint"}}
    assert "Sample 'disjoint' of all units." in report(registration=REGISTRATION | {"outlook": every})
    assert "Population" not in report()


def test_without_checks_the_report_says_so():
    """An empty table is a sentence, not a gap."""
    text = report(probes=[], controls=[])
    assert "No probe is in the record." in text
    assert "No control is in the record." in text


def test_a_record_without_entries_has_no_head():
    """Before the first entry the report says so, and its command to verify asks for no head."""
    text = report(score([key(1, "A")], [], Analysis(), head=None, registration_id="r"))
    assert "- record head none: nothing is recorded yet" in text
    assert "proctor verify RUN #" in text
    assert "- missing cell made\\|1\\|A\\|none\\|m\\|1: the record has no outcome of it" in text


def test_a_qualifier_stands_beside_each_p_value():
    """Every line that prints a p-value of the contrast prints its qualifier too."""
    lines = [line for line in report().splitlines() if "C1" in line]
    with_p = [line for line in lines if "0.5 |" in line or "p is" in line]
    assert len(with_p) == 2
    assert all("task 4 replaced" in line for line in with_p)


def test_an_undefined_figure_is_a_word():
    """A median with an unknown price prints `undefined`; no figure stands in for it, and nothing prints as None."""
    text = report()
    assert "undefined (1 unknown)" in text
    assert "None" not in text
    assert "nan" not in text.lower()


def test_text_from_a_record_stays_text():
    """Markup, HTML, table bars and line breaks in evidence or in a question change nothing in the document."""
    evil = "x | y\n\n## Forged\n<script>alert(1)</script> [a](b) `c` *d* \x1b[2J"
    probes = [PROBES[0] | {"evidence_up": evil}]
    text = report(registration=REGISTRATION | {"question": evil}, probes=probes, plan={"why": evil})
    assert not re.search(r"^## Forged", text, re.MULTILINE)
    assert "<script>" not in text
    assert "[a](b)" not in text
    assert "\x1b" not in text
    (row,) = [line for line in text.splitlines() if line.startswith("| dns")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 9


def test_the_would_be_readings_are_a_diagnostic():
    """A halted cell's exhibit is told in the section of halts, and in no rate."""
    halted = replace(outcome(key(1, "A"), "HALT(tokens)"), would_be=verdict_of("PASS"))
    board = score([halted.cell], [halted], Analysis(), head="h", registration_id="r")
    assert board.arms[0].would_be == {"PASS": 1}
    assert board.arms[0].pass_rate is None
    section = report(board).partition("## Halts and voids")[2]
    assert "| A | 1 | 0 | 1 |" in section
    assert "No test was registered." in report(board)


def test_what_a_screen_refused_is_told_with_its_would_be_readings(tmp_path):
    """By gate and arm, at zero too; and a sentence where the arms are not refused alike."""
    screened = replace(verdict_of("FAIL"), reading="SCREENED", would_be="PASS")
    tries = [
        replace(outcome(key(1, "A"), "FAIL"), verdict=screened),
        replace(outcome(key(2, "A"), "FAIL"), verdict=replace(screened, would_be="TIMEOUT")),
        outcome(key(1, "B"), "PASS"),
    ]
    registration = SimpleNamespace(cells=[one.cell for one in tries], refused=())
    section = report(gates=read_trips(registration, tries, {}, BlobStore(tmp_path))).partition("## Gates")[2]
    assert "| SCREENED | A | 2 | 2 | PASS 1, TIMEOUT 1 |" in section
    assert "| SCREENED | B | 0 | 1 | none |" in section
    assert "- SCREENED does not refuse all arms alike: A 2 of 2, B 0 of 1" in section
    assert "No gate refused anything." in report()
