"""
The referees `rocq` and `lean`: a proof of a sealed statement, by five gates.

    1 screen      words and commands that the card forbids
    2 compile     the exhibit's one file, beside the sealed statement, in a room of its own
    3 kernel      the compiled file, checked again in a fresh room to which nothing else is carried
    4 statement   a check of the judge's own: are the theorems of the types that the sealed file defines?
    5 axioms      what the proof rests on, against the card's list

Compiling runs a seat's program (a proof assistant has plugins, and files may be written while it works), so nothing
that room says can help: all that comes out of it is the compiled file, which the other gates take for anybody's bytes.
An exit status alone passes no gate either; each has words that it must find in the output of the judge's own checker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
from pydantic import ValidationError

from harness.canonical import digest_bytes, digest_json
from harness.clock import fresh_token
from harness.errors import ExperimentError, RefereeError
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.card import explain, read_card
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, TestReading, TierReading, Verdict
from harness.views import PublicReading
from referees.proof_card import ProofCard, ProofOptions
from referees.proof_gates import SOURCE_BYTES, Carrier, Passage, carried, pass_gates, pass_screen
from referees.proof_lean import Lean
from referees.proof_rocq import Rocq
from referees.proof_room import Lab
from referees.proof_trial import GATES, Case, Finding, Toolchain

__all__ = ["ProofReferee", "lean", "rocq"]

CLASSES: Mapping[str, Standing] = MappingProxyType(
    {
        "PASS": "accepted",
        "NO_BUILD": "rejected",
        "SCREENED": "rejected",
        "COMPILE": "rejected",
        "KERNEL_REJECTED": "rejected",
        "INTERFACE_MISS": "rejected",
        "STATEMENT_ALTERED": "rejected",
        "AXIOMS_FAIL": "rejected",
        "TIMEOUT": "rejected",
        "MEMORY": "rejected",
        "UNSCORABLE": "unscorable",
    }
)


class ProofReferee:
    """
    Judges a proof by `toolchain`; made with the options of `ProofOptions`, as a mapping or by name.

    `carry` brings the compiled file from the room that made it to those that check it.
    """

    classes: Mapping[str, Standing] = CLASSES

    def __init__(
        self,
        toolchain: Toolchain,
        options: Mapping[str, Any] | None = None,
        /,
        *,
        carry: Carrier = carried,
        **named: Any,
    ) -> None:
        self.name = toolchain.name
        self._toolchain = toolchain
        self._carry = carry
        try:
            self.options = ProofOptions.model_validate({**(options or {}), **named})
        except ValidationError as error:
            faults = "\n  ".join(explain(error, ProofOptions, "options"))
            raise ExperimentError(f"options of referee {self.name!r}:\n  {faults}") from None

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """What is pinned: the sealed statement, the card, the options, the source of this referee, and its gates."""
        card = self._card(sealed)
        pinned = {
            "toolchain": self.name,
            "statement": digest_bytes(self._statement(card, sealed)),
            "card": card.model_dump(mode="json"),
            "options": self.options.model_dump(mode="json"),
            "source": _source(),
        }
        return {**pinned, "digest": digest_json(pinned), "gates": list(GATES), "counts": {"gates": len(GATES)}}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The reference proof, which must PASS before anything is judged."""
        return sealed.solution

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """Degenerate candidates by name, each of which must be rejected before anything is judged."""
        made = self._toolchain.degenerates(self._card(sealed))
        return {"as_found": task.environment, **{name: Tree.of(files) for name, files in made.items()}}

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """The verdict on an exhibit. Raises `RefereeError` when the referee itself fails: then nothing was decided."""
        del task  # the sealed half alone decides: what lies in the seat's workspace may be the seat's
        started = anyio.current_time()
        suite = await anyio.to_thread.run_sync(self.suite, sealed)
        word = await self._word(exhibit, self._card(sealed), sealed, rooms)
        return Verdict(
            reading=word.reading,
            standing=self.classes[word.reading],
            evidence=Evidence(code=exhibit.digest, suite=str(suite["digest"]), execution=word.execution),
            tiers=(TierReading(tier="gates", reading=word.reading, passed=word.passed, total=len(GATES)),),
            tests=word.tests,
            detail=_plain(word.detail),
            would_be=word.would_be,
            seconds=anyio.current_time() - started,
            limits=self.options.limits(self._card(sealed)).model_dump(),
        )

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """The gates themselves: a proof's statement is no secret, so nothing is told that a seat could not find out."""
        card = self._card(sealed)
        suite = str((await anyio.to_thread.run_sync(self.suite, sealed))["digest"])

        async def check(code: str) -> PublicReading:
            file = f"{card.module}{self._toolchain.suffix}"
            tree = task.environment.merged(Tree.of({file: code.encode("utf-8", "surrogatepass")}))
            word = await self._word(Exhibit(tree=tree), card, sealed, rooms)
            accepted = self.classes[word.reading] == "accepted"
            return PublicReading(
                reading=word.reading,
                accepted=accepted,
                passed=word.passed,
                total=len(GATES),
                suite=suite,
                execution=word.execution,
            )

        yield check

    async def _word(self, exhibit: Exhibit, card: ProofCard, sealed: SealedHalf, rooms: RoomOpener) -> _Word:
        """By the clock alone a busy machine could be at fault: such a reading stands if it comes twice."""
        statement = self._statement(card, sealed)
        word = await self._once(exhibit.tree, card, statement, rooms)
        return await self._once(exhibit.tree, card, statement, rooms) if word.by_clock else word

    async def _once(self, tree: Tree, card: ProofCard, statement: bytes, rooms: RoomOpener) -> _Word:
        nonce = fresh_token()
        file = f"{card.module}{self._toolchain.suffix}"
        if file not in tree:
            return _Word.without(nonce, "NO_BUILD", f"there is no {file} at the top of the workspace")
        source = tree[file]
        if len(source) > SOURCE_BYTES:
            return _Word.without(nonce, "NO_BUILD", f"{file} has {len(source)} bytes: expected {SOURCE_BYTES} at most")
        screen = await anyio.to_thread.run_sync(pass_screen, source, card.forbidden, self._toolchain)
        case = Case(card=card, statement=statement, source=source, nonce=nonce)
        limits = self.options.limits(card)
        lab = Lab(
            rooms,
            limits,
            object_bytes=self.options.object_bytes,
            image=card.image,
            install=self._toolchain.install,
        )
        passage = await pass_gates(await self._toolchain.open(lab, case), self._carry)
        return _Word.of(nonce, screen, passage)

    def _card(self, sealed: SealedHalf) -> ProofCard:
        return read_card(ProofCard, sealed.card, self.name)

    def _statement(self, card: ProofCard, sealed: SealedHalf) -> bytes:
        file = f"{card.statement}{self._toolchain.suffix}"
        if file not in sealed.tests:
            raise RefereeError(f"tests/ has no {file}, which the card names as the sealed statement")
        return sealed.tests[file]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Word:
    """All that the gates had to say of one exhibit."""

    reading: str
    detail: str
    tests: tuple[TestReading, ...]
    execution: str
    would_be: str | None = None
    by_clock: bool = False

    @property
    def passed(self) -> int:
        """How many gates were passed."""
        return sum(test.reading == "PASS" for test in self.tests)

    @classmethod
    def of(cls, nonce: str, screen: Finding, passage: Passage) -> _Word:
        """The word after all gates. What the screen refuses was judged by the others too, as a diagnostic."""
        findings = (screen, *passage.findings[1:])
        said = [[gate, found.reading or "PASS"] for gate, found in zip(GATES, findings, strict=False)]
        refused = screen.reading is not None
        deciding = Passage((screen,)) if refused else passage
        return cls(
            reading=deciding.reading,
            detail=deciding.detail,
            tests=_tests(findings),
            execution=digest_json({"nonce": nonce, "compiled": digest_bytes(passage.parcel), "findings": said}),
            would_be=passage.reading if refused else None,
            by_clock=passage.last.by_clock,
        )

    @classmethod
    def without(cls, nonce: str, reading: str, why: str) -> _Word:
        """The word on an exhibit that no gate was asked about."""
        execution = digest_json({"nonce": nonce, "reading": reading})
        return cls(reading=reading, detail=why, tests=_tests(()), execution=execution)


def _tests(findings: tuple[Finding, ...]) -> tuple[TestReading, ...]:
    """A reading for each gate, in order."""
    reached = [
        TestReading(id=gate, reading=found.reading or "PASS", detail=_plain(found.detail))
        for gate, found in zip(GATES, findings, strict=False)
    ]
    return (*reached, *(TestReading(id=gate, reading="NOT_RUN") for gate in GATES[len(reached) :]))


def _plain(text: str) -> str:
    """Text that can be written down, whatever a program said."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _source() -> str:
    """SHA-256 over the source of these modules, so that a registration pins all of them."""
    folder = Path(__file__).parent
    return digest_json({path.name: digest_bytes(path.read_bytes()) for path in sorted(folder.glob("proof*.py"))})


def rocq(options: Mapping[str, Any] | None = None, /, **named: Any) -> ProofReferee:
    """The referee of proofs in Rocq, with the options of `ProofOptions`."""
    return ProofReferee(Rocq(), options, **named)


def lean(options: Mapping[str, Any] | None = None, /, **named: Any) -> ProofReferee:
    """The referee of proofs in Lean 4, with the options of `ProofOptions`."""
    return ProofReferee(Lean(), options, **named)
