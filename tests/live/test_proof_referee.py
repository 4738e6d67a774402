"""
The rocq referee in real rooms: proofs and what only looks like one, compiled files that were doctored on their way from
the room that made them, and the controls of the example cards. Every NO has its YES beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest

from harness import plugins
from harness.errors import RefereeError
from harness.tasks.characterise import characterise, least_margin
from harness.tasks.folder import load_folder
from harness.values import Verdict
from harness.walls import Walls
from referees.proof import ProofReferee, lean, rocq
from referees.proof_gates import Carrier, carried
from referees.proof_objects import segments
from referees.proof_rocq import Rocq
from tests.live.hostile import Candidate
from tests.live.hostile.proof_candidates import CANDIDATES, HONEST, OPTIONS
from tests.live.images import prover_image, seat_image

PROOFS = Path(__file__).parents[2] / "examples" / "proofs"
pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(900)]

Rooms = Callable[[], Any]


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here: the fast tests run the same referee on both."""
    return "asyncio"


def rooms_of(backend: str, image: str) -> Rooms:
    """Opens sealed rooms of a backend."""
    return partial(plugins.load("workspaces", backend)().open, Walls(image=image), run="test-proof")


@pytest.fixture
def quick_rooms() -> Rooms:
    """Those of the backend that opens a room in no time, for long lists: that the walls are there is shown elsewhere."""
    return rooms_of("bubblewrap", prover_image())


async def judged(
    candidates: Mapping[str, Candidate], rooms: Rooms, carriers: Mapping[str, Carrier] = MappingProxyType({})
) -> dict[str, Verdict]:
    """The verdict on each, two at a time; `carriers` bring some of their compiled files to the checker."""
    verdicts: dict[str, Verdict] = {}
    limiter = anyio.CapacityLimiter(2)

    async def judge(name: str, one: Candidate) -> None:
        async with limiter:
            referee = ProofReferee(Rocq(), OPTIONS, carry=carriers.get(name, carried))
            verdicts[name] = await referee.judge(one.exhibit, one.task.open, one.task.sealed, rooms)

    async with anyio.create_task_group() as group:
        for name, one in candidates.items():
            group.start_soon(judge, name, one)
    return verdicts


SHOWN = {
    "admits the whole": 1,
    "a weaker statement of the sealed module": 4,
    "an axiom of the library that the card does not list": 5,
    "a notation for the statement": 4,
    "without a guard": 1,
    "a cast that nobody checks": 2,
    "loops in a tactic": 2,
}


def assert_stopped(verdict: Verdict, gate: int) -> None:
    """The first gate that is not passed is named; those before it passed, those after it were not run."""
    assert verdict.detail.startswith(f"gate {gate} of 5, {verdict.tests[gate - 1].id}: "), verdict.detail
    assert [test.reading for test in verdict.tests[: gate - 1]] == ["PASS"] * (gate - 1)
    assert gate == 1 or {test.reading for test in verdict.tests[gate:]} <= {"NOT_RUN"}


async def test_no_hostile_proof_passes(quick_rooms: Rooms) -> None:
    """Each comes to its one reading, with the screen or without it; odd and honest proofs pass beside them."""
    found = await judged({**{name: one for name, (one, _) in CANDIDATES.items()}, **HONEST}, quick_rooms)
    said = {name: (found[name].reading, found[name].would_be) for name in found}
    expected = {
        name: ("SCREENED", one.reading) if screened else (one.reading, None)
        for name, (one, screened) in CANDIDATES.items()
    }
    assert {**expected, **{name: (one.reading, None) for name, one in HONEST.items()}} == said
    assert "PASS" not in {one.reading for one, _ in CANDIDATES.values()}
    for name, gate in SHOWN.items():
        assert_stopped(found[name], gate)


async def test_every_gate_in_containers() -> None:
    """On Docker too a proof passes all five gates, and one of a kind is stopped at each that a proof can be."""
    names = ("admits the whole", "a cast that nobody checks", "a weaker statement of the sealed module",
             "an axiom of the library that the card does not list")  # fmt: skip
    chosen = {"a proof": HONEST["a proof"], **{name: CANDIDATES[name][0] for name in names}}
    found = await judged(chosen, rooms_of("docker", prover_image()))
    good = found["a proof"]
    assert (good.reading, good.tiers[0].passed, good.detail) == ("PASS", 5, "all 5 gates passed")
    for name in names:
        assert_stopped(found[name], SHOWN[name])


def resealed(data: bytes) -> bytes:
    """A compiled file with the checksums that its bytes now have."""
    changed = bytearray(data)
    for one in segments(data).values():
        digest = hashlib.md5(data[one.start : one.start + one.size], usedforsecurity=False).digest()
        changed[one.digest_at : one.digest_at + 16] = digest
        changed[one.start + one.size : one.start + one.size + 16] = digest
    return bytes(changed)


def flipped(data: bytes) -> bytes:
    """One bit of the module's own segment, the other way round."""
    at = segments(data)["library"].start + 40
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


WEAKER = CANDIDATES["a weaker statement of the sealed module"][0]
PROOF = HONEST["a proof"]
DOCTORED: Mapping[str, tuple[Candidate, Carrier, str, str]] = {
    "nothing": (PROOF, lambda data: b"", "KERNEL_REJECTED", "gate 3"),
    "cut short": (PROOF, lambda data: data[: len(data) // 2], "KERNEL_REJECTED", "gate 3"),
    "a bit flipped": (PROOF, flipped, "KERNEL_REJECTED", "gate 3"),
    "another version's": (PROOF, lambda data: data[:4] + b"\0\0\0\1" + data[8:], "KERNEL_REJECTED", "gate 3"),
    "another module's": (PROOF, lambda data: resealed(data.replace(b"Proof", b"Other")), "KERNEL_REJECTED", "gate 3"),
    "its name exchanged for the stronger one's": (
        WEAKER,
        lambda data: resealed(data.replace(b"given", b"asked")),
        "KERNEL_REJECTED",
        "gate 3",
    ),
}


async def test_a_compiled_file_that_was_doctored(quick_rooms: Rooms) -> None:
    """
    Whatever is done to the bytes between the rooms, the kernel sees what they say, checksums or not. The same two proofs,
    with their bytes as they are, pass and come to gate 4 above.
    """
    carriers = {name: carry for name, (_, carry, _, _) in DOCTORED.items()}
    found = await judged({name: one for name, (one, _, _, _) in DOCTORED.items()}, quick_rooms, carriers)
    for name, (_, _, reading, where) in DOCTORED.items():
        assert (found[name].reading, where in found[name].detail) == (reading, True), (name, found[name].detail)


async def test_a_file_that_was_compiled_of_something_else(quick_rooms: Rooms) -> None:
    """What was compiled elsewhere and put in the place of a proof's file is judged as what it is."""
    kept: list[bytes] = []
    admitted = CANDIDATES["an axiom of its own"][0]
    for one, carry, reading in (
        (admitted, lambda data: kept.append(data) or data, "SCREENED"),
        (PROOF, lambda _: kept[0], "AXIOMS_FAIL"),
    ):
        referee = ProofReferee(Rocq(), OPTIONS, carry=carry)
        verdict = await referee.judge(one.exhibit, one.task.open, one.task.sealed, quick_rooms)
        assert verdict.reading == reading, verdict.detail


@pytest.mark.parametrize(("name", "kinds"), [("drinker", "rbm"), ("fast_reverse", "rm"), ("stack_compiler", "rm")])
async def test_the_example_cards_are_characterised(name: str, kinds: str, quick_rooms: Rooms) -> None:
    """The reference passes, the battery is rejected, and every mutant is stopped at a gate."""
    wanted = [kind for kind in ("reference", "battery", "mutant") if kind[0] in kinds]
    rows = await characterise(rocq(), load_folder(PROOFS / name), quick_rooms, kinds=wanted, at_once=2)
    assert [(row.kind, row.name, row.word, row.detail) for row in rows if not row.holds] == []
    assert sum(row.kind == "mutant" for row in rows) >= 4
    assert (least_margin(rows) or 0) >= 1


async def test_an_image_without_the_toolchain_is_named() -> None:
    """It is the referee's failure, with what to install; nothing is said of the candidate."""
    rooms = rooms_of("bubblewrap", seat_image())
    for referee, needed in ((rocq(), "package `coq` has coqc"), (lean(), "Lean 4 toolchain has lean")):
        files = {"Proof.v": "", "Proof.lean": ""}
        task = PROOF.task
        statement = task.sealed.tests.merged(type(task.sealed.tests).of({"Statement.lean": ""}))
        sealed = type(task.sealed)(tests=statement, card=task.sealed.card)
        with pytest.raises(RefereeError, match=rf"the rooms' image \(proctor-provers\) lacks .*{needed}"):
            await referee.judge(Candidate(task=task, files=files, reading="").exhibit, task.open, sealed, rooms)
