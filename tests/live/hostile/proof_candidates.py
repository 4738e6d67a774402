"""
Proofs in `proof.txt` that try to talk the `rocq` referee round, hang it or break it: by name, with the reading that each
comes to by gates 2 to 5 alone. Those that are `screened` use a command that the card forbids besides, so that their
reading is SCREENED, and the other one stands beside it as what it would be.
"""

from __future__ import annotations

from pathlib import Path

from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree
from tests.live.hostile import Candidate, sections

__all__ = ["CANDIDATES", "HONEST", "OPTIONS", "STATEMENT", "TASK"]

OPTIONS = {"cpu_s": 4, "memory_bytes": 640 << 20}

STATEMENT = """\
Definition given : Prop := 1 = 1.
Definition asked : Prop := forall a b : nat, a + b = b + a.
"""
_FORBIDDEN = (
    "Admitted", "admit", "Axiom", "Parameter", "Hypothesis", "Variable", "Unset Guard Checking", "bypass_check",
    "Unset Universe Checking", "Declare ML Module", "Load", "Redirect", "Extraction", "Drop",
    "Definitional UIP",
)  # fmt: skip
_PROOF = "Require Import PeanoNat Statement.\nTheorem main : asked.\nProof. exact Nat.add_comm. Qed.\n"

TASK = Task(
    open=OpenHalf(benchmark="demo", name="commutes", instruction=""),
    sealed=SealedHalf(
        tests=Tree.of({"Statement.v": STATEMENT}),
        solution=Tree.of({"Proof.v": _PROOF}),
        card={"theorems": {"main": "asked"}, "forbidden": list(_FORBIDDEN), "image": "proctor-provers"},
    ),
)


def _candidate(text: str, reading: str, **others: str) -> Candidate:
    return Candidate(task=TASK, files={"Proof.v": text, **others}, reading=reading)


_SECTIONS = list(sections(Path(__file__).with_name("proof.txt"), {}))
_LONG = "x" * 20_000
_MANY = " ".join(f"Definition d{n} := 0." for n in range(450))
_SHADOW = "Definition given : Prop := True.\nDefinition asked : Prop := True.\n"

CANDIDATES = {
    **{words[0]: (_candidate(text, words[1]), words[2:] == ["screened"]) for words, text in _SECTIONS},
    "a statement of its own beside it": (
        _candidate(
            "Require Import Statement.\nTheorem main : asked. Proof. exact I. Qed.\n",
            "COMPILE",
            **{"Statement.v": _SHADOW, "Statement.vo": "Coq!", "_CoqProject": "-arg -type-in-type\n"},
        ),
        False,
    ),
    "a compiled file beside it": (
        _candidate(_PROOF.replace("exact Nat.add_comm", "idtac"), "COMPILE", **{"Proof.vo": "Coq!", "Proof.vok": ""}),
        False,
    ),
    "a compiled file alone": (Candidate(task=TASK, files={"Proof.vo": "Coq!"}, reading="NO_BUILD"), False),
    "a weaker statement, and names that the checker says for megabytes": (
        _candidate(
            f"Module {_LONG}.\n{_MANY}\nEnd {_LONG}.\n"
            "Require Import Statement.\nTheorem main : given. Proof. reflexivity. Qed.\n",
            "KERNEL_REJECTED",
        ),
        False,
    ),
    "two megabytes of comment": (_candidate(f"(* {'x' * (2 << 20)} *)\n{_PROOF}", "NO_BUILD"), False),
}
"""By name: the candidate with the reading of gates 2 to 5, and whether the screen refuses it besides."""

HONEST = {
    "Ltac2, and names that only look like two words": _candidate(
        'From Ltac2 Require Import Ltac2.\n#[global] Set Default Proof Mode "Ltac2".\nRequire Import PeanoNat Statement.\n'
        "Lemma Axiom\u00a0free : asked. Proof. intros a b. apply Nat.add_comm. Qed.\n"
        "Theorem main : asked. Proof. exact Axiom\u00a0free. Qed.\n",
        "PASS",
    ),
    "a proof": _candidate(_PROOF, "PASS"),
    "the type spelt out": _candidate(
        "Theorem main : forall n m : nat, Nat.add n m = Nat.add m n.\n"
        "Proof. induction n; simpl; intros; [apply plus_n_O | rewrite IHn; apply plus_n_Sm]. Qed.\n",
        "PASS",
    ),
    "axioms that are loaded and not used": _candidate(
        "Require Import Reals Psatz Classical Statement.\nTheorem main : asked. Proof. intros a b. lia. Qed.\n", "PASS"
    ),
    "modules, functors and names of commands": _candidate(
        "Require Import PeanoNat Statement.\nModule Type T. End T.\nInductive instruction := Load | Drop (n : nat).\n"
        "Module N := Nat.\nModule F (X : T). Definition main := N.add_comm. End F.\nModule E. End E.\nModule G := F E.\n"
        'Definition text := tt. (* Admitted. "*)" Axiom x : False. *)\n'
        "Theorem main : asked. Proof. exact G.main. Qed.\n",
        "PASS",
    ),
}
"""Odd and honest ones, which pass."""
