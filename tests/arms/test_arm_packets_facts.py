"""Packets with facts: frozen words, one order, facts whole or not at all, and nothing shown where nothing failed."""

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arms.packets import PacketB
from arms.packets_facts import GENERIC, PacketCFSF, PacketGRShape, PacketPad, PacketPFacts, PacketTC
from arms.padding import padding
from harness.canonical import digest_bytes
from harness.mirror import FACT_CHARS, MOST_FACTS, fact_block, mirror_state
from harness.quoting import fenced
from harness.views import Fact, Previous, PublicReading, RoundView

DIGESTS = {
    "TC": "2748bfb7222e1e7aa56e8de65b03e8d6c2a1fb5bc4fbc146233ca49caf9f34df",
    "CF-SF": "dad835f30d9406ac7731b4d28fcf5864989d866b850ce47d9b808b441418aa44",
    "P-FACTS": "38144da294af282836924e9f396d623d9f981db00cdad3190ec5bf5acfcd2108",
    "GR-SHAPE": "fad39f661647b5580afba5fec2e0eb0ba655569455013a98e6078bdd7c92cfe9",
    "PAD": "a8c39ec6fd980dc21728cf865335698de808829e471d71ea67857b63a80c9a6e",
}
ALL = [PacketTC(), PacketCFSF(), PacketPFacts(), PacketGRShape(), PacketPad()]
CODE = "def add(a, b):\n    marked_5f = a - b\n    return marked_5f"
FACTS = (Fact(call="add(1, 2)", expected="3"), Fact(call="add('a', 'b')", expected="'ab'"))


def previous(facts=FACTS, *, accepted=False, code=CODE):
    """An earlier candidate and what the public tests said."""
    word = "PASS" if accepted else "FAIL"
    return Previous(code=code, reading=PublicReading(reading=word, accepted=accepted, passed=1, total=4, facts=facts))


def view(was=None, number=2):
    """A round as an arm and its mirrors see it."""
    return RoundView(
        instruction="TASK TEXT", round=number, rounds=4, previous=was, mirrored=mirror_state("TC", number, was)
    )


@pytest.mark.parametrize("packet", ALL, ids=lambda packet: packet.name)
def test_packets_are_frozen(packet):
    """The digest pins every template and the renderer's version: a change of either needs a new arm name."""
    assert digest_bytes(packet.content) == DIGESTS[packet.name]


@pytest.mark.parametrize("packet", ALL, ids=lambda packet: packet.name)
def test_every_word_of_a_prompt_is_pinned(packet):
    """A prompt without the task, the code and the facts consists of pinned templates and fences alone."""
    words = json.loads(packet.content)["templates"]
    rest = packet.render(view(previous())).replace("TASK TEXT", "").replace(CODE, "")
    for fact in FACTS:
        rest = rest.replace(words.get("fact", "no facts").format(call=fact.call, expected=fact.expected), "")
    for template in sorted(words.values(), key=len, reverse=True):
        rest = rest.replace(template, "")
    assert rest.replace("```", "").strip() == ""


def test_the_parts_stand_in_one_order():
    """Opening, task, previous solution, requirements, failure instruction, answer format, in whichever packet."""
    keys = ["opening", "", "previous", "beside", "requirements", "failure", "answer"]
    for packet in ALL:
        words = json.loads(packet.content)["templates"] | {"": "TASK TEXT"}
        prompt = packet.render(view(previous()))
        places = [prompt.index(words[key]) for key in keys if key in words]
        assert places == sorted(places)


def test_what_each_packet_shows():
    """TC: facts alone. CF-SF and P-FACTS: code and facts. GR-SHAPE: code. PAD: facts."""
    shown = {}
    for packet in ALL:
        prompt = packet.render(view(previous()))
        shown[packet.name] = [fenced(CODE, "python") in prompt, fact_block(FACTS).text in prompt]
    assert shown == {
        "TC": [False, True],
        "CF-SF": [True, True],
        "P-FACTS": [True, True],
        "GR-SHAPE": [True, False],
        "PAD": [False, True],
    }


def test_facts_are_the_literal_assertions():
    """One line each: the call as it stands, and the value that was expected; what came instead is not told."""
    assert fact_block(FACTS).text == "- add(1, 2) must equal 3\n- add('a', 'b') must equal 'ab'"


@given(st.integers(0, MOST_FACTS + 3))
def test_as_many_generic_bullets_as_facts(number):
    """GR-SHAPE has a bullet for each fact that is shown, and none for none."""
    was = previous(tuple(Fact(call=f"add({n}, 1)", expected=str(n + 1)) for n in range(number)))
    facts, generic = (packet.render(view(was)) for packet in (PacketCFSF(), PacketGRShape()))
    bullets = [[line for line in text.splitlines() if line.startswith("- ")] for text in (facts, generic)]
    assert len(bullets[0]) == min(number, MOST_FACTS)
    assert bullets[1] == list(GENERIC[: len(bullets[0])])
    assert ("requirements" in generic) == (number > 0)


@pytest.mark.parametrize("was", [None, previous(code=" \n"), previous((), accepted=True), previous(accepted=True)])
def test_nothing_violated_shows_nothing(was):
    """Where no public assertion is violated the fact block is empty and every packet is B's: no bullet, no code."""
    state = mirror_state("TC", 2, was)
    assert (state.block, state.bullets, state.failed) == ("", 0, False)
    assert {packet.render(view(was)) for packet in ALL} == {PacketB().render(view())}


def test_a_failure_without_a_fact_shows_no_bullet():
    """The candidate crashed, say, and no assertion can be written: the code is shown, and no requirement is."""
    was = previous(())
    assert mirror_state("TC", 2, was).block == ""
    for packet in ALL:
        prompt = packet.render(view(was))
        assert "requirements" not in prompt
        assert "\n- " not in prompt
    assert PacketCFSF().render(view(was)) == PacketGRShape().render(view(was))
    assert PacketTC().render(view(was)) == PacketB().render(view())


@pytest.mark.parametrize(
    "bad", [Fact(call="f(" + "1" * FACT_CHARS + ")", expected="1"), Fact(call="f(\n1)", expected="1")]
)
def test_a_fact_is_dropped_whole(bad):
    """An over-long fact, or one that leaves its line, is counted and never cut; the next one takes its place."""
    block = fact_block([bad, *FACTS])
    assert (block.text, block.dropped) == (fact_block(FACTS).text, 1)
    assert fact_block([FACTS[0]] * (MOST_FACTS + 2)).dropped == 0


def test_a_fact_just_fits():
    """The limit is on call and value together, and is itself allowed."""
    call = "f(" + "1" * (FACT_CHARS - 4) + ")"
    assert fact_block([Fact(call=call, expected="2")]).text == f"- {call} must equal 2"


@given(st.integers(1, 3000))
def test_padding_has_the_length_asked_for(length):
    """To the character, and Python parses it, so that PAD and CF-SF differ in nothing that has a size."""
    text = padding(length)
    assert len(text) == len(text.rstrip()) == length
    ast.parse(text)


def test_pad_is_as_long_as_the_code():
    """The padding takes the code's place, character for character, and names nothing of the task."""
    words = json.loads(PacketPad().content)["templates"]
    for code in (CODE, CODE * 9, "x"):
        was = previous(code=code)
        with_code = PacketCFSF().render(view(was)).replace(PacketCFSF().words["previous"], words["beside"])
        padded = PacketPad().render(view(was))
        assert len(padded) == len(with_code)
        assert "add" not in padded.replace(fact_block(FACTS).text, "")
