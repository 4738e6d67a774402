"""The audits of packets: quiet on what the arms render, loud on each way in which a packet can be doctored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arms.packets_facts import GENERIC, PacketCFSF, PacketGRShape, PacketPad, PacketTC
from harness.errors import MirrorBroken, TokensShown
from harness.mirror import mirror_state
from harness.mirror_audit import audit_packet, forbidden_tokens
from harness.views import Fact, MirrorState, Previous, PublicReading, RoundView

CODE = "def add(first, other):\n    # - no bullet\n    return '''\n- none either\n```'''\n"
FACTS = (Fact(call="add(1, 'lemon')", expected="['None', 23]"), Fact(call="add(2, 3)", expected="5"))
TASK = "def add(first, other: int = 3):\n    Add.\n    - the task's own bullet"
ARMS = [PacketTC(), PacketCFSF(), PacketGRShape(), PacketPad()]


def scene(facts: tuple[Fact, ...] = FACTS, *, accepted: bool = False) -> tuple[RoundView, MirrorState]:
    """A round of a mirrored arm and the state that it copies."""
    reading = PublicReading(reading="FAIL", accepted=accepted, passed=0, total=2, facts=facts)
    previous = Previous(code=CODE, reading=reading)
    state = mirror_state("TC", 2, previous)
    details = {"entry_point": "add"}
    return RoundView(instruction=TASK, details=details, round=2, rounds=4, previous=previous, mirrored=state), state


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
@pytest.mark.parametrize("facts", [FACTS, FACTS[:1], ()], ids=len)
@pytest.mark.parametrize("accepted", [False, True])
def test_what_the_arms_render_passes(arm: PacketTC, facts: tuple[Fact, ...], accepted: bool) -> None:
    """With facts, without one, and where nothing failed; bullets of the task and of the code are nobody's."""
    view, state = scene(facts, accepted=accepted)
    audit_packet(arm, view, state, arm.render(view))


DOCTORED = {
    "a fact of another value": ("CF-SF", "must equal 5", "must equal 6"),
    "a fact left out": ("CF-SF", "\n- add(2, 3) must equal 5", ""),
    "TC's own facts": ("TC", "must equal 5", "must equal 7"),
    "PAD's facts": ("PAD", "must equal 5", "must equal 7"),
    "another code": ("CF-SF", "return '''", "return  '''"),
    "another code under generic bullets": (
        "GR-SHAPE",
        "def add(first, other):\n    #",
        "def add(other, first):\n    #",
    ),
    "a bullet too many": ("GR-SHAPE", GENERIC[1], f"{GENERIC[1]}\n{GENERIC[2]}"),
    "a bullet too few": ("GR-SHAPE", f"\n{GENERIC[1]}", ""),
    "longer padding": ("PAD", "def label_shelf", "def label_shelves"),
    "another task": ("CF-SF", "Add.", "Multiply."),
}


@pytest.mark.parametrize("name", DOCTORED)
def test_a_doctored_packet_is_refused(name: str) -> None:
    """One change of one packet, and the audit names the arm and what differs."""
    which, old, new = DOCTORED[name]
    (arm,) = (arm for arm in ARMS if arm.name == which)
    view, state = scene()
    prompt = arm.render(view)
    assert prompt.replace(old, new) != prompt
    with pytest.raises(MirrorBroken):
        audit_packet(arm, view, state, prompt.replace(old, new))


@pytest.mark.parametrize("token", ["add", "first", "other", "23", "lemon", "'lemon'", "None"])
def test_a_word_of_the_task_is_refused(token: str) -> None:
    """The function's name, its parameters, and the literals of the assertions may stand in no generic bullet."""
    arm = PacketGRShape()
    view, state = scene()
    with pytest.raises(TokensShown, match=token):
        audit_packet(arm, view, state, arm.render(view).replace(GENERIC[0], f"- mind {token}, always"))


def test_words_that_are_not_the_tasks_stay_free() -> None:
    """Keywords of the language and the wording of facts are in any sentence."""
    tokens = forbidden_tokens(*scene())
    assert {"add", "first", "other", "None"} <= tokens
    assert not {"must", "equal", "def", ""} & tokens


def test_a_state_that_lies_about_itself_is_refused() -> None:
    """The digests that travel with a state are taken again."""
    view, state = scene()
    for doctored in (replace(state, block="doctored"), replace(state, code="doctored")):
        with pytest.raises(MirrorBroken, match="digests"):
            audit_packet(PacketCFSF(), view, doctored, PacketCFSF().render(view))


def test_bullets_where_nothing_failed_are_refused() -> None:
    """An accepted candidate has no facts: a packet with any was made from another state."""
    view, state = scene(accepted=True)
    other, _state = scene()
    with pytest.raises(MirrorBroken):
        audit_packet(PacketCFSF(), view, state, PacketCFSF().render(other))
