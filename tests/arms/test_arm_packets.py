"""Packets: pinned templates, one order of parts, no facts, and a fence that code can't break."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arms.packets import RENDERER, PacketB, PacketBI, PacketP, fenced
from harness.canonical import digest_bytes
from harness.views import Fact, Previous, PublicReading, RoundView

DIGESTS = {
    "BI": "b9fa2e7e7fa0ce2d0131a96ce9d6956da5250840b53574686827ae77e7fe35b4",
    "B": "9821de07537b2e81f9e2c00ae4e51463e907adc40b533051c5ecf59e55c30bc2",
    "P": "33d20231e6a95872294425b0a01c1236896e6eda41896d3602aaa3fee9f12842",
}
READING = PublicReading(
    reading="FAIL", accepted=False, passed=1, total=3, facts=(Fact(call="add(1, 2)", expected="three_exactly"),)
)


def view(number=1, code=None):
    """A round, with the candidate of an earlier one if there is any."""
    previous = None if code is None else Previous(code=code, reading=READING)
    return RoundView(instruction="TASK TEXT", round=number, rounds=4, previous=previous)


@pytest.mark.parametrize("packet", [PacketB(), PacketBI(), PacketP()])
def test_packets_are_frozen(packet):
    """The digest pins every template and the renderer's version: a change of either needs a new arm name."""
    assert digest_bytes(packet.content) == DIGESTS[packet.name]
    assert json.loads(packet.content)["renderer"] == RENDERER


@pytest.mark.parametrize("packet", [PacketB(), PacketBI(), PacketP()])
def test_every_word_of_a_prompt_is_pinned(packet):
    """A prompt without the task's text and the code consists of pinned templates and fences alone."""
    rest = packet.render(view(2, "CODE")).replace("TASK TEXT", "").replace("CODE", "").replace("```", "")
    for template in sorted(json.loads(packet.content)["templates"].values(), key=len, reverse=True):
        rest = rest.replace(template, "")
    assert rest.strip() == ""


def test_b_is_the_same_every_round():
    """B shows the task only, whatever came before."""
    prompts = {PacketB().render(view(number, code)) for number, code in [(1, None), (2, "x = 1"), (4, "y = 2")]}
    assert len(prompts) == 1
    assert "x = 1" not in prompts.pop()


def test_p_begins_as_b():
    """Without an earlier solution P and BI are B, byte by byte, so that the arms differ in nothing else."""
    assert PacketP().render(view(1)) == PacketBI().render(view(1)) == PacketB().render(view(1))


def test_p_begins_from_a_pool():
    """A candidate that is older than the first round is a previous solution in the first round already."""
    assert PacketP().render(view(1, "x = 1")) == PacketP().render(view(2, "x = 1"))
    assert "x = 1" in PacketP().render(view(1, "x = 1"))


def test_bi_is_p_without_the_solution():
    """The instruction is P's own, so that P and BI differ in the code alone; without a failure there is none."""
    code = "def f():\n    return 1"
    words = json.loads(PacketP().content)["templates"]
    shown = f"{words['previous']}\n\n{fenced(code, 'python')}\n\n"
    assert PacketP().render(view(2, code)).replace(shown, "") == PacketBI().render(view(2, code))
    assert PacketBI().render(view(2, " ")) == PacketB().render(view(2))


@pytest.mark.parametrize("code", [None, "", " \n\t"])
def test_p_without_any_code_is_b(code):
    """No earlier reply had code: there is nothing to say that it failed."""
    assert PacketP().render(view(3, code)) == PacketB().render(view(3))


def test_p_never_says_that_an_accepted_solution_failed():
    """A seat that goes on after a pass is shown B's packet: the arm states nothing that is not so."""
    passed = PublicReading(reading="PASS", accepted=True, passed=3, total=3)
    later = RoundView(instruction="TASK TEXT", round=2, rounds=4, previous=Previous(code="x = 1", reading=passed))
    assert PacketP().render(later) == PacketBI().render(later) == PacketB().render(later)


def test_the_parts_of_p_stand_in_order():
    """Opening, task, previous solution, failure instruction, answer format."""
    words = json.loads(PacketP().content)["templates"]
    prompt = PacketP().render(view(2, "def f():\n    return 1\n"))
    marks = [words["opening"], "TASK TEXT", words["previous"], "def f():", words["failure"], words["answer"]]
    places = [prompt.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "```python\ndef f():\n    return 1\n```" in prompt


@pytest.mark.parametrize("packet", [PacketB(), PacketBI(), PacketP()])
def test_no_packet_shows_facts(packet):
    """Calls, expected values, counts and classes of the public tests stay out."""
    prompt = packet.render(view(2, "x = 1"))
    assert not [mark for mark in ("add(1, 2)", "three_exactly", "FAIL", "1 of 3") if mark in prompt]


def test_packets_run_in_rounds_only():
    """A packet asks for one code block, which is the `oneshot` seat's own contract."""
    assert PacketB().seats == PacketBI().seats == PacketP().seats == frozenset({"oneshot"})


@given(st.text(alphabet="`~ab\n\r ", max_size=80))
def test_code_never_closes_its_fence(code):
    """No line of the code could end the block, for any code: the only closing fence is the last line."""
    first, *inside, last = fenced(code, "python").split("\n")
    mark = re.match(r"[`~]+", first).group()
    assert last == mark
    assert all(mark not in line for line in inside)


def test_a_hostile_fence_stays_short():
    """Code full of backticks is fenced with tildes, so the fence doesn't grow with it."""
    assert fenced("`" * 10_000, "python").startswith("~~~python\n")
