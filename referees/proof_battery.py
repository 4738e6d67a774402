"""
Degenerate candidates for a proof: each proves nothing of what is asked, by a way that has talked a checker round
before. None may pass, with the screen or without it.
"""

from __future__ import annotations

from collections.abc import Mapping

from referees.proof_card import ProofCard

__all__ = ["lean_degenerates", "rocq_degenerates"]


def rocq_degenerates(card: ProofCard) -> Mapping[str, Mapping[str, str]]:
    """For Rocq, by name: the files of each."""
    sealed, file = card.statement, f"{card.module}.v"

    def each(line: str) -> str:
        return "\n".join(line.format(t=theorem, s=goal, S=sealed) for theorem, goal in card.theorems.items()) + "\n"

    head = f"Require {sealed}.\n"
    false = each("Theorem {t} : {S}.{s}.\nProof. destruct absurd. Qed.")
    shadow = "".join(f"Definition {goal} : Prop := True.\n" for goal in dict.fromkeys(card.theorems.values()))
    trivial = each("Theorem {t} : {S}.{s}.\nProof. exact I. Qed.")
    sources = {
        "empty_file": "",
        "admitted": head + each("Theorem {t} : {S}.{s}.\nProof. Admitted."),
        "admit_tactic": head + each("Theorem {t} : {S}.{s}.\nProof. admit. Admitted."),
        "axiom": head + each("Axiom {t} : {S}.{s}."),
        "axiom_of_absurdity": head + "Axiom absurd : False.\n" + false,
        "other_statement": each("Theorem {t} : True.\nProof. exact I. Qed."),
        "shadowed_module": f"Module {sealed}.\n{shadow}End {sealed}.\n{trivial}",
        "notation": f"Require Import {sealed}.\n"
        + each('Notation "\'{s}\'" := True.\nTheorem {t} : {s}.\nProof. exact I. Qed.'),
        "endless_proof": head + "#[bypass_check(guard)] Fixpoint absurd (n : nat) : False := absurd n.\n"
        + false.replace("destruct absurd", "destruct (absurd 0)"),
        "negative_type": head + "#[bypass_check(positivity)] Inductive t := c : (t -> False) -> t.\n"
        + "Definition f (x : t) : False := match x with c g => g x end.\n"
        + "Definition absurd : False := f (c f).\n" + false,
        "never_closed": head + each("Theorem {t} : {S}.{s}.\nProof."),
        "quits": head + each("Theorem {t} : {S}.{s}.\nProof. Abort.") + "Drop.\n",
    }  # fmt: skip
    planted = {f"{sealed}.v": shadow, file: f"Require {sealed}.\n{trivial}"}
    return {
        **{name: {file: text} for name, text in sources.items()},
        "planted_statement": planted,
        "planted_object": {f"{card.module}.vo": "Coq!", f"{card.module}.vok": ""},
    }


def lean_degenerates(card: ProofCard) -> Mapping[str, Mapping[str, str]]:
    """For Lean 4, by name: the files of each."""
    sealed, file = card.statement, f"{card.module}.lean"

    def each(line: str) -> str:
        return "\n".join(line.format(t=theorem, s=goal, S=sealed) for theorem, goal in card.theorems.items()) + "\n"

    head = f"import {sealed}\n"
    shadow = "".join(f"def {goal} : Prop := True\n" for goal in dict.fromkeys(card.theorems.values()))
    sources = {
        "empty_file": "",
        "sorry": head + each("theorem {t} : {S}.{s} := sorry"),
        "axiom": head + each("axiom {t} : {S}.{s}"),
        "axiom_of_absurdity": head + "axiom absurd : False\n" + each("theorem {t} : {S}.{s} := absurd.elim"),
        "other_statement": each("theorem {t} : True := trivial"),
        "shadowed_module": f"namespace {sealed}\n{shadow}end {sealed}\n" + each("theorem {t} : {S}.{s} := trivial"),
        "no_kernel": head + "set_option debug.skipKernelTC true\n" + each("theorem {t} : {S}.{s} := sorry"),
        "unsafe_cast": head + each("unsafe def {t} : {S}.{s} := unsafeCast ()"),
        "notation": head + each('local notation "{S}.{s}" => True\ntheorem {t} : {S}.{s} := trivial'),
    }
    planted = {f"{sealed}.lean": f"namespace {sealed}\n{shadow}end {sealed}\n", file: sources["sorry"]}
    return {
        **{name: {file: text} for name, text in sources.items()},
        "planted_statement": planted,
        "planted_object": {f"{card.module}.olean": "olean"},
    }
