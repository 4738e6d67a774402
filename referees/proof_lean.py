"""
The gates on Lean 4, by `lean` and `leanchecker` (or `lean4checker`, as it was called before toolchains had it).

As for Rocq, the judge compiles its own check against a stand-in in which each theorem is an axiom; a compiled Lean file
names its imports by name alone, so the exhibit's file is simply put in the stand-in's place, and the checker replays
both in the kernel. Imported files can carry macros and initialisers into a `lean` that elaborates, so what the form of
the compiled file is, and what the proof rests on, is asked of programs of the judge's that read the files as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from harness.errors import RefereeError
from referees.proof_battery import lean_degenerates
from referees.proof_card import ProofCard
from referees.proof_lean_programs import form, used
from referees.proof_room import Lab, Ran, said
from referees.proof_trial import PASSED, Case, Finding, compiled, met_limit
from referees.proof_words import LEAN, Syntax

__all__ = ["Lean", "LeanTrial"]

# Lean reserves a gigabyte of addresses for the stack of each thread, and would take a thread for each processor.
_HERE = ("env", "LEAN_PATH=/workspace", "LEAN_NUM_THREADS=2")
_LEAN = (*_HERE, "lean", "-R", "/workspace")
_EACH = f'for name in "$@"; do {" ".join(_LEAN)} -o "$name.olean" "$name.lean" || exit; done'
_CHECKER = 'command -v leanchecker >/dev/null && exec leanchecker -v "$@"; exec lean4checker -v "$@"'
_PROBLEM = "found a problem in"
_NAME = re.compile(r"unknown constant '([^']*)'")
_MAPPED = 16 << 30
"""Addresses that Lean may reserve beside the memory it uses: 5.7 GB were measured without its library (4.35.0)."""


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
        lab = lab.mapping(_MAPPED)
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
        ran = await self._lab.run(files, [*_LEAN, "-o", target, source], take=[target, f"{target}.private"], ours=False)
        found, parcel = compiled(ran, target, self._lab.object_bytes)
        if found.reading is None and f"{target}.private" in ran.taken:
            why = f"{source} begins with `module`, which keeps its proofs in a file of their own: leave the word out"
            return Finding("COMPILE", why), b""
        return found, parcel

    async def kernel(self, parcel: bytes) -> Finding:
        """Gate 3: the compiled file, held to its form, and every declaration replayed in the kernel in a fresh room."""
        found = await self._formed(parcel)
        return await self._replayed(parcel, self._module, "KERNEL_REJECTED") if found.reading is None else found

    async def _formed(self, parcel: bytes) -> Finding:
        file, nonce = f"{self._module}.olean", self._case.nonce
        ran = await self._lab.run({file: parcel, "Form.lean": form(file, nonce)}, [*_LEAN, "--run", "Form.lean"])
        begun, *faults = _lines(ran, nonce) or [""]
        if begun == "reading" and not ran.by_clock and ran.limit != "TIMEOUT" and ran.status != 0:
            return Finding("KERNEL_REJECTED", f"the compiled file cannot be read: {said(ran, 500)}")
        if (over := met_limit(ran)) is not None:
            return over
        if begun != "reading" or faults[-1:] != ["end"] or not ran.whole:
            return Finding("UNSCORABLE", f"the form of the compiled file could not be read: {said(ran, 500)}")
        if found := "; ".join(fault.removeprefix("fault ") for fault in faults[:-1]):
            return Finding("KERNEL_REJECTED", f"the compiled file is none that lean made: {found}"[:1500])
        return PASSED

    async def statement(self, parcel: bytes) -> Finding:
        """Gate 4: the judge's check, replayed with the exhibit's file in the stand-in's place."""
        return await self._replayed(parcel, self._case.check, "STATEMENT_ALTERED")

    async def axioms(self, parcel: bytes) -> Finding:
        """Gate 5: every axiom that the judge's check rests on, by a program that reads the files as data."""
        goals = [f"{self._case.check}.{name}" for name in self._case.goals]
        files = {**self._files(parcel), "Used.lean": used(self._case.check, goals, self._case.nonce)}
        ran = await self._lab.run(files, [*_LEAN, "--run", "Used.lean"])
        if (over := met_limit(ran)) is not None:
            return over
        found = _axioms(ran, goals, self._case.nonce)
        if found is None:
            return Finding("UNSCORABLE", f"what the proof rests on could not be read: {said(ran, 500)}")
        refused = sorted(found - set(self._case.card.axioms))
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
        # That line comes before the checker knows: what it found is in the other stream and in its exit status.
        if not ran.whole or f"replaying {module}" not in ran.stdout.split("\n") or _PROBLEM in ran.stderr:
            return Finding("UNSCORABLE", f"the checker does not say that it replayed {module}: {said(ran, 500)}")
        return PASSED


def _lines(ran: Ran, nonce: str) -> list[str]:
    """What one of the judge's own programs said."""
    return [line.removeprefix(f"{nonce} ") for line in ran.stdout.split("\n") if line.startswith(f"{nonce} ")]


def _axioms(ran: Ran, goals: Sequence[str], nonce: str) -> set[str] | None:
    """The axioms of all goals together; None unless every goal was answered in order and in full."""
    lines = _lines(ran, nonce)
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
