"""
The referee `lean` in rooms that play what Lean's programs print. What `lean` says and leaves was recorded from Lean 4.35.0;
what `leanchecker` says, and in what order, is by its source, since none could be had. Held here: the command lines, the
reading, that silence passes no gate, and each way that is known to bring a compiled file past the checker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from harness.errors import RefereeError
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from referees.proof import lean
from tests.referees.proof_rooms import Played, ScriptedRooms

pytestmark = pytest.mark.anyio

CARD = {"theorems": {"main": "asked"}, "axioms": ["propext", "Classical.choice"], "forbidden": ["sorry"]}
SEALED = SealedHalf(tests=Tree.of({"Statement.lean": "def Statement.asked : Prop := True"}), card=CARD)
OPEN = OpenHalf(benchmark="demo", name="it", instruction="")

Steps = Mapping[str, Played | Callable[[str], Played]]


class Programs:
    """Plays lean and its checker; `steps` takes the place of the one that goes well, by the gate it belongs to."""

    def __init__(self, **steps: Played | Callable[[str], Played]) -> None:
        self.steps = steps

    def __call__(self, words: Sequence[str], files: Mapping[str, bytes]) -> Played:
        """One program, by the gate that it runs for."""
        check = next((name.partition(".")[0] for name in files if name.startswith("Proctor_")), "")
        if words[-1] == "Form.lean":
            found = re.search(rb'"([0-9a-f]+) end"', files["Form.lean"])
            assert found is not None
            step, check = "form", f"Proctor_{found[1].decode()}"
        elif words[0] == "sh":
            step = "kit"
        elif words[-1] == "Proof.lean":
            step = "compile"
        elif words[-1] == "Used.lean":
            step = "axioms"
        else:
            step = "kernel" if words[-1] == "Proof" else "statement"
        played = self.steps.get(step) or getattr(self, f"_{step}")
        return played if isinstance(played, Played) else played(check)

    def _kit(self, check: str) -> Played:
        return Played(left={"Statement.olean": b"sealed", "Proof.olean": b"stand-in", f"{check}.olean": b"check"})

    def _compile(self, _: str) -> Played:
        return Played(left={"Proof.olean": b"exhibit"})

    def _form(self, check: str) -> Played:
        return formed()(check)

    def _kernel(self, _: str) -> Played:
        return Played(stdout="replaying Proof\n")

    def _statement(self, check: str) -> Played:
        return Played(stdout=f"replaying {check}\n")

    def _axioms(self, check: str) -> Played:
        return used(" 1 propext")(check)


def formed(*faults: str) -> Callable[[str], Played]:
    """What the judge's own program says of the form of a compiled file."""
    said = ["reading", *(f"fault {fault}" for fault in faults), "end"]
    return lambda check: Played(stdout="".join(f"{check[8:]} {line}\n" for line in said))


def unread(stderr: str, status: int = 1) -> Callable[[str], Played]:
    """The end of the same program when `lean` can't read the compiled file."""
    return lambda check: Played(status=status, stdout=f"{check[8:]} reading\n", stderr=stderr)


def used(text: str) -> Callable[[str], Played]:
    """An answer to the judge's own program."""
    return lambda check: Played(stdout=f"{check[8:]} {check}.goal_0{text}\n{check[8:]} end\n")


async def judged(programs: Programs, text: str = "theorem main : Statement.asked := trivial") -> Verdict:
    """The verdict on a text while the programs do as they are told."""
    exhibit = Exhibit(tree=Tree.of({"Proof.lean": text}))
    return await lean().judge(exhibit, OPEN, SEALED, ScriptedRooms(programs))


async def test_a_proof_passes_five_gates() -> None:
    """The exhibit's text is in one room only; its compiled file takes the stand-in's place in those that check."""
    rooms = ScriptedRooms(Programs())
    exhibit = Exhibit(tree=Tree.of({"Proof.lean": "theorem", "Statement.lean": "own", "lakefile.lean": "own"}))
    verdict = await lean().judge(exhibit, OPEN, SEALED, rooms)
    assert (verdict.reading, verdict.detail) == ("PASS", "all 5 gates passed")
    kit, compiling, form, *checking = rooms.held
    (check,) = (name for name in kit if name.startswith("Proctor_"))
    assert kit["Proof.lean"] == b"import Statement\naxiom main : Statement.asked\n"
    assert b".goal_0 : Statement.asked := @main\n" in kit[check]
    assert compiling == {"Statement.olean": b"sealed", "Proof.lean": b"theorem"}
    assert set(form) == {"Proof.olean", "Form.lean"}
    assert all(room["Proof.olean"] == b"exhibit" and "Proof.lean" not in room for room in checking)
    assert rooms.ran[1][:2] == ["env", "LEAN_PATH=/workspace"]
    assert (
        b"importModules #[{ module := `" + check[:-5].encode() + b" }] {} (loadExts := false)"
        in checking[-1]["Used.lean"]
    )


MISMATCH = Played(
    status=1,
    stdout="replaying Proof\n",
    stderr="leanchecker found a problem in Proof\nuncaught exception: (kernel) declaration type mismatch, 'main' has type",
)
"""The checker says what it replays before it knows how that ends."""
ABSENT = Played(
    status=1, stderr="leanchecker found a problem in Proctor_1\nuncaught exception: (kernel) unknown constant 'main'"
)
OTHER_TYPE = """Proof.lean:3:34: error: Type mismatch
  True.intro
has type
  True
but is expected to have type
  Statement.asked
Proof.lean:3:0: error: internal exception #3
"""
"""By Lean 4.35.0, on its standard output."""
OF_A_MODULE = Played(left={"Proof.olean": b"exhibit", "Proof.olean.private": b"proofs", "Proof.olean.server": b""})
NO_THREAD = (
    "libc++abi: terminating due to uncaught exception of type lean::exception: failed to create thread: Resource"
)


@pytest.mark.parametrize(
    ("reading", "where", "steps"),
    [
        ("COMPILE", "Type mismatch", {"compile": Played(status=1, stdout=OTHER_TYPE)}),
        ("COMPILE", "failed to create thread", {"compile": Played(status=134, stderr=NO_THREAD)}),
        ("COMPILE", "begins with `module`", {"compile": OF_A_MODULE}),
        ("COMPILE", "no regular file Proof.olean", {"compile": Played()}),
        ("TIMEOUT", "gate 2", {"compile": Played(status=152)}),
        ("MEMORY", "gate 2", {"compile": Played(status=1, stderr="Stack overflow detected. Aborting.")}),
        ("KERNEL_REJECTED", "main is declared twice", {"form": formed("main is declared twice")}),
        ("KERNEL_REJECTED", "T.mk is filed under evil", {"form": formed("T.mk is filed under evil", "x is a quotient")}),
        ("KERNEL_REJECTED", "invalid header", {"form": unread("failed to read file './Proof.olean', invalid header")}),
        ("KERNEL_REJECTED", "cannot be read", {"form": unread("INTERNAL PANIC: out of memory")}),
        ("KERNEL_REJECTED", "cannot be read", {"form": unread("", status=139)}),
        ("TIMEOUT", "gate 3", {"form": unread("", status=152)}),
        ("MEMORY", "gate 3", {"form": Played(status=1, stderr="INTERNAL PANIC: out of memory")}),
        ("UNSCORABLE", "form of the compiled file", {"form": Played()}),
        ("UNSCORABLE", "form of the compiled file", {"form": Played(status=1, stdout="Form.lean:9:2: error: unknown")}),
        ("UNSCORABLE", "form of the compiled file", {"form": unread("", status=0)}),
        ("UNSCORABLE", "form of the compiled file", {"form": lambda _: formed()("Proctor_other")}),
        ("KERNEL_REJECTED", "gate 3 of 5, kernel: leanchecker", {"kernel": MISMATCH}),
        ("UNSCORABLE", "does not say", {"kernel": Played(stdout=MISMATCH.stdout, stderr=MISMATCH.stderr)}),
        ("UNSCORABLE", "does not say that it replayed Proof", {"kernel": Played()}),
        ("UNSCORABLE", "does not say", {"kernel": Played(stdout="not replaying Proof\n")}),
        ("STATEMENT_ALTERED", "gate 4 of 5, statement", {"statement": MISMATCH}),
        ("INTERFACE_MISS", "no theorem main in Proof.lean", {"statement": ABSENT}),
        ("AXIOMS_FAIL", "sorryAx", {"axioms": used(" 2 propext sorryAx")}),
        ("AXIOMS_FAIL", "Lean.ofReduceBool", {"axioms": used(" 1 Lean.ofReduceBool")}),
        ("AXIOMS_FAIL", "a?b", {"axioms": used(" 1 a?b")}),
        ("PASS", "all 5", {"axioms": used(" 2 propext Classical.choice")}),
        ("PASS", "all 5", {"axioms": used(" 0")}),
        ("UNSCORABLE", "could not be read", {"axioms": used(" 0 sorryAx")}),
        ("UNSCORABLE", "could not be read", {"axioms": used("")}),
        ("UNSCORABLE", "could not be read", {"axioms": Played()}),
        ("UNSCORABLE", "could not be read", {"axioms": Played(status=1, stdout="end")}),
        ("UNSCORABLE", "could not be read", {"axioms": lambda check: used(" 0")("Proctor_other")}),
    ],
)  # fmt: skip
async def test_ends(reading: str, where: str, steps: Steps) -> None:
    """Each end of each program comes to its one class."""
    verdict = await judged(Programs(**steps))
    assert verdict.reading == reading, verdict.detail
    assert where in verdict.detail


async def test_lean_may_reserve_addresses_beside_its_memory() -> None:
    """Under an address space of its memory alone, Lean 4.35.0 cannot create its threads: no proof at all would pass."""
    rooms = ScriptedRooms(Programs())
    await lean(memory_bytes=256 << 20).judge(Exhibit(tree=Tree.of({"Proof.lean": ""})), OPEN, SEALED, rooms)
    assert {(256 << 20) + (16 << 30)} == {int(bound) << 10 for bound in rooms.addresses}
    assert "LEAN_NUM_THREADS=2" in rooms.ran[1]


async def test_the_screen_reads_lean() -> None:
    """A word in a comment is none."""
    assert (await judged(Programs(), "-- sorry\ntheorem")).reading == "PASS"
    refused = await judged(Programs(axioms=used(" 1 sorryAx")), "theorem main : Statement.asked := sorry")
    assert (refused.reading, refused.would_be) == ("SCREENED", "AXIOMS_FAIL")


TRICKS = {
    "sorry": "theorem main : Statement.asked := sorry",
    "sorry by its quoted name": "theorem main : Statement.asked := \u00absorry\u00bb",
    "the axiom behind sorry": "theorem main : Statement.asked := sorryAx _ false",
    "admit": "theorem main : Statement.asked := by admit",
    "an axiom": "private axiom absurd : False",
    "an axiom after a comment that ends at once": "/--/ -/ axiom absurd : False",
    "unsafe": "@[simp] unsafe def x : False := unsafeCast ()",
    "the compiler's word": "theorem main : Statement.asked := by native_decide",
    "the axiom behind the compiler's word": "example := Lean.ofReduceBool",
    "another program for a definition": "@[implemented_by x] def y : Nat := 0",
    "a foreign program": '@[extern "x"] opaque y : Nat',
    "another program by a theorem": "@[csimp] theorem x : @f = @g := h",
    "no kernel": "set_option debug.skipKernelTC true in theorem main : Statement.asked := x",
    "a command that changes the environment": "run_cmd Lean.modifyEnv fun env => env",
    "a program that writes a compiled file": '#eval IO.FS.writeFile "Proof.olean" ""',
    "a program that runs in whoever imports": "initialize IO.println x",
    "an elaborator": 'elab "x" : term => pure default',
    "a term's elaborator": "example := by_elab pure default",
    "a macro": 'local macro "x" : term => `(True)',
    "rules of a macro": "macro_rules | `(x) => `(True)",
    "the means of all of these": "import Lean.Elab",
}


@pytest.mark.parametrize("trick", TRICKS)
async def test_the_list_of_the_page_refuses_each_way_around_the_kernel(trick: str) -> None:
    """A card that forbids what the page on proofs lists screens them; the reading without it is kept beside."""
    page = (Path(__file__).parents[2] / "docs" / "referees" / "proofs.md").read_text(encoding="utf-8")
    listed = re.findall(r"`([^`]+)`", page.partition("For Lean:")[2].partition(". ")[0])
    sealed = SealedHalf(tests=SEALED.tests, card={**CARD, "forbidden": listed})
    exhibit = Exhibit(tree=Tree.of({"Proof.lean": TRICKS[trick]}))
    verdict = await lean().judge(exhibit, OPEN, sealed, ScriptedRooms(Programs(axioms=used(" 1 absurd"))))
    assert (verdict.reading, verdict.would_be) == ("SCREENED", "AXIOMS_FAIL")


async def test_an_image_without_lean_is_the_referee_s_failure() -> None:
    """The error says what to install."""
    with pytest.raises(RefereeError, match=r"lacks a program .*lean.*: a Lean 4 toolchain has lean and leanchecker"):
        await judged(Programs(kit=Played(status=127, stderr="env: 'lean': No such file or directory")))


def test_the_battery_is_in_lean() -> None:
    """Every candidate is another, in files that the referee looks at, or in none of them."""
    found = lean().battery(OPEN, SEALED)
    assert {"sorry", "axiom", "no_kernel", "planted_object"} <= set(found)
    assert len({tree.digest for tree in found.values()}) == len(found)
    assert all("Proof.lean" in tree for name, tree in found.items() if name not in {"as_found", "planted_object"})
