"""Packets of controllers: the treatment and its two mirrors hold their audits, and a doctored one of any is stopped."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from arms.controllers.foreign import foreign
from arms.controllers.generic import CLAUSES, generic_lines
from arms.controllers.packet import DecoyPacket
from arms.controllers.table import trace, trace_decoy
from arms.controllers.trace import OutcomeTrace
from arms.packets import PacketB, PacketP
from harness.arm_check import check_arm
from harness.arm_folder import arm_from_files
from harness.canonical import digest_bytes
from harness.errors import MirrorBroken, PluginError, TokensShown
from harness.mirror import LINE_CHARS, arm_state, length_class
from harness.mirror_audit import audit_packet, shown
from harness.views import Fact, MirrorState, Previous, RoundView
from tests.arms.controlled import CODE, FACTS, GROUPS, TASK, line, previous, view

DIGESTS = {
    "TRACE": "e9a3f3a391ac414b8eb8867d2fc7bdbdae0173a168924ee39b8a17c0129d57ee",
    "TRACE-SHAPE": "f6c195359fac64600e506f60f449ceccb37cf8a023c5a17dfd347d0cb28f2c38",
    "TRACE-DECOY": "926d0dbd67b46eb42dd557891148b5b5c8ca0a0379b2bef2abd56fa37f31ad9b",
    "KERNEL": "4c7978684c706be8897286fca3fe7360c98da0614b8cd3fca265e4d6939f211b",
    "KERNEL-SHAPE": "88e1aecf67b042aeabebf1249f7e550192fdc96d41d240d87ec4c66b7ccc4be9",
    "KERNEL-DECOY": "7bfcae12c655e6d4a6fb99c80551a3887bc89a8b9b12b41b99a7967389b73783",
    "INVERT": "e1fe3799b68e61a3c2a0688a08517fa60426e7629eae266218d0309ec84bb8f8",
    "INVERT-SHAPE": "182f471ed73d58499302c0ae23ce68db6545ffbc47cbe366d4111d6a06fd678a",
    "INVERT-DECOY": "77239e8135e0e0e3cc3a50cd45289d426fcd7e9e3cce526fd30e771fdd69033c",
    "LINUCB": "5823cf87c87494c466b69d7ade43c4176cd1dbd3669211240466a8812d9a7070",
    "LINUCB-SHAPE": "dd7a8ad7f8226677a339a8cf7563637e118012294cdefdc06caac8348edbd9ad",
    "LINUCB-DECOY": "aeb76772319f8e01bf6def84f3b46b2bb3b0d2d9fd5abb4bc4919be9e793e537",
}
EVERY = [arm for group in GROUPS.values() for arm in group]


def scene(name: str, was: Previous | None = None, task: str = TASK) -> tuple[RoundView, RoundView, MirrorState]:
    """A round of a treatment, the same as its mirrors see it, and the state that it publishes."""
    own = view(was or previous(), task=task)
    state = arm_state(GROUPS[name][0], own)
    return own, replace(own, previous=None, mirrored=state), state


@pytest.mark.parametrize("arm", EVERY, ids=lambda arm: arm.name)
def test_controlled_packets_are_frozen(arm: DecoyPacket) -> None:
    """The digest pins every word, every option and the renderer's version: a change of any needs a new arm name."""
    assert digest_bytes(arm.content) == DIGESTS[arm.name]


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("facts", [FACTS, FACTS[1:3], FACTS[:1]], ids=len)
def test_all_three_hold_their_audits(name: str, facts: tuple[Fact, ...]) -> None:
    """The treatment shows its controller's lines; each mirror the same code under as many lines of the same lengths."""
    own, copied, state = scene(name, previous(facts))
    assert state.bullets > 0
    treatment, *mirrors = GROUPS[name]
    prompt = treatment.render(own)
    audit_packet(treatment, own, state, prompt)
    assert shown(prompt, own).block == state.block
    for arm in mirrors:
        text = arm.render(copied)
        audit_packet(arm, copied, state, text)
        told = shown(text, copied)
        assert told.code == CODE.rstrip()
        assert [length_class(one) for one in told.block.split("\n")] == [
            length_class(one) for one in state.block.split("\n")
        ]
        assert told.block != state.block
        assert arm.render(copied) == text


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("length", [40, 100, 200, 260, 550])
def test_lines_of_every_length_have_their_mirrors(name: str, length: int) -> None:
    """However long the lines of a treatment are, a placebo and a decoy of the same length can be had."""
    values = str([-2, *[1] * (length // 3)])
    fact = line(f"add({values}, [])", "[]", observed="None" if length > 500 else values)
    _own, copied, state = scene(name, previous((fact,)))
    assert state.bullets
    assert all(len(one) <= LINE_CHARS for one in state.block.split("\n"))
    for arm in GROUPS[name][1:]:
        audit_packet(arm, copied, state, arm.render(copied))


@pytest.mark.parametrize("name", GROUPS)
def test_where_it_does_not_fire_the_packets_are_ps(name: str) -> None:
    """Byte by byte, in all three arms; and B's where nothing failed."""
    quiet = previous((), code="def add(first, other):\n    return other\n")
    own, copied, state = scene(name, quiet)
    assert not state.block
    assert not GROUPS[name][0].fires(own)
    texts = {GROUPS[name][0].render(own), *(arm.render(copied) for arm in GROUPS[name][1:])}
    assert texts == {PacketP().render(own)}
    for nothing in (None, previous(accepted=True), previous(code=" \n")):
        own = view(nothing)
        copied = replace(own, previous=None, mirrored=arm_state(GROUPS[name][0], own))
        texts = {GROUPS[name][0].render(own), *(arm.render(copied) for arm in GROUPS[name][1:])}
        assert texts == {PacketB().render(own)}


def test_a_decoy_has_the_form_of_the_line_whose_place_it_takes() -> None:
    """An exception stands for an exception, an end for an end; none is about the task, and another seed draws others."""
    _own, copied, state = scene("TRACE")
    lines = shown(trace_decoy().render(copied), copied).block.split("\n")
    words = ["raised", "was ended", "which is", "off by"]
    assert [next(word for word in words if word in one) for one in lines] == [
        next(word for word in words if word in one) for one in state.block.split("\n")
    ]
    assert all("add(" not in one for one in lines)
    assert len(set(lines)) == len(lines)
    seeds = {trace_decoy(seed=seed).render(copied) for seed in ("", "a", "b", "c")}
    assert len(seeds) > 1


@pytest.mark.parametrize("name", ["KERNEL", "INVERT"])
def test_a_decoy_claims_nothing_that_the_treatment_claims(name: str) -> None:
    """A constraint or an assumption that was found in this task is no decoy."""
    _own, copied, state = scene(name)
    decoy = GROUPS[name][2]
    block = shown(decoy.render(copied), copied).block
    assert not [claim for claim in decoy.controller.claims if claim in block and claim in state.block]


@pytest.mark.parametrize("word", ["documented", "whatever", "value", "handled", "letter"])
def test_a_placebo_goes_round_the_words_of_a_task(word: str) -> None:
    """A parameter that is called as a word of a clause takes that clause out, and stops no run."""
    task = f"def add(first, {word}):\n    Add.\n"
    _own, copied, state = scene("TRACE", task=task)
    shape = GROUPS["TRACE"][1]
    audit_packet(shape, copied, state, shape.render(copied))


def test_generic_lines_have_the_shape_and_no_forbidden_word() -> None:
    """Of any length class, in any number; a word of each head can't be gone round, and is left to the audit."""
    shaped = ["- x" * n for n in (1, 40, 90, 200, 400)]
    lines = generic_lines(shaped, {"whatever", "in"})
    assert [length_class(one) for one in lines] == [length_class(one) for one in shaped]
    assert not [one for one in lines if "whatever" in one]
    everything = {word for clause in CLAUSES.values() for word in clause.split()}
    assert len(generic_lines(shaped, everything)) == len(shaped)


DOCTORED = {
    "a treatment of another value": (0, "off by -4", "off by -5", MirrorBroken),
    "a treatment without its code": (0, "range(top)", "range(pot)", MirrorBroken),
    "a placebo with a word of the task": (1, "documented kind", "kind of add", TokensShown),
    "a placebo with a literal of a fact": (1, "documented kind", "kind of lemon", TokensShown),
    "a placebo of another length": (1, "documented kind", "documented kind, " + "and " * 40, MirrorBroken),
    "a placebo of another code": (1, "range(top)", "range(pot)", MirrorBroken),
    "a decoy of this task": (2, "- stow(", "- add(", TokensShown),
    "a decoy with a text of this task": (2, "- stow(", "- lemon(", TokensShown),
    "a decoy of another length": (2, "- stow([", "- stow([" + "0, " * 60, MirrorBroken),
    "a decoy of another code": (2, "range(top)", "range(pot)", MirrorBroken),
}


@pytest.mark.parametrize("what", DOCTORED)
def test_a_doctored_packet_is_stopped(what: str) -> None:
    """One change, and the audit of the packet that has it says no."""
    which, old, new, error = DOCTORED[what]
    own, copied, state = scene("TRACE")
    arm, seen = GROUPS["TRACE"][which], (own, copied, copied)[which]
    prompt = arm.render(seen)
    assert old in prompt
    with pytest.raises(error):
        audit_packet(arm, seen, state, prompt.replace(old, new, 1))


def test_what_a_candidate_says_stays_on_its_line() -> None:
    """Fences, newlines, bullets and direction marks in values and exceptions end no block and open none."""
    bad = "```\n- x\n\u202e~~~~"
    facts = (line("add(1)", "2", raised=f"ValueError: {bad}"), line("add(2)", "2", observed=repr(bad)))
    own, _copied, state = scene("TRACE", previous(facts, code=f"x = '''{bad}'''\n````\n"))
    prompt = trace().render(own)
    audit_packet(trace(), own, state, prompt)
    assert state.bullets == 2
    assert "\u202e" not in state.block
    assert prompt.rstrip().endswith(json.loads(trace().content)["templates"]["answer"])


def test_a_line_that_would_not_stay_whole_is_dropped() -> None:
    """An unprintable call, or a line that is too long, is counted and never cut."""
    facts = (line("add(\n1)", "2", observed="3"), line("add(1)", "2" * 700, observed="9" * 700), *FACTS[:1])
    state = arm_state(trace(), view(previous(facts)))
    assert (state.bullets, state.dropped) == (1, 2)


@pytest.mark.parametrize("seed", [7, None, "a\nb"])
def test_a_seed_is_a_text(seed: object) -> None:
    """Anything else is refused."""
    with pytest.raises(PluginError, match="seed"):
        DecoyPacket("TRACE", OutcomeTrace(), seed)


def test_foreign_solutions_are_of_no_real_task() -> None:
    """Each is one violated assertion of a made-up function, and its code is as Python has it."""
    names = {one.facts[0].call.partition("(")[0] for one in foreign() if one.unbuilt is None}
    assert names == {"stow", "mow", "knit", "sail"}
    for one in foreign():
        compile(one.code, "foreign", "exec")


@pytest.mark.parametrize("text", ["x", "x" * 60, "x" * 150])
def test_a_solution_that_can_not_be_run_has_its_mirrors(text: str) -> None:
    """A decoy of it is another's exception, of the same length."""
    was = previous(())
    _own, copied, state = scene("TRACE", replace(was, reading=replace(was.reading, unbuilt=f"SyntaxError: {text}")))
    assert state.bullets == 1
    for arm in GROUPS["TRACE"][1:]:
        audit_packet(arm, copied, state, arm.render(copied))
    block = shown(GROUPS["TRACE"][2].render(copied), copied).block
    assert block.startswith("- the solution does not run: it raises")
    assert text not in block.split()


MINE = b"""
from arms.controllers.packet import ControlledPacket


class Counting:
    name, settings, claims, lacks = "counting", {}, frozenset(), None
    templates = {"line": "- there are {count} violated assertions"}

    def lines(self, given):
        return [self.templates["line"].format(count=len(given.facts))] if given.facts else None


class Mine(ControlledPacket):
    def __init__(self, files):
        super().__init__("mine", Counting())
"""


def test_a_folder_brings_a_controller_of_its_own() -> None:
    """It publishes its lines, fires where it says, and holds the audit as a registered one does."""
    card = b'name = "mine"\nkind = "packet"\nrenderer = "packet:Mine"\n'
    arm = arm_from_files("mine", {"arm.toml": card, "packet.py": MINE})
    own = view(previous())
    state = arm_state(arm, own)
    assert state.block == "- there are 5 violated assertions"
    audit_packet(arm, own, state, arm.render(own))
    assert (arm.fires(own), arm.fires(view(previous(())))) == (True, False)
    assert [finding for finding in check_arm(arm) if finding.level == "error"] == []
