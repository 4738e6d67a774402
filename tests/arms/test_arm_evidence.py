"""The arms of the revise seat: what each shows, what is pinned of it, and that nothing tells that a trace is stale."""

import json
from dataclasses import replace

import pytest

from arms.evidence import CurrentEvidence, GuardedEvidence, NoEvidence, StaleEvidence
from harness import plugins
from harness.arm_check import check_arm
from harness.canonical import digest_bytes
from harness.views import Revision, RoundView, Trace

ARMS = [CurrentEvidence, StaleEvidence, NoEvidence, GuardedEvidence]
TRACE = Trace(text="FAIL: 1 of 3\n```", code_sha256="a" * 64, suite="s", execution="e", stale=True)
VIEW = RoundView(instruction="TASK", revision=Revision(code="CODE", code_sha256="b" * 64, evidence=TRACE))

DIGESTS = {
    "current": "cbc4da7257411293",
    "stale": "dd5236bffa3d977e",
    "none": "cf43e2d1e0f7797b",
    "guarded": "f213315deb65683d",
}  # fmt: skip


@pytest.mark.parametrize("made", ARMS)
def test_what_is_pinned_does_not_change(made):
    """An arm that was used is never edited: another text is another arm."""
    arm = made()
    assert digest_bytes(arm.content)[:16] == DIGESTS[arm.name]
    assert plugins.load("arms", arm.name) is made
    assert arm.seats == {"revise"}


@pytest.mark.parametrize("made", ARMS)
def test_every_word_of_a_prompt_is_pinned(made):
    """What is neither the task nor the trace is a template of the content."""
    arm = made()
    rest = arm.render(VIEW).replace("TASK", "").replace(TRACE.text, "")
    for template in sorted(json.loads(arm.content)["templates"].values(), key=len, reverse=True):
        rest = rest.replace(template, "")
    assert rest.strip("~`\n") == ""


def test_the_words_do_not_tell_what_a_trace_was_taken_on():
    """`current`, `stale` and `guarded` render one prompt of one trace, whatever it says of itself; `none` has none."""
    current, stale, none, guarded = (made() for made in ARMS)
    fresh = replace(VIEW, revision=Revision(code="CODE", code_sha256="a" * 64, evidence=replace(TRACE, stale=False)))
    assert len({arm.render(view) for arm in (current, stale, guarded) for view in (VIEW, fresh)}) == 1
    assert "~~~text\nFAIL: 1 of 3\n```\n~~~" in stale.render(VIEW)
    assert none.render(VIEW) == none.render(RoundView(instruction="TASK"))
    assert stale.render(RoundView(instruction="TASK")) == none.render(VIEW)


@pytest.mark.parametrize("made", ARMS)
def test_the_check_finds_no_error(made):
    """Each may be used: no forbidden word, the instruction verbatim; the check sees the evidence that it shows."""
    found = check_arm(made())
    assert [finding for finding in found if finding.level != "note"] == []
    seen = [finding.detail for finding in found if finding.rule == "sees"]
    assert all(("its evidence" in detail) is (made is not NoEvidence) for detail in seen)


def test_the_streams_differ():
    """What the seat takes the evidence from, and whether it guards it."""
    assert [(made.evidence, made.guarded) for made in ARMS] == [
        ("current", False),
        ("carried", False),
        ("none", False),
        ("carried", True),
    ]
