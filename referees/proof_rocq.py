"""
The gates on Rocq, by `coqc` and `coqchk` (Debian's package `coq`).

The judge compiles its own check of the statement against a stand-in: a module of the exhibit's name in which each
theorem is an axiom. Then that check is made to name the exhibit's file instead, and `coqchk`, which types it again from
the kernel's terms, says whether the theorems there are of the sealed types. So nothing of the exhibit is ever in force
while the judge's file is read: no notation, coercion, hint or module of it could change what the file means, and no
`coqc` that has loaded a seat's file has a say in the statement's identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.errors import RefereeError
from referees.proof_assumptions import AnswerError, read_assumptions
from referees.proof_battery import rocq_degenerates
from referees.proof_card import ProofCard
from referees.proof_coqchk import Checked, MisplacedError, OutputError, read_coqchk
from referees.proof_objects import repointed, verify
from referees.proof_room import Lab, Ran, said
from referees.proof_trial import PASSED, Case, Finding, compiled, met_limit
from referees.proof_words import ROCQ, Syntax

__all__ = ["Rocq", "RocqTrial"]

_COQC = ("coqc", "-q", "-no-glob", "-R", ".", "")
_COQCHK = ("coqchk", "-o", "-R", ".", "")
_EACH = f'for file in "$@"; do {" ".join(_COQC[:-1])} "" "$file" || exit; done'
_LIBRARY = "Coq."
"""What the image's own library is called; its files are taken as given, as those of the toolchain itself."""


class Rocq:
    """The toolchain `rocq`."""

    name = "rocq"
    suffix = ".v"
    syntax: Syntax = ROCQ
    install = (
        "Debian's package `coq` has coqc and coqchk; see the how-to on images for one that has it, and name that image "
        "in the task's `image`"
    )

    async def open(self, lab: Lab, case: Case) -> RocqTrial:
        """Compile what is the judge's own. Raises `RefereeError` where that can't be done."""
        card, check = case.card, case.check
        files = {
            f"{card.statement}.v": case.statement,
            f"{card.module}.v": _stand_in(case).encode(),
            f"{check}.v": _check(case).encode(),
        }
        objects = [f"{name.removesuffix('.v')}.vo" for name in files]
        ran = await lab.run(files, ["sh", "-c", _EACH, "proctor", *files], take=objects)
        if not ran.ended_well or set(ran.taken) != set(objects) or lab.cut(ran):
            raise RefereeError(f"the sealed statement does not compile with what the card names in it: {said(ran)}")
        return RocqTrial(lab, case, *(ran.taken[name] for name in objects))

    def degenerates(self, card: ProofCard) -> Mapping[str, Mapping[str, str]]:
        """Sources that prove nothing, by name."""
        return rocq_degenerates(card)


def _stand_in(case: Case) -> str:
    """The exhibit as the judge's check sees it while it is compiled: the theorems, as axioms of the sealed types."""
    sealed = case.card.statement
    lines = [f"Axiom {theorem} : {sealed}.{goal}." for theorem, goal in case.goals.values()]
    return "\n".join([f"Require {sealed}.", *lines, ""])


def _check(case: Case) -> str:
    sealed, module = case.card.statement, case.card.module
    lines = [
        f"Definition {name} : {sealed}.{goal} := {module}.{theorem}." for name, (theorem, goal) in case.goals.items()
    ]
    return "\n".join([f"Require {sealed}.", f"Require {module}.", *lines, ""])


class RocqTrial:
    """One case: `sealed`, `stand_in` and `check` are the judge's own compiled files."""

    def __init__(self, lab: Lab, case: Case, sealed: bytes, stand_in: bytes, check: bytes) -> None:
        self._lab = lab
        self._case = case
        self._module = case.card.module
        self._sealed = {f"{case.card.statement}.vo": sealed}
        self._stand_in = stand_in
        self._check = check
        self._context: Checked | None = None

    async def compile(self) -> tuple[Finding, bytes]:
        """Gate 2: the exhibit's file, beside the compiled statement and nothing else."""
        source, target = f"{self._module}.v", f"{self._module}.vo"
        files = {**self._sealed, source: self._case.source}
        ran = await self._lab.run(files, [*_COQC, source], take=[target], ours=False)
        return compiled(ran, target, self._lab.object_bytes)

    async def kernel(self, parcel: bytes) -> Finding:
        """Gate 3: the compiled file, checked again by the kernel in a room that saw nothing of its making."""
        try:
            verify(parcel)
        except ValueError as error:
            return Finding("KERNEL_REJECTED", f"the compiled file: {error}")
        found = await self._checked({f"{self._module}.vo": parcel}, [self._module], "KERNEL_REJECTED")
        return found if isinstance(found, Finding) else PASSED

    async def statement(self, parcel: bytes) -> Finding:
        """Gate 4: the judge's check, made to name the exhibit's file, checked together with it."""
        check = repointed(self._check, compiled_against=self._stand_in, at=parcel)
        files = {f"{self._module}.vo": parcel, f"{self._case.check}.vo": check}
        found = await self._checked(files, [self._module, self._case.check], "STATEMENT_ALTERED")
        if isinstance(found, Finding):
            return self._missed(found)
        lost = [name for name in self._case.goals if f"{self._case.check}.{name}" not in found.names[self._case.check]]
        if lost:
            return Finding("UNSCORABLE", f"coqchk passed over {', '.join(lost)} of the judge's own check")
        self._context = found
        return PASSED

    def _missed(self, found: Finding) -> Finding:
        """A theorem that is not there at all is told from one of another type."""
        for theorem, _ in self._case.goals.values():
            if f"Constant {self._module}.{theorem} does not appear" in found.detail:
                return Finding("INTERFACE_MISS", f"there is no theorem {theorem} in {self._module}.v")
        return found

    async def axioms(self, parcel: bytes) -> Finding:
        """
        Gate 5: what the proof rests on. The kernel's summary must have no axiom of the exhibit and nothing unsafe. Of
        the library's axioms it has all that were loaded, and it does not know all flags of the theory: which of the
        axioms are used, and under which flags, is asked of `coqc` in addition.
        """
        context = self._context
        if context is None:
            raise RefereeError("gate 5 was asked before gate 4 had passed")
        allowed = frozenset(self._case.card.axioms)
        if context.unsafe:
            return Finding("AXIOMS_FAIL", f"not within the theory: {', '.join(context.unsafe)}"[:1500])
        others = [name for name in context.axioms if name not in allowed]
        if own := [name for name in others if not name.startswith(_LIBRARY)]:
            return Finding("AXIOMS_FAIL", f"axioms that are not allowed: {', '.join(own)}{_hidden(own)}"[:1500])
        return await self._used(parcel, context, allowed)

    async def _used(self, parcel: bytes, context: Checked, allowed: frozenset[str]) -> Finding:
        ran = await self._asked(parcel)
        if (over := met_limit(ran)) is not None:
            return over
        try:
            used = self._answer(ran, context.axioms)
        except AnswerError as error:
            return await self._unanswered(f"the question for the axioms that are used: {error}", allowed)
        if refused := sorted(used - allowed):
            return Finding("AXIOMS_FAIL", f"it rests on what is not allowed: {', '.join(refused)}"[:1500])
        return PASSED

    async def _asked(self, parcel: bytes) -> Ran:
        question = f"{self._case.check}_used.v"
        files = {**self._sealed, f"{self._module}.vo": parcel, question: _question(self._case).encode()}
        return await self._lab.run(files, [*_COQC, question], ours=False)

    def _answer(self, ran: Ran, context: Sequence[str]) -> frozenset[str]:
        return read_assumptions(_sound(ran, ran.stdout), list(self._case.goals), self._case.nonce, context)

    async def _unanswered(self, why: str, allowed: frozenset[str]) -> Finding:
        """Whose doing it is: with the judge's stand-in in its place the exhibit has no say, and there is an answer."""
        axioms = [f"{self._module}.{theorem}" for theorem, _ in self._case.goals.values()]
        try:
            self._answer(await self._asked(self._stand_in), [*axioms, *allowed])
        except AnswerError:
            return Finding("UNSCORABLE", why)
        return Finding("AXIOMS_FAIL", f"the exhibit is in the way of {why}"[:1500])

    async def _checked(self, files: Mapping[str, bytes], modules: Sequence[str], rejected: str) -> Checked | Finding:
        wanted = [word for module in modules for word in ("-norec", module)]
        ran = await self._lab.run({**self._sealed, **files}, [*_COQCHK, *wanted])
        if (over := met_limit(ran)) is not None:
            return over
        if ran.status != 0:
            return Finding(rejected, f"coqchk: {_fatal(ran)}")
        if not ran.whole:
            return Finding("KERNEL_REJECTED", "coqchk says more of its declarations than is read")
        try:
            return read_coqchk(_sound(ran, ran.stderr), modules)  # coqchk says everything there
        except MisplacedError as error:
            return Finding("KERNEL_REJECTED", str(error))
        except (OutputError, AnswerError) as error:
            return Finding("UNSCORABLE", f"coqchk: {error}")


def _question(case: Case) -> str:
    """A file that has the assumptions of each theorem printed between lines that carry the nonce."""
    lines = ["Set Printing Width 4000.", f"Require {case.card.module}."]
    # A compiled file may hold options for whoever loads it: these would change the language, or what is printed.
    lines += ["Unset Silent.", "Unset Printing All.", "Set Printing Width 4000.", "Set Printing Depth 1000."]
    lines += ['Set Default Proof Mode "Classic".', 'Set Debug "-all".', "Unset Info Level.", "Unset Default Timeout."]
    for name, (theorem, _) in case.goals.items():
        lines.append(f'Goal True. idtac "{case.nonce} {name}". Abort.')
        lines.append(f"Print Assumptions {case.card.module}.{theorem}.")
    lines.append(f'Goal True. idtac "{case.nonce} end". Abort.')
    return "\n".join([*lines, ""])


def _hidden(axioms: Sequence[str]) -> str:
    """What the checker does not see through either, where one of the names may be of that kind."""
    inside = any(name.count(".") > 1 for name in axioms)
    return " (what a sealed functor or an alias of a module hides counts as an axiom too: `<:` hides nothing)" * inside


def _sound(ran: Ran, words: str) -> str:
    """`words`, if the program ended well and was read to its end. Raises `AnswerError` if not."""
    if not ran.ended_well or not ran.whole:
        raise AnswerError(f"it ended with status {ran.status}, or said too much: {said(ran, 300)}")
    return words


def _fatal(ran: Ran) -> str:
    """The error in what coqchk said on its way out, on one line."""
    _, found, error = ran.stderr.rpartition("Fatal Error:")
    return " ".join((error if found else said(ran)).split())[:1000] or f"ended with status {ran.status}"
