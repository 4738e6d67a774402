"""Controllers: what each says, where it does not fire, what it refuses, and that no candidate can break one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from arms.controllers.inversion import ASSUMPTIONS, AssumptionInversion
from arms.controllers.kernel import CONSTRAINTS, ConstraintKernel
from arms.controllers.linucb import LinUCB
from arms.controllers.plain import PlainFacts
from arms.controllers.port import Controller
from arms.controllers.trace import WEIGHTS, OutcomeTrace, outcome
from harness.errors import PluginError
from harness.mirror import line_block
from harness.views import Fact
from tests.arms.controlled import CORPUS, FACTS, corpus, given, line

ALL: list[Controller] = [
    PlainFacts(),
    OutcomeTrace(),
    ConstraintKernel(),
    AssumptionInversion(CORPUS),
    LinUCB(corpus=CORPUS),
]


@pytest.mark.parametrize(
    ("fact", "kind", "said"),
    [
        (
            line("f(1)", "2", raised="KeyError: 'a'"),
            "exception",
            "f(1) raised KeyError with the text \"'a'\"; expected 2",
        ),
        (line("f(1)", "2", raised="a\nb: `"), "exception", "f(1) raised an exception with the text '`'; expected 2"),
        (line("f(1)", "2", ended="TIMEOUT"), "ended", "f(1) was ended, out of time; expected 2"),
        (
            line("f(1)", "2", observed="'2'"),
            "type",
            "f(1) gave '2', which is of type str; expected 2, which is of type int",
        ),
        (line("f(1)", "True", observed="1"), "type", "of type bool"),
        (line("f(1)", "[1]", observed="[1, 2]"), "length", "of length 2; expected [1], of length 1"),
        (line("f(1)", "4", observed="-1"), "far", "f(1) gave -1; expected 4; it is off by -5"),
        (line("f(1)", "40", observed="41.5"), "near", "it is off by 1.5"),
        (line("f(1)", "'abc'", observed="'abd'"), "members", "the first that differs has index 2"),
        (line("f(1)", "{1, 2}", observed="{1, 3}"), "members", "1 members differ"),
        (line("f(1)", "{1: 2}", observed="{1: 3}"), "members", "1 members differ"),
        (line("f(1)", "float('nan')", observed="1.0"), "other", "f(1) gave 1.0; expected float('nan')"),
        (line("f(1)", "frozenset({1})", observed="frozenset({2})"), "members", "1 members differ"),
        (line("f(1)", "2", observed="<what>"), "other", "f(1) gave <what>; expected 2"),
        (line("f(1)", "2", observed="[" * 500), "other", "expected 2"),
        (line("f(1)", "2", observed="..."), "other", "f(1) gave ...; expected 2"),
        (line("f(1)", "1", observed="1" * 500), "type", ""),
    ],
)
def test_an_outcome_is_told_by_its_kind(fact: Fact, kind: str, said: str) -> None:
    """The exception, the end, and the first way in which two values differ; what can't be read is shown as it is."""
    told = outcome(fact)
    assert told is not None
    if fact.observed != "1" * 500:  # an integer that no float holds is of its expected type
        assert told.kind == kind
    assert said in told.line


def test_the_worst_outcome_comes_first() -> None:
    """By the weights; of one kind what is further off, then the order of the tests."""
    facts = (
        line("f(1)", "10", observed="11"),
        line("f(2)", "10", observed="90"),
        line("f(3)", "10", observed="900"),
        line("f(4)", "10", raised="ValueError: x"),
        line("f(5)", "10", observed="11"),
    )
    lines = OutcomeTrace().lines(given(*facts))
    assert lines is not None
    assert [text[4] for text in lines] == ["4", "3", "2", "1", "5"]
    near = OutcomeTrace({"near": 9, "exception": 0}).lines(given(*facts))
    assert near is not None
    assert [text[4] for text in near] == ["1", "5", "3", "2"]


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("SyntaxError: a `b`\n- c", "raises SyntaxError with the text 'a `b`\\n- c'"),
        ("Key Error: x", "raises an exception with the text 'x'"),
        ("StopIteration", "raises StopIteration with the text ''"),
    ],
)
def test_a_solution_that_can_not_be_run_is_traced(raised: str, said: str) -> None:
    """Its build's exception is an outcome, the first of its weight; with a weight of 0 it is none."""
    lines = OutcomeTrace().lines(given(unbuilt=raised))
    assert lines == [f"- the solution does not run: it {said}"]
    assert OutcomeTrace({"exception": 0}).lines(given(unbuilt=raised)) is None
    assert ConstraintKernel().lines(given(unbuilt=raised)) is None


@pytest.mark.parametrize("facts", [(), (FACTS[-1],)])
def test_a_trace_without_an_outcome_does_not_fire(facts: tuple[Fact, ...]) -> None:
    """Where nothing says what came instead there is nothing to trace; nor where all of it has no weight."""
    assert OutcomeTrace().lines(given(*facts)) is None
    assert OutcomeTrace(dict.fromkeys(WEIGHTS, 0) | {"ended": 1}).lines(given(FACTS[0])) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1, True, "8", None, 2e6])
def test_a_weight_is_a_finite_number(value: Any) -> None:
    """Whatever else is refused with what it is."""
    with pytest.raises(PluginError, match="near"):
        OutcomeTrace({"near": value})


def test_weights_that_leave_nothing_to_say_are_refused() -> None:
    """With all of them 0 an arm would be P by another name; with one over 0 it is that of its kind."""
    none = dict.fromkeys(WEIGHTS, 0)
    for make in (OutcomeTrace, lambda weights: LinUCB(corpus=CORPUS, weights=weights)):
        with pytest.raises(PluginError, match="weights are all 0, so that it never fires"):
            make(none)
    assert OutcomeTrace(none | {"near": 1}).settings["weights"]["near"] == 1


@pytest.mark.parametrize("weights", [{"nearer": 1}, [1], "near"])
def test_weights_are_of_known_kinds(weights: Any) -> None:
    """An unknown one is refused with the nearest known, and what is no table too."""
    with pytest.raises(PluginError, match="near"):
        OutcomeTrace(weights)


def test_a_kernel_is_the_smallest_set() -> None:
    """One constraint that tells both apart is chosen over two that tell apart one each, and the earliest of equals."""
    both = (line("f([3, 1])", "[1, 3]", observed="[3, 1, 1]"), line("f([2, 1])", "[1, 2]", observed="[2, 1, 2]"))
    assert ConstraintKernel().lines(given(*both)) == [
        f"- {CONSTRAINTS['as long'][0]}, as with [1, 3] for f([3, 1]); there it gave [3, 1, 1]"
    ]
    two = (line("f([1])", "[1]", observed="[1, 1]"), line("f([2, 1])", "[1, 2]", observed="[2, 1]"))
    lines = ConstraintKernel().lines(given(*two))
    assert lines is not None
    assert [text.partition(",")[0] for text in lines] == [
        f"- {CONSTRAINTS['as long'][0]}", f"- {CONSTRAINTS['rising'][0]}"
    ]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CONSTRAINTS if name not in ("number", "something")])
def test_each_constraint_can_be_the_kernel(name: str) -> None:
    """There is an assertion that it alone, or it first, tells apart."""
    cases = {
        "truth value": ("f(1)", "True", "'x'"),
        "whole number": ("f(1)", "5", "None"),
        "text": ("f(1)", "'a'", "7"),
        "list": ("f(1)", "[1]", "(1,)"),
        "tuple": ("f(1)", "(1,)", "[1]"),
        "set": ("f(1)", "{1}", "[1]"),
        "dict": ("f(1)", "{1: 2}", "[1]"),
        "as long": ("f([1, 2])", "[1, 2]", "[1]"),
        "no longer": ("f([1, 2])", "[1]", "[1, 1, 1]"),
        "filled": ("f(1)", "[1]", "[]"),
        "members": ("f([1, 2])", "[1]", "[3]"),
        "member": ("f([1, 2])", "1", "5"),
        "rising": ("f(1)", "[1, 2]", "[2, 1]"),
        "falling": ("f(1)", "[2, 1]", "[1, 2]"),
        "unlike": ("f(1)", "[1, 3, 2]", "[1, 3, 3]"),
        "not negative": ("f()", "0", "-3"),
        "positive": ("f()", "1", "0"),
        "integral": ("f()", "3.0", "3.5"),
        "at most": ("f(4)", "2", "9"),
        "at least": ("f([2, 4])", "3", "1"),
    }
    call, expected, observed = cases[name]
    lines = ConstraintKernel().lines(given(line(call, expected, observed=observed)))
    assert lines is not None
    assert lines[0].startswith(f"- {CONSTRAINTS[name][0]},")


@pytest.mark.parametrize(
    "facts", [(), (FACTS[-1],), (line("f()", "5", observed="6"),), (line("f()", "<x>", observed="1"),)]
)
def test_a_kernel_without_a_constraint_does_not_fire(facts: tuple[Fact, ...]) -> None:
    """Nothing told, or nothing that tells the wrong value from the expected one."""
    assert ConstraintKernel().lines(given(*facts)) is None


SHOWN = {
    "non-empty": ("def f(x):\n    return x[0]\n", "f([])"),
    "sorted": ("def f(x):\n    return [x[i + 1] for i in range(3)]\n", "f([3, 1])"),
    "whole": ("def f(x):\n    return x // 2\n", "f(1.5)"),
    "positive": ("def f(x):\n    while x:\n        x -= 1\n", "f(-1)"),
    "unique": ("def f(x):\n    return set(x)\n", "f([1, 1])"),
    "one-type": ("def f(x):\n    return sorted(x)\n", "f([1, 'a'])"),
    "lower-case": ("def f(x):\n    return x in 'aeiou'\n", "f('A')"),
}


@pytest.mark.parametrize("name", ASSUMPTIONS)
def test_an_assumption_is_inverted_where_it_is_made_and_broken(name: str) -> None:
    """Not where the code does not make it, nor where the arguments are as it takes them to be, nor without arguments."""
    code, call = SHOWN[name]
    inverting = AssumptionInversion(corpus([name]))
    assert inverting.lines(given(line(call, "1"), code=code)) == [
        f"- the code takes it that {name} is so; but it may be other than {name}: {call} must equal 1"
    ]
    assert inverting.lines(given(line(call, "1"), code="def f(x):\n    return x\n")) is None
    for innocent in ("f([1, 2])" if name != "whole" else "f(3)", "f()", "set(f([]))", "f(x=[])", "f(y)", "("):
        assert inverting.lines(given(line(innocent, "1"), code=code)) is None


def test_an_inversion_needs_its_corpus_and_code() -> None:
    """Without a corpus it says what it lacks; on code that can't be parsed it does not fire."""
    assert "corpus" in str(AssumptionInversion().lacks)
    assert AssumptionInversion(CORPUS).lacks is None
    assert AssumptionInversion().lines(given(*FACTS)) is None
    assert AssumptionInversion(CORPUS).lines(given(*FACTS, code="def f(:")) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "schema"),
        (corpus(schema="other"), "proctor-assumptions/1"),
        (corpus(more=1), "no others"),
        (corpus([]), "at least one"),
        (corpus(["non-emty"]), "Did you mean 'non-empty'"),
        (corpus(["sorted", "sorted"]), "twice"),
        (corpus(assumptions=[{"name": "sorted", "holds": "x"}]), "no others"),
        *((corpus(assumptions=[{"name": "sorted", "holds": bad, "inverted": "x"}]), "one line") for bad in
          ("", " x", "a\nb", "it isn't", "x" * 161, "\u202e", 7, "{call}")),
    ],
)  # fmt: skip
def test_a_corpus_is_what_it_should_be(data: bytes, words: str) -> None:
    """Anything else is refused with what was expected."""
    with pytest.raises(PluginError, match=words):
        AssumptionInversion(data)


HOSTILE_CODE = {
    "unparsable": "def f(:\n\0",
    "huge": "x = 1\n" * 200_000,
    "deep": "x = " + "(" * 5000 + ")" * 5000,
    "deep operators": "x = " + "-" * 90_000 + "1",
    "attributes": "x" + ".a" * 40_000,
    "bidi": "def f(x):\n    return '\u202e\u2066'\n",
    "surrogate": "x = '\udc80'",
    "escapes": "x = '\\d'\nassert (1, 2)\n",
}
HOSTILE_TEXT = st.one_of(
    st.text(max_size=80),
    st.sampled_from(["```", "\n- x", "~~~\n```", "{call}", "{0}", "%s", "\u202e", "\x00", "f(", "[" * 300, "'" * 9, "1e999",
                     "9" * 400, "-" * 300 + "1", "{[]: 1}", "set([[]])", "f(*[1])", "f(**{})", "None", "[1, 'a', None]"]),
)  # fmt: skip
HOSTILE_FACTS = st.builds(
    lambda call, expected, how, text: Fact(**{"call": call, "expected": expected, **({how: text} if how else {})}),
    st.one_of(HOSTILE_TEXT, st.sampled_from(["f([])", "f([3, 1])", "f(-1, 'A')"])),
    HOSTILE_TEXT,
    st.sampled_from(["", "observed", "raised", "ended"]),
    HOSTILE_TEXT,
)


@pytest.mark.parametrize("controller", ALL, ids=lambda one: one.name)
@pytest.mark.parametrize("what", HOSTILE_CODE)
def test_hostile_code_breaks_no_controller(controller: Controller, what: str) -> None:
    """Whatever the code is, a controller answers, and the same twice."""
    hostile = given(*FACTS, code=HOSTILE_CODE[what])
    assert controller.lines(hostile) == controller.lines(hostile)


@pytest.mark.parametrize("controller", ALL, ids=lambda one: one.name)
@settings(max_examples=25, deadline=None)
@drawn(facts=st.lists(HOSTILE_FACTS, max_size=6))
def test_hostile_facts_break_no_controller(controller: Controller, facts: list[Fact]) -> None:
    """Values and exceptions are the candidate's: each line that is shown is one bullet, and nothing leaves it."""
    lines = controller.lines(given(*facts))
    assert lines == controller.lines(given(*facts))
    assert lines is None or 0 < len(lines) <= 6
    block = line_block(lines or ())
    assert block.text == "" or all(text.startswith("- ") and text.isprintable() for text in block.text.split("\n"))


@pytest.mark.parametrize("controller", ALL, ids=lambda one: one.name)
def test_what_a_controller_is_made_of_is_json(controller: Controller) -> None:
    """Its settings are pinned as canonical JSON, with the digest of its corpus and never the corpus itself."""
    assert json.loads(json.dumps(dict(controller.settings))) == dict(controller.settings)
    assert controller.claims <= set(controller.templates.values())
