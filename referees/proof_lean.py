"""
The gates on Lean 4, by `lean` and `leanchecker` (or `lean4checker`, as it was called before toolchains had it).

As for Rocq, the judge compiles its own check against a stand-in in which each theorem is an axiom; a compiled Lean file
names its imports by name alone, so the exhibit's file is simply put in the stand-in's place, and the checker replays
both in the kernel. Imported files can carry macros and initialisers into a `lean` that elaborates, so what the proof
rests on is asked of a program of the judge's that reads the compiled files as data, and imports Lean alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from harness.errors import RefereeError
from referees.proof_battery import lean_degenerates
from referees.proof_card import ProofCard
from referees.proof_room import Lab, Ran, said
from referees.proof_trial import PASSED, Case, Finding, compiled, met_limit
from referees.proof_words import LEAN, Syntax

__all__ = ["Lean", "LeanTrial"]

_HERE = ("env", "LEAN_PATH=/workspace")
_LEAN = (*_HERE, "lean", "-R", "/workspace")
_EACH = 'for name in "$@"; do env LEAN_PATH=/workspace lean -R /workspace -o "$name.olean" "$name.lean" || exit; done'
_CHECKER = 'command -v leanchecker >/dev/null && exec leanchecker -v "$@"; exec lean4checker -v "$@"'
_NAME = re.compile(r"unknown constant '([^']*)'")
_USED = r"""import Lean
open Lean

def uses (info : ConstantInfo) : Array Name :=
  let inside := match info with
    | .defnInfo v => v.value.getUsedConstants
    | .thmInfo v => v.value.getUsedConstants
    | .opaqueInfo v => v.value.getUsedConstants
    | .inductInfo v => v.ctors.toArray
    | _ => #[]
  info.type.getUsedConstants ++ inside

def plain (name : Name) : String :=
  (toString name).map fun c => if c.isAlphanum || c == '.' || c == '_' || c == '\'' then c else '?'

partial def axiomsOf (env : Environment) (todo : List Name) (seen : NameSet) (found : List Name) : List Name :=
  match todo with
  | [] => found
  | name :: rest =>
    if seen.contains name then axiomsOf env rest seen found
    else match env.find? name with
      | none => axiomsOf env rest (seen.insert name) (name :: found)
      | some info =>
        let found := match info with
          | .axiomInfo _ => name :: found
          | _ => found
        axiomsOf env ((uses info).toList ++ rest) (seen.insert name) found

def main : IO Unit := do
  initSearchPath (← findSysroot)
  let env ← importModules #[{ module := `CHECK }] {}
  for goal in [GOALS] do
    let found := axiomsOf env [goal] {} []
    IO.println s!"NONCE {goal} {found.length} {String.intercalate " " (found.map plain)}"
  IO.println "NONCE end"
"""


class Lean:
    """The toolchain `lean`."""

    name = "lean"
    suffix = ".lean"
    syntax: Syntax = LEAN
    install = (
        "a Lean 4 toolchain has lean and leanchecker (one without the latter needs lean4checker); make an image with "
        "both on its PATH, and name it in the task's `image`"
    )

    async def open(self, lab: Lab, case: Case) -> LeanTrial:
        """Compile what is the judge's own. Raises `RefereeError` where that can't be done."""
        card, check = case.card, case.check
        sources = {card.statement: case.statement, card.module: _stand_in(case), check: _check(case)}
        files = {f"{name}.lean": text for name, text in sources.items()}
        objects = [f"{card.statement}.olean", f"{check}.olean"]
        ran = await lab.run(files, ["sh", "-c", _EACH, "proctor", *sources], take=objects)
        if not ran.ended_well or set(ran.taken) != set(objects) or lab.cut(ran):
            raise RefereeError(f"the sealed statement does not compile with what the card names in it: {said(ran)}")
        return LeanTrial(lab, case, sealed=ran.taken[objects[0]], check=ran.taken[objects[1]])

    def degenerates(self, card: ProofCard) -> Mapping[str, Mapping[str, str]]:
        """Sources that prove nothing, by name."""
        return lean_degenerates(card)


def _stand_in(case: Case) -> bytes:
    sealed = case.card.statement
    lines = [f"axiom {theorem} : {sealed}.{goal}" for theorem, goal in case.goals.values()]
    return "\n".join([f"import {sealed}", *lines, ""]).encode()


def _check(case: Case) -> bytes:
    sealed, module = case.card.statement, case.card.module
    lines = [
        f"theorem {case.check}.{name} : {sealed}.{goal} := @{theorem}" for name, (theorem, goal) in case.goals.items()
    ]
    return "\n".join([f"import {sealed}", f"import {module}", *lines, ""]).encode()


class LeanTrial:
    """One case: `sealed` and `check` are the judge's own compiled files."""

    def __init__(self, lab: Lab, case: Case, *, sealed: bytes, check: bytes) -> None:
        self._lab = lab
        self._case = case
        self._module = case.card.module
        self._sealed = {f"{case.card.statement}.olean": sealed}
        self._check = {f"{case.check}.olean": check}

    async def compile(self) -> tuple[Finding, bytes]:
        """Gate 2: the exhibit's file, beside the compiled statement and nothing else."""
        source, target = f"{self._module}.lean", f"{self._module}.olean"
        files = {**self._sealed, source: self._case.source}
        ran = await self._lab.run(files, [*_LEAN, "-o", target, source], take=[target], ours=False)
        return compiled(ran, target, self._lab.object_bytes)

    async def kernel(self, parcel: bytes) -> Finding:
        """Gate 3: every declaration of the compiled file, replayed in the kernel in a fresh room."""
        return await self._replayed(parcel, self._module, "KERNEL_REJECTED")

    async def statement(self, parcel: bytes) -> Finding:
        """Gate 4: the judge's check, replayed with the exhibit's file in the stand-in's place."""
        return await self._replayed(parcel, self._case.check, "STATEMENT_ALTERED")

    async def axioms(self, parcel: bytes) -> Finding:
        """Gate 5: every axiom that the judge's check rests on, by a program that reads the files as data."""
        goals = [f"{self._case.check}.{name}" for name in self._case.goals]
        text = _USED.replace("CHECK", self._case.check).replace("NONCE", self._case.nonce)
        text = text.replace("GOALS", ", ".join(f"`{goal}" for goal in goals))
        files = {**self._files(parcel), "Used.lean": text.encode()}
        ran = await self._lab.run(files, [*_LEAN, "--run", "Used.lean"])
        if (over := met_limit(ran)) is not None:
            return over
        used = _axioms(ran, goals, self._case.nonce)
        if used is None:
            return Finding("UNSCORABLE", f"what the proof rests on could not be read: {said(ran, 500)}")
        refused = sorted(used - set(self._case.card.axioms))
        return (
            Finding("AXIOMS_FAIL", f"axioms that are not allowed: {', '.join(refused)}"[:1500]) if refused else PASSED
        )

    def _files(self, parcel: bytes) -> dict[str, bytes]:
        return {**self._sealed, **self._check, f"{self._module}.olean": parcel}

    async def _replayed(self, parcel: bytes, module: str, rejected: str) -> Finding:
        argv = [*_HERE, "sh", "-c", _CHECKER, "proctor", module]
        ran = await self._lab.run(self._files(parcel), argv)
        if (over := met_limit(ran)) is not None:
            return over
        if ran.status != 0:
            missing = _NAME.search(said(ran))
            if missing and missing[1] in self._case.card.theorems:
                return Finding("INTERFACE_MISS", f"there is no theorem {missing[1]} in {self._module}.lean")
            return Finding(rejected, said(ran))
        if not ran.whole or f"replaying {module}" not in ran.stdout.split("\n"):
            return Finding("UNSCORABLE", f"the checker does not say that it replayed {module}: {said(ran, 500)}")
        return PASSED


def _axioms(ran: Ran, goals: Sequence[str], nonce: str) -> set[str] | None:
    """The axioms of all goals together; None unless every goal was answered in order and in full."""
    lines = [line.removeprefix(f"{nonce} ") for line in ran.stdout.split("\n") if line.startswith(f"{nonce} ")]
    if not ran.ended_well or not ran.whole or lines[-1:] != ["end"] or len(lines) != len(goals) + 1:
        return None
    found = list(_counted(lines[:-1], goals))
    return set().union(*found) if len(found) == len(goals) else None


def _counted(lines: Sequence[str], goals: Sequence[str]) -> Iterator[set[str]]:
    for line, goal in zip(lines, goals, strict=True):
        name, _, rest = line.partition(" ")
        count, *axioms = rest.split() or [""]
        if name == goal and count == str(len(axioms)):
            yield set(axioms)
