"""What `coqchk` and `Print Assumptions` of Coq 8.16.1 print, read strictly."""

from __future__ import annotations

import pytest

from referees.proof_assumptions import AnswerError, read_assumptions
from referees.proof_coqchk import MisplacedError, OutputError, read_coqchk

HEAD = """\
[intern /workspace/Proof.vo ...
 done]

Ordered list:
  Coq.Init.Prelude
  Proof
  Proctor_1

Admitting library: Coq.Init.Prelude
Admitting library: Statement
"""
PROOF = (
    "Checking library: Proof\n  checking module: Proof\n  checking cst:Proof.main\n  checking module type: Proof.S\n"
)
CHECK = "Checking library: Proctor_1\n  checking module: Proctor_1\n  checking cst:Proctor_1.goal_0\n"
DONE = "Modules were successfully checked\n"
SUMMARY = """\

CONTEXT SUMMARY
===============

* Theory: Set is predicative
  
* Axioms: <none>
  
* Constants/Inductives relying on type-in-type: <none>
  
* Constants/Inductives relying on unsafe (co)fixpoints: <none>
  
* Inductives whose positivity is assumed: <none>
  
"""  # noqa: W293 - as it is printed
WHOLE = HEAD + PROOF + CHECK + DONE + SUMMARY
BOTH = ["Proof", "Proctor_1"]


def test_a_whole_report() -> None:
    """Names by module, no axiom, nothing unsafe."""
    found = read_coqchk(WHOLE, BOTH)
    assert found.names["Proctor_1"] == {"Proctor_1", "Proctor_1.goal_0"}
    assert found.names["Proof"] == {"Proof", "Proof.main", "Proof.S"}
    assert (found.axioms, found.unsafe) == ((), ())


def test_a_name_with_a_blank_that_does_not_break() -> None:
    """It is a letter to Rocq: a file that has it can be read."""
    assert "Proof.a\u00a0b" in read_coqchk(WHOLE.replace("Proof.main", "Proof.a\u00a0b"), BOTH).names["Proof"]


def test_axioms_and_what_is_unsafe() -> None:
    """Every entry of the summary, each with what it relies on."""
    text = WHOLE.replace("Axioms: <none>", "Axioms:\n    Proof.a\n    Coq.Logic.Classical_Prop.classic")
    text = text.replace("unsafe (co)fixpoints: <none>", "unsafe (co)fixpoints:\n    Proof.f")
    found = read_coqchk(text.replace("Set is predicative", "Set is impredicative"), BOTH)
    assert found.axioms == ("Proof.a", "Coq.Logic.Classical_Prop.classic")
    assert found.unsafe == (
        "Theory: Set is impredicative",
        "Proof.f (Constants/Inductives relying on unsafe (co)fixpoints)",
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (DONE, ""),
        (DONE, DONE + DONE),
        (DONE, f"  checking cst:Proctor_1.x y\n{DONE}"),
        (DONE, f"what is this\n{DONE}"),
        (CHECK, ""),
        (CHECK, CHECK + CHECK),
        (CHECK, f"{CHECK}Checking library: Other\n  checking module: Other\n"),
        (PROOF, f"Admitting library: Proof\n{PROOF[24:]}"),
        ("  checking module: Proof\n", ""),
        ("CONTEXT SUMMARY", "CONTEXT"),
        ("* Axioms: <none>\n  \n", ""),
        ("* Axioms: <none>", "* Axioms:\n    a b"),
        ("* Axioms: <none>", "* Axioms:\nProof.a"),
        ("* Axioms: <none>", "* Axioms: <none>\n  \n* Rewrite rules: <none>"),
        ("* Theory: Set", "* Theory Set"),
        (SUMMARY, ""),
    ],
)
def test_what_is_not_known_is_not_read(old: str, new: str) -> None:
    """Words doubled, missing, unknown or out of place."""
    assert old in WHOLE
    with pytest.raises(OutputError):
        read_coqchk(WHOLE.replace(old, new, 1), BOTH)


@pytest.mark.parametrize("name", ["Statement.asked", "Proofs.main", "Coq.Init.Logic.False"])
def test_a_declaration_under_another_s_name_is_told_apart(name: str) -> None:
    """A file of one module that declares something in another."""
    with pytest.raises(MisplacedError, match=f"the file of Proof declares {name}"):
        read_coqchk(WHOLE.replace("checking cst:Proof.main", f"checking cst:{name}"), BOTH)


CONTEXT = ["Coq.Logic.Classical_Prop.classic", "Coq.Logic.FunctionalExtensionality.functional_extensionality_dep"]
CLOSED = "Closed under the global context\n"
CLASSIC = """\
Axioms:
Classical_Prop.classic : forall P : Prop, P \\/ ~ P
FunctionalExtensionality.functional_extensionality_dep
  : forall (A : Type) (B : A -> Type) (f g : forall x : A, B x), (forall x : A, f x = g x) -> f = g
"""


def answer(*parts: str) -> str:
    """The output of a question about goals, with the line that ends it."""
    lines = [f"n0 goal_{number}\n{part}" for number, part in enumerate(parts)]
    return "".join([*lines, "n0 end\n"])


def test_assumptions_of_each_goal_together() -> None:
    """None for what is closed; else the axioms by their full names."""
    assert read_assumptions(answer(CLOSED), ["goal_0"], "n0", CONTEXT) == frozenset()
    assert read_assumptions(answer(CLOSED, CLASSIC), ["goal_0", "goal_1"], "n0", CONTEXT) == frozenset(CONTEXT)


def test_a_flag_of_the_theory_is_no_axiom_that_a_card_could_list() -> None:
    """What relies on one is told in the words of the assistant."""
    said = "Axioms:\nProof.same relies on definitional UIP.\nProof.f is assumed to be guarded.\n"
    assert read_assumptions(answer(said), ["goal_0"], "n0", CONTEXT) == {
        "Proof.same relies on definitional UIP.",
        "Proof.f is assumed to be guarded.",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        answer(),
        answer(CLOSED, CLOSED),
        answer(CLOSED).replace("n0 end\n", ""),
        answer(CLOSED).replace("n0", "n1"),
        answer(CLOSED + "and more\n"),
        answer("Axioms:\nunheard_of : False\n"),
        answer("Section Variables:\na : nat\n"),
    ],
)
def test_no_answer_is_none(text: str) -> None:
    """Missing, doubled or unknown lines."""
    with pytest.raises(AnswerError):
        read_assumptions(text, ["goal_0"], "n0", CONTEXT)
