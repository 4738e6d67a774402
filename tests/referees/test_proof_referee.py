"""
The referee `rocq` in rooms that play a script: what goes into which room, and what each end of a program comes to. That
the real programs say what is played here is shown live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

import pytest

from harness.errors import Blamed, ExperimentError, RefereeError, TaskError
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from referees.proof import ProofReferee, rocq
from referees.proof_objects import library_digest
from referees.proof_rocq import Rocq
from tests.referees.proof_rooms import Played, ScriptedRooms, vo
from tests.referees.test_proof_coqchk import CHECK, DONE, HEAD, PROOF, SUMMARY

pytestmark = pytest.mark.anyio

CARD = {"theorems": {"main": "asked"}, "axioms": ["Coq.Logic.Classical_Prop.classic"], "forbidden": ["Admitted"]}
SEALED = SealedHalf(tests=Tree.of({"Statement.v": "sealed"}), solution=Tree.of({"Proof.v": "right"}), card=CARD)
OPEN = OpenHalf(benchmark="demo", name="it", instruction="")
STAND_IN, EXHIBIT = vo(b"the stand-in"), vo(b"the exhibit")

Steps = Mapping[str, Played | Callable[[str], Played]]


class Programs:
    """Plays coqc and coqchk; `steps` takes the place of the one that goes well, by the gate it belongs to."""

    def __init__(self, **steps: Played | Callable[[str], Played]) -> None:
        self.steps = steps
        self.seen: list[str] = []

    def __call__(self, words: Sequence[str], files: Mapping[str, bytes]) -> Played:
        """One program, by the gate that it runs for."""
        step, check = self._step(words, files)
        self.seen.append(step)
        played = self.steps.get(step) or getattr(self, f"_{step}")
        return played if isinstance(played, Played) else played(check)

    def _step(self, words: Sequence[str], files: Mapping[str, bytes]) -> tuple[str, str]:
        check = next((name.partition(".")[0] for name in files if name.startswith("Proctor_")), "")
        if words[0] == "sh":
            return "kit", check
        if words[0] == "coqchk":
            return ("statement" if check else "kernel"), check
        return ("used", check.removesuffix("_used")) if check else ("compile", "")

    def _kit(self, check: str) -> Played:
        made = {"Statement.vo": vo(b"sealed"), "Proof.vo": STAND_IN, f"{check}.vo": vo(b">" + library_digest(STAND_IN))}
        return Played(left=made)

    def _compile(self, _: str) -> Played:
        return Played(left={"Proof.vo": EXHIBIT})

    def _kernel(self, _: str) -> Played:
        return Played(stderr=HEAD + PROOF + DONE + SUMMARY)

    def _statement(self, check: str) -> Played:
        return Played(stderr=HEAD + PROOF + CHECK.replace("Proctor_1", check) + DONE + SUMMARY)

    def _used(self, check: str) -> Played:
        nonce = check.removeprefix("Proctor_")
        return Played(stdout=f"{nonce} goal_0\nClosed under the global context\n{nonce} end\n")


async def judged(programs: Programs, text: str = "proof", card: Mapping[str, object] = CARD) -> Verdict:
    """The verdict on a text while the programs do as they are told."""
    rooms = ScriptedRooms(programs)
    sealed = SealedHalf(tests=SEALED.tests, solution=SEALED.solution, card=card)
    return await rocq().judge(Exhibit(tree=Tree.of({"Proof.v": text, "other.v": "x"})), OPEN, sealed, rooms)


async def test_a_proof_passes_five_gates_in_rooms_of_their_own() -> None:
    """What each room holds: the exhibit's text in one only, which sees the compiled statement and nothing of the judge's."""
    programs = Programs()
    rooms = ScriptedRooms(programs)
    tree = Tree.of({"Proof.v": "proof", "Statement.v": "own", "Statement.vo": "own", "a.cmxs": "plugin"})
    verdict = await rocq().judge(Exhibit(tree=tree), OPEN, SEALED, rooms)
    assert (verdict.reading, verdict.standing, verdict.detail) == ("PASS", "accepted", "all 5 gates passed")
    assert [(test.id, test.reading) for test in verdict.tests] == [
        (gate, "PASS") for gate in ("screen", "compile", "kernel", "statement", "axioms")
    ]
    assert programs.seen == ["kit", "compile", "kernel", "statement", "used"]
    kit, compiling, *checking = rooms.held
    assert b"proof" not in kit.values()
    assert kit["Statement.v"] == b"sealed"
    assert compiling == {"Statement.vo": vo(b"sealed"), "Proof.v": b"proof"}
    assert all(room["Proof.vo"] == EXHIBIT and "Proof.v" not in room for room in checking)
    (check,) = (data for name, data in checking[1].items() if name.startswith("Proctor_"))
    assert library_digest(EXHIBIT) in check
    assert library_digest(STAND_IN) not in check


async def test_limits_and_time_are_told() -> None:
    """Those of the card where it has any."""
    verdict = await judged(Programs(), card={**CARD, "limits": {"cpu_s": 7}})
    assert verdict.limits == {"cpu_s": 7, "wall_s": 240.0, "memory_bytes": 768 << 20}
    assert verdict.seconds is not None


REFUSED = Played(status=1, stderr="[intern Proof.vo ...\nFatal Error: Type error: ActualType\n")
ABSENT = Played(
    status=129,
    stderr='Fatal Error: Anomaly\n   "Constant Proof.main does not appear in the environment."\nPlease report',
)
UNSAFE = Played(stderr=HEAD + PROOF + DONE + SUMMARY.replace("Axioms: <none>", "Axioms:\n    Proof.absurd"))
FOREIGN = Played(stderr=HEAD + PROOF.replace("Proof.main", "Statement.asked") + DONE + SUMMARY)


def summary(text: str) -> Callable[[str], Played]:
    """A statement gate that passes, with another summary."""
    return lambda check: Played(stderr=HEAD + PROOF + CHECK.replace("Proctor_1", check) + DONE + text)


def used(text: str) -> Callable[[str], Played]:
    """An answer to the question for the axioms."""
    return lambda check: Played(stdout=f"{check[8:]} goal_0\n{text}{check[8:]} end\n")


def one_after_another(*plays: Played | Callable[[str], Played]) -> Callable[[str], Played]:
    """What is played first, and what is played when it is asked again; then from the start."""
    turns = cycle(plays)

    def play(check: str) -> Played:
        played = next(turns)
        return played if isinstance(played, Played) else played(check)

    return play


STANDS = used("Axioms:\nProof.main : Statement.asked\n")
CLASSICAL = SUMMARY.replace("Axioms: <none>", "Axioms:\n    Coq.Logic.Classical_Prop.classic\n    Coq.Logic.E.other")


@pytest.mark.parametrize(
    ("reading", "where", "steps"),
    [
        ("COMPILE", "gate 2 of 5, compile: a message", {"compile": Played(status=1, stderr="a message")}),
        ("COMPILE", "left no regular file", {"compile": Played(stdout="PASS")}),
        ("COMPILE", "has over", {"compile": Played(left={"Proof.vo": b"x" * (17 << 20)})}),
        ("COMPILE", "gate 2", {"compile": Played(status=127, stderr="not found")}),
        ("TIMEOUT", "60 s of the processor", {"compile": Played(status=152)}),
        ("MEMORY", "gate 2", {"compile": Played(status=134, stderr="Fatal error: out of memory")}),
        ("MEMORY", "gate 2", {"compile": Played(status=1, stderr="Error: Stack overflow.")}),
        ("MEMORY", "gate 2", {"compile": Played(status=137)}),
        ("COMPILE", "gate 2", {"compile": Played(status=1, stderr="Error: Native compiler exited with status 2 (in case of stack overflow,\nincreasing stack size often helps)")}),
        ("KERNEL_REJECTED", "gate 3 of 5, kernel: coqchk: Type error: ActualType", {"kernel": REFUSED}),
        ("KERNEL_REJECTED", "declares Statement.asked", {"kernel": FOREIGN}),
        ("TIMEOUT", "gate 3", {"kernel": Played(status=152)}),
        ("MEMORY", "gate 3", {"kernel": Played(status=2, stderr="Fatal error: out of memory")}),
        ("UNSCORABLE", "0 times", {"kernel": Played()}),
        ("UNSCORABLE", "0 times", {"kernel": Played(stdout=HEAD + PROOF + DONE + SUMMARY)}),
        ("KERNEL_REJECTED", "more of its declarations than is read", {"kernel": Played(stderr=HEAD + PROOF + DONE + SUMMARY, cut=True)}),
        ("STATEMENT_ALTERED", "gate 4 of 5, statement: coqchk: Type error", {"statement": REFUSED}),
        ("INTERFACE_MISS", "no theorem main in Proof.v", {"statement": ABSENT}),
        ("UNSCORABLE", "passed over goal_0", {"statement": lambda c: Played(stderr=summary(SUMMARY)(c).stderr.replace("goal_0", "goal_9"))}),
        ("UNSCORABLE", "it checked Proof", {"statement": Played(stderr=HEAD + PROOF + DONE + SUMMARY)}),
        ("AXIOMS_FAIL", "gate 5 of 5, axioms: axioms that are not allowed: Proof.absurd", {"statement": summary(UNSAFE.stderr.partition(DONE)[2])}),
        ("AXIOMS_FAIL", "Proof.f (Constants", {"statement": summary(SUMMARY.replace("type-in-type: <none>", "type-in-type:\n    Proof.f"))}),
        ("AXIOMS_FAIL", "Coq.Logic.E.other", {"statement": summary(CLASSICAL), "used": used("Axioms:\nE.other : False\n")}),
        ("AXIOMS_FAIL", "definitional UIP", {"used": used("Axioms:\nProof.e relies on definitional UIP.\n")}),
        ("PASS", "all 5", {"statement": summary(CLASSICAL), "used": used("Axioms:\nclassic : forall P, P \\/ ~ P\n")}),
        ("UNSCORABLE", "gate 5", {"used": Played()}),
        ("UNSCORABLE", "status 1", {"used": Played(status=1)}),
        ("AXIOMS_FAIL", "in the way of the question", {"used": one_after_another(Played(status=1), STANDS)}),
        ("AXIOMS_FAIL", "in the way of the question", {"used": one_after_another(used("Debug: x\n"), STANDS)}),
        ("AXIOMS_FAIL", "Proof.M.a (what a sealed functor", {"statement": summary(SUMMARY.replace("Axioms: <none>", "Axioms:\n    Proof.M.a"))}),
        ("TIMEOUT", "gate 5", {"used": Played(status=152)}),
    ],
)  # fmt: skip
async def test_ends(reading: str, where: str, steps: Steps) -> None:
    """Each end of each program comes to its one class, and the gate is named."""
    verdict = await judged(Programs(**steps))
    assert verdict.reading == reading, verdict.detail
    assert where in verdict.detail


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ({"kit": Played(status=127, stderr="sh: 1: coqc: not found")}, r"image \(the experiment's\) lacks .*coqc"),
        ({"kit": Played(status=1, stderr="Error: no")}, "sealed statement does not compile .*Error: no"),
        ({"kit": Played()}, "sealed statement does not compile"),
        (
            {"kit": lambda c: Played(left={"Statement.vo": b"x" * (17 << 20), "Proof.vo": b"", f"{c}.vo": b""})},
            "does not compile",
        ),
        ({"kernel": Played(status=127, stderr="coqchk: not found")}, "lacks a program"),
        ({"kernel": Played(status=137)}, "killed in its room"),
        ({"statement": Played(status=None)}, "nobody could say how coqchk ended"),
    ],
)
async def test_what_is_the_referee_s_failure(steps: Steps, said: str) -> None:
    """Nothing is said of the exhibit."""
    with pytest.raises(RefereeError, match=said):
        await judged(Programs(**steps))


@pytest.mark.parametrize("step", ["kit", "compile", "kernel", "statement", "used"])
async def test_a_room_that_is_killed_is_nobodys_fail(step: str) -> None:
    """Docker says of each program in a container that was killed what it says of one that was: status 137."""
    with pytest.raises(Blamed, match=r"not running|killed in its room"):
        await judged(Programs(**{step: Played(status=137, room=False)}))


@pytest.mark.parametrize("step", ["compile", "used"])
async def test_a_room_with_less_memory_than_the_limit_is_nobodys_fail(step: str) -> None:
    """What is killed there may have kept to its limit; in a room with enough memory it had not."""
    killed = {step: Played(status=137)}
    assert (await judged(Programs(**killed))).reading == "MEMORY"
    rooms = ScriptedRooms(Programs(**killed), memory_bytes=512 << 20)
    with pytest.raises(RefereeError, match="536870912 bytes of memory: expected 872415232 or more"):
        await rocq().judge(Exhibit(tree=Tree.of({"Proof.v": "proof"})), OPEN, SEALED, rooms)


async def test_the_clock_is_asked_twice() -> None:
    """A time by the clock stands if it comes twice; one by the processor stands at once."""
    slow = Programs(compile=Played(timed_out=True))
    assert (await judged(slow)).reading == "TIMEOUT"
    assert slow.seen.count("compile") == 2
    late = [Played(timed_out=True), Played(left={"Proof.vo": EXHIBIT})]
    assert (await judged(Programs(compile=lambda _: late.pop(0)))).reading == "PASS"
    spun = Programs(compile=Played(status=152))
    await judged(spun)
    assert spun.seen.count("compile") == 1


async def test_a_refusal_by_the_screen_is_judged_all_the_same() -> None:
    """SCREENED with its line; beside it what the other gates say, which decides nothing."""
    for steps, would_be, others in (
        ({}, "PASS", ["PASS"] * 4),
        ({"kernel": REFUSED}, "KERNEL_REJECTED", ["PASS", "KERNEL_REJECTED", "NOT_RUN", "NOT_RUN"]),
    ):
        verdict = await judged(Programs(**steps), "Theorem a : True.\nAdmitted.")
        assert (verdict.reading, verdict.would_be) == ("SCREENED", would_be)
        assert verdict.detail == "gate 1 of 5, screen: line 2 has 'Admitted', which the instruction forbids"
        assert [test.reading for test in verdict.tests] == ["SCREENED", *others]


async def test_no_file_is_no_build() -> None:
    """No room is opened for it."""
    programs = Programs()
    verdict = await rocq().judge(
        Exhibit(tree=Tree.of({"src/Proof.v": "", "Proof.vo": "x"})), OPEN, SEALED, ScriptedRooms(programs)
    )
    assert (verdict.reading, programs.seen) == ("NO_BUILD", [])
    assert "no Proof.v at the top" in verdict.detail


async def test_what_is_carried_is_what_is_judged() -> None:
    """The seam between the rooms: other bytes come to the checker, and bytes that are no file to their class."""
    rooms = ScriptedRooms(Programs())
    referee = ProofReferee(Rocq(), carry=lambda _: vo(b"the forgery"))
    exhibit = Exhibit(tree=Tree.of({"Proof.v": ""}))
    assert (await referee.judge(exhibit, OPEN, SEALED, rooms)).reading == "PASS"
    assert b"the forgery" in rooms.held[2]["Proof.vo"]
    for carry, said in (
        (lambda _: b"?", "it does not start"),
        (lambda data: data.replace(b"ex", b"EX"), "a checksum of"),
    ):
        broken = await ProofReferee(Rocq(), carry=carry).judge(exhibit, OPEN, SEALED, rooms)
        assert broken.reading == "KERNEL_REJECTED"
        assert f"gate 3 of 5, kernel: the compiled file: {said}" in broken.detail


async def test_each_verdict_has_a_nonce_of_its_own() -> None:
    """The judge's module is called otherwise each time, and the executions differ where the words do not."""
    rooms = ScriptedRooms(Programs())
    exhibit = Exhibit(tree=Tree.of({"Proof.v": ""}))
    one, two = [await rocq().judge(exhibit, OPEN, SEALED, rooms) for _ in range(2)]
    names = {name for room in rooms.held for name in room if name.startswith("Proctor_") and name.endswith(".vo")}
    assert len(names) == 2
    assert one.same_as(two)
    assert one.evidence.execution != two.evidence.execution


async def test_a_round_is_told_its_class_and_gates() -> None:
    """The public check judges the code in the place of the seat's file."""
    async with rocq().public_check(OPEN, SEALED, ScriptedRooms(Programs(kernel=REFUSED))) as check:
        assert check is not None
        reading = await check("proof")
    assert (reading.reading, reading.accepted, reading.passed, reading.total) == ("KERNEL_REJECTED", False, 2, 5)


def test_the_suite_is_pinned() -> None:
    """Its digest changes with the statement, the card, the options and nothing else."""
    digest = rocq().suite(SEALED)["digest"]
    assert rocq({"cpu_s": 60}).suite(SEALED)["digest"] == digest
    others = [
        rocq(cpu_s=61).suite(SEALED),
        rocq().suite(SealedHalf(tests=Tree.of({"Statement.v": "other"}), card=CARD)),
        rocq().suite(SealedHalf(tests=SEALED.tests, card={**CARD, "axioms": []})),
    ]
    assert digest not in {other["digest"] for other in others}
    assert rocq().reference(SEALED) == SEALED.solution


def test_what_can_t_be_used_is_refused() -> None:
    """Options, cards and folders, each with its fault."""
    with pytest.raises(ExperimentError, match=r"options.cpu: unknown key. Did you mean 'cpu_s'"):
        rocq(cpu=1)
    for card, said in (
        ({}, "theorems: missing"),
        ({**CARD, "module": "Statement"}, "expected two modules"),
        ({**CARD, "module": "Coq"}, "own library"),
    ):
        with pytest.raises(TaskError, match=said):
            rocq().suite(SealedHalf(tests=SEALED.tests, card=card))
    with pytest.raises(RefereeError, match=r"tests/ has no Statement.v"):
        rocq().suite(SealedHalf(card=CARD))


def test_the_battery_has_the_seat_s_own_start_and_every_trick() -> None:
    """By name; each is another tree."""
    found = rocq().battery(OpenHalf(benchmark="d", name="n", instruction="", environment=Tree.of({"a": "b"})), SEALED)
    assert found["as_found"] == Tree.of({"a": "b"})
    assert {"admitted", "axiom", "notation", "shadowed_module", "planted_object", "endless_proof"} <= set(found)
    assert len({tree.digest for tree in found.values()}) == len(found)
