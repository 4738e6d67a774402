"""
The `dafny` referee: a program verifier proves, or does not, that a candidate keeps a given contract.

The judge's own file states the contract once more: each of its members has the pristine signature and conditions and
does nothing but call the candidate's. That the verifier proves them shows that the candidate promises at least what was
asked; that it proves the candidate's own members shows that the promise is kept. Nothing of the subject's is ever
executed: the verifier reads it as text, in a room of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import resources
from types import MappingProxyType
from typing import Any

import anyio

from harness.canonical import digest_bytes, digest_json
from harness.clock import fresh_token
from harness.errors import RefereeError
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, TestReading, TierReading, Verdict
from referees.verifier_battery import battery
from referees.verifier_card import GOALS, Contract, contract, read_options
from referees.verifier_run import Report, verify
from referees.verifier_screen import screened
from referees.verifier_text import Token, Unreadable, modules, read_text, tokens

__all__ = ["DafnyReferee"]

CLASSES: Mapping[str, Standing] = MappingProxyType(
    {
        "PASS": "accepted",
        "VERIFICATION_FAILED": "rejected",
        "SPEC_ALTERED": "rejected",
        "SCREENED": "rejected",
        "NO_BUILD": "rejected",
        "INTERFACE_MISS": "rejected",
        "RESOURCE_OUT": "unscorable",
        "UNSCORABLE": "unscorable",
    }
)
_SOURCES = ("verifier", "verifier_battery", "verifier_card", "verifier_room")
_MORE_SOURCES = ("verifier_run", "verifier_screen", "verifier_solver", "verifier_text")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Finding:
    """What a run came to, before any screen; `report` is None where none was needed."""

    reading: str
    detail: str
    report: Report | None = None


class DafnyReferee:
    """Judges by Dafny; made with the options of `VerifierOptions`, as a mapping or by name."""

    name = "dafny"
    classes: Mapping[str, Standing] = CLASSES

    def __init__(self, options: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self.options = read_options({**(options or {}), **named})

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """What a verdict depends on: specification, goals, card, options and the referee's source, as one digest."""
        made = contract(sealed, self.options)
        names = sorted((*_SOURCES, *_MORE_SOURCES))
        folder = resources.files("referees")
        sources = {name: digest_bytes(folder.joinpath(f"{name}.py").read_bytes()) for name in names}
        digest = digest_json(
            {"contract": made.digest, "options": self.options.model_dump(mode="json"), "sources": sources}
        )
        counts = {"goals": len(made.card.goals), "verified": made.card.verified}
        return {"digest": digest, "ids": list(made.card.goals), "counts": counts, "source": digest_json(sources)}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The reference solution, which must PASS before anything is judged."""
        return sealed.solution

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """Degenerate candidates by name, each of which must be rejected before anything is judged."""
        del task
        return battery(contract(sealed, self.options))

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """The verdict on an exhibit. Raises `RefereeError` when the referee itself fails: then nothing was decided."""
        del task
        started = anyio.current_time()
        made = contract(sealed, self.options)
        nonce = fresh_token()
        try:
            text = _text(exhibit.tree, made.card.file)
            found = tokens(text)
            _no_claim(found, made)
        except Unreadable as error:
            finding, refused = _Finding(reading="NO_BUILD", detail=f"{made.card.file}: {error}"), None
        else:
            refused = screened(found, made.card.forbidden, made.card.attributes, made.card.spec)
            finding = await self._examined(text, made, sealed, rooms, nonce=nonce)
        suite = str((await anyio.to_thread.run_sync(self.suite, sealed))["digest"])
        return self._verdict(exhibit, made, finding, refused, (nonce, suite, anyio.current_time() - started))

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """None: a contract has no public part apart from the whole."""
        del task, sealed, rooms
        yield None

    async def _examined(
        self, text: str, made: Contract, sealed: SealedHalf, rooms: RoomOpener, *, nonce: str
    ) -> _Finding:
        """Verify; once more where the verifier died or ran out of a clock's time; if it died again, by proofs alone."""
        files = {made.card.spec: made.spec, made.card.file: text, GOALS: made.goals}
        prove = partial(verify, files, rooms, self.options, rlimit=made.rlimit, nonce=nonce, proofs=True)
        report = await prove()
        if report.resolved and not report.whole:
            report = await prove()
        if not report.resolved:
            return await self._unresolved(files, report, made, rooms, nonce=nonce)
        if not (report.whole or report.exhausted):
            # Its compiler may have died of what its prover refutes: that is no way out.
            alone = await prove(compiler=False)
            if alone.whole and alone.with_end("refuted"):
                return _decided(alone, made)
            await self._still_works(made, sealed, rooms, nonce=nonce)
            return _Finding(reading="UNSCORABLE", detail=f"the verifier died of it: {report.fault}", report=report)
        return _decided(report, made)

    async def _unresolved(
        self, files: Mapping[str, str], report: Report, made: Contract, rooms: RoomOpener, *, nonce: str
    ) -> _Finding:
        """Whether the candidate is no program by itself, or one that the goals can't call."""
        alone = {name: text for name, text in files.items() if name != GOALS}
        by_itself = await verify(alone, rooms, self.options, rlimit=made.rlimit, nonce=nonce, proofs=False)
        if by_itself.resolved:
            return _Finding(reading="INTERFACE_MISS", detail=report.fault, report=report)
        return _Finding(reading="NO_BUILD", detail=by_itself.fault, report=report)

    async def _still_works(self, made: Contract, sealed: SealedHalf, rooms: RoomOpener, *, nonce: str) -> None:
        """Raises `RefereeError` unless the verifier still comes to its end with the reference."""
        files = {made.card.spec: made.spec, made.card.file: sealed.solution.text(made.card.file), GOALS: made.goals}
        report = await verify(files, rooms, self.options, rlimit=made.rlimit, nonce=nonce, proofs=True)
        if not report.whole or report.with_end("undecided") or report.with_end("refuted"):
            raise RefereeError(f"the verifier does not work any more: of the reference it says {report.fault}")

    def _verdict(
        self, exhibit: Exhibit, made: Contract, finding: _Finding, refused: str | None, made_by: tuple[str, str, float]
    ) -> Verdict:
        nonce, suite, seconds = made_by
        report = finding.report
        refused = refused or (report.believed if report else None)
        reading = "SCREENED" if refused else finding.reading
        proofs = report.proofs if report else ()
        outcomes = [[proof.kind, proof.module, proof.member, proof.end] for proof in proofs]
        proved = sum(proof.end == "proved" for proof in proofs)
        tier = TierReading(tier="verifier", reading="NOT_RUN", ran=False)
        if report is not None:
            tier = TierReading(tier="verifier", reading=reading, passed=proved, total=len(proofs))
        limits = {"rlimit": made.rlimit, **self.options.model_dump(exclude={"rlimit"})}
        execution = digest_json({"nonce": nonce, "reading": reading, "outcomes": outcomes})
        return Verdict(
            reading=reading,
            standing=self.classes[reading],
            evidence=Evidence(code=exhibit.digest, suite=suite, execution=execution),
            tiers=(tier,),
            tests=_goals(report, made),
            detail=(refused or finding.detail)[:2000],
            would_be=finding.reading if refused else None,
            seconds=seconds,
            cpu_s=report.cpu_s if report else None,
            limits={name: float(value) for name, value in limits.items()},
        )


def _text(tree: Tree, path: str) -> str:
    """The candidate's text. Raises `Unreadable` for a file that is missing or no plain text."""
    if path not in tree:
        raise Unreadable("no such file in the exhibit")
    return read_text(tree[path])


def _no_claim(found: list[Token], made: Contract) -> None:
    """Raises `Unreadable` where the candidate declares a module of the judge's, whose proofs could be taken for it."""
    taken = sorted({made.goal_module, *made.spec_modules} & set(modules(found)))
    if taken:
        raise Unreadable(f"declares the module {', '.join(taken)}, which is the task's own")


def _decided(report: Report, made: Contract) -> _Finding:
    """The class of a run that came to its end: what was refuted first, then what was not decided, then the counts."""
    refuted, own = report.with_end("refuted"), {made.goal_module, *made.spec_modules}
    spec = [proof for proof in refuted if proof.module in made.spec_modules]
    if spec:
        raise RefereeError(f"the task's own specification does not verify: {spec[0].detail}")
    for wanted, reading in ((False, "VERIFICATION_FAILED"), (True, "SPEC_ALTERED")):
        first = next((proof for proof in refuted if (proof.module in own) is wanted), None)
        if first is not None:
            return _Finding(reading=reading, detail=f"{first.module}.{first.name}: {first.detail}", report=report)
    if report.exhausted or not report.whole:
        return _Finding(reading="RESOURCE_OUT", detail=f"ran out of {report.exhausted}", report=report)
    if not report.compiled:
        return _Finding(reading="NO_BUILD", detail=report.fault, report=report)
    proved = len(report.with_end("proved"))
    names = [proof.name for proof in report.proofs if (proof.kind, proof.module) == ("Impl", made.goal_module)]
    missing = [goal for goal in made.card.goals if names.count(goal) != 1]
    if missing:
        raise RefereeError(f"the verifier's report does not name the goals {missing} once each: it names {names}")
    if proved < made.card.verified:
        detail = f"{proved} proofs: the card expects {made.card.verified} at the least"
        return _Finding(reading="VERIFICATION_FAILED", detail=detail, report=report)
    return _Finding(reading="PASS", detail=f"{proved} proofs, all found", report=report)


def _goals(report: Report | None, made: Contract) -> tuple[TestReading, ...]:
    """One reading a goal: the contract is no secret."""
    words = {"proved": "PASS", "refuted": "SPEC_ALTERED", "undecided": "RESOURCE_OUT"}
    proofs = report.proofs if report else ()
    ends = {proof.name: proof for proof in proofs if (proof.kind, proof.module) == ("Impl", made.goal_module)}
    return tuple(
        TestReading(id=goal, reading=words[ends[goal].end], detail=ends[goal].detail)
        if goal in ends
        else TestReading(id=goal, reading="NOT_RUN")
        for goal in made.card.goals
    )
