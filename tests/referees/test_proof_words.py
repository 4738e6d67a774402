"""The screen of the proof referees: tokens, comments, strings, sentences and sections."""

from __future__ import annotations

import pytest

from referees.proof_words import LEAN, ROCQ, screened

COMMANDS = ["Admitted", "admit", "Axiom", "Hypothesis", "Variable", "Load", "Unset Guard Checking", "bypass_check"]
COMMANDS.append("Definitional UIP")
WORDS = ["sorry", "axiom", "debug.skipKernelTC"]


@pytest.mark.parametrize(
    ("text", "phrase", "line"),
    [
        ("Theorem a : True.\nAdmitted.", "Admitted", 2),
        ("Theorem a : True.\nProof. { admit. } Qed.", "admit", 2),
        ("Proof. - Admitted.", "Admitted", 1),
        ("(* fine *) Axiom a : False.", "Axiom", 1),
        ("Local Axiom a : False.", "Axiom", 1),
        ("Time Timeout 3 Fail Load a.", "Load", 1),
        ('#[local, deprecated(note="]")] Axiom a : False.', "Axiom", 1),
        ("Unset (* a\ncomment *) Guard Checking.", "Unset Guard Checking", 1),
        ("#[bypass_check(guard)] Fixpoint f := f.", "bypass_check", 1),
        ("Section A. End A. Variable a : nat.", "Variable", 1),
        ("Section A. End A.\nModule B. Hypothesis a : nat.", "Hypothesis", 2),
        ("Module A := B. Variable a : nat.", "Variable", 1),
        ('Definition a := "(*". Axiom b : False. (* " *) " *)', "Axiom", 1),
        ("Proof. 1: { Admitted.", "Admitted", 1),
        ("Proof. all: swap 1 2. [x] : { Admitted.", "Admitted", 1),
        ("Proof. 1-2, 3: { { Admitted.", "Admitted", 1),
        ("Proof with auto. intros... Admitted.", "Admitted", 1),
        ('Fail Notation "[ x ; .. ; y ]" := (cons x .. Section ..).\nVariable a : False.', "Variable", 2),
        ("Set Definitional UIP.", "Definitional UIP", 1),
        ("#[local] Unset\nGuard Checking.", "Unset Guard Checking", 1),
        ('Notation "x =(* y" := x. Definition a := 0 =(* 0. Axiom b : False.', "Axiom", 1),
        ('Notation "x =( y" := x. Definition a := 0 =(* 0. Axiom b : False. (* *)', "Axiom", 1),
        ("Notation \"x '%(' y\" := x. Definition a := 0 %(* 0.\nAxiom b : False.", "Axiom", 2),
        ('Infix "=(" := f. Definition a := 0 =(* 0. Infix "~(" := f. Definition b := 0 ~(* 0. Load c.', "Load", 1),
    ],
)
def test_a_command_is_found(text: str, phrase: str, line: int) -> None:
    """With its line, whatever stands before it."""
    assert screened(text, COMMANDS, ROCQ) == f"line {line} has {phrase!r}, which the instruction forbids"


@pytest.mark.parametrize(
    "text",
    [
        '(* Admitted. (* admit *) " *) Axiom " *) Theorem a : True.',
        'Definition a := "Admitted. "" admit ".',
        "Inductive i := Load | Axiom (n : nat).",
        "Section A. Variable a : nat. Context (b : a = a). Hypothesis c : False. End A.",
        "Module A. Section B. Hypothesis h : False. End B. End A.",
        "Definition a := M.Axiom.",
        "Definition Admitted' := admitted.",
        "Definition a := admit\u00a0nothing.",
        "(* Axiom a : False.",
        'Notation "x =( y" := x. Definition a := 0 =( 0 (* Axiom *).',
        'Notation "[ x ; .. ; y ]" := (cons x .. (cons y nil) ..) (at level 0). Section A. Variable a : nat. End A.',
        "Definition Set' := Set. Definition a : Set -> Set := fun x => x.",
        "Proof. 1: exact a. 2: { exact b. } Qed.",
        "Section A. Variable a : nat.",
        "",
    ],
)
def test_what_is_no_command_is_not(text: str) -> None:
    """Comments, strings, names, and what a section may have."""
    assert screened(text, COMMANDS, ROCQ) is None


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("theorem a : True := sorry", "sorry"),
        ("/- /- -/ -/ axiom a : False", "axiom"),
        ("set_option debug.skipKernelTC true", "debug.skipKernelTC"),
        ("def a := '\"' -- \"\naxiom b : False", "axiom"),
        ('def a := r#"no " end"# axiom b : False', "axiom"),
        ("def a := 'x' axiom b : False", "axiom"),
    ],
)
def test_a_word_of_lean_is_found(text: str, phrase: str) -> None:
    """Wherever it stands."""
    assert f"has {phrase!r}" in (screened(text, WORDS, LEAN) or "")


@pytest.mark.parametrize(
    "text",
    ["-- sorry", "/- sorry /- sorry -/ sorry -/", 'def a := "sorry \\" axiom"', 'def a := r"sorry"', "def sorry' := 1"],
)
def test_a_word_of_leans_comments_and_strings_is_not(text: str) -> None:
    """What Lean would not read as a word."""
    assert screened(text, WORDS, LEAN) is None


def test_long_files_are_read_in_moments() -> None:
    """Nothing in a file of 400,000 signs makes the screen read it twice, and no signs of its own read it for ever."""
    assert screened("(" * 200_000 + '"' * 200_001, COMMANDS, ROCQ) is None
    many = "".join(f'Infix "{n}(" := f.' for n in range(100))
    assert "can't follow" in (screened(many + "(* *)" * 100_000, COMMANDS, ROCQ) or "")
    deep = "".join(f'Infix "{sign}(" := f. Definition a := 0 {sign}(* 0. ' for sign in "!$%&/=?~^<>|;,")
    assert "can't follow" in (screened(deep, COMMANDS, ROCQ) or "")
