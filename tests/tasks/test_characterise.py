"""Characterising a suite: what each word means, and the margin, with a referee that says what the candidate's file says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.errors import RefereeError
from harness.tasks.characterise import Characterised, characterise, least_margin
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, TestReading, TierReading, Verdict

STANDINGS: Mapping[str, Standing] = {
    "PASS": "accepted",
    "FAIL": "rejected",
    "NO_BUILD": "rejected",
    "UNSCORABLE": "unscorable",
}


class Sayer:
    """
    Reads `READING PASSED [TEST...]` from the file `say` of the exhibit, the readings of tests last; BROKEN is the
    referee's own failure.
    """

    name = "sayer"
    classes = STANDINGS

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """No suite."""
        return {}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The solution."""
        return sealed.solution

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """One that is rejected and one that is not."""
        return {"empty": Tree.of({"say": "FAIL 0"}), "fooled": Tree.of({"say": "PASS 9"})}

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: Any) -> Verdict:
        """What the file says."""
        reading, passed, *said = exhibit.tree.text("say").split()
        if reading == "BROKEN":
            raise RefereeError("out of order")
        tier = TierReading(tier="suite", reading=reading, passed=int(passed), total=9)
        evidence = Evidence(code=exhibit.digest, suite="s", execution="e")
        tests = tuple(TestReading(id=str(index), reading=word) for index, word in enumerate(said))
        standing = STANDINGS[reading]
        return Verdict(reading=reading, standing=standing, evidence=evidence, tiers=(tier,), tests=tests, detail="said")

    def public_check(self, task: OpenHalf, sealed: SealedHalf, rooms: Any) -> Any:
        """None."""
        raise AssertionError("not asked for")


def made(**mutants: str) -> Task:
    """A task whose mutants say what is given."""
    text = 'why = "w"\n[[edit]]\nfile = "say"\nfind = "PASS 9"\nreplace = "{}"\n'
    trees = Tree.of({f"{name}.toml": text.format(said) for name, said in mutants.items()})
    sealed = SealedHalf(solution=Tree.of({"say": "PASS 9"}), mutants=trees)
    return Task(open=OpenHalf(benchmark="b", name="n", instruction=""), sealed=sealed)


async def rows(task: Task, **options: Any) -> dict[str, Characterised]:
    """The rows by name."""
    return {row.name: row for row in await characterise(Sayer(), task, None, **options)}  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_words() -> None:
    """Accepted, rejected, killed, survived and not measured are told apart; each holds only where it must be so."""
    found = await rows(made(a="FAIL 7", b="PASS 8", c="BROKEN 0", d="UNSCORABLE 0"), at_once=3)
    assert [(row.name, row.kind, row.word, row.holds) for row in found.values()] == [
        ("reference", "reference", "accepted", True),
        ("empty", "battery", "rejected", True),
        ("fooled", "battery", "accepted", False),
        ("a", "mutant", "killed", True),
        ("b", "mutant", "survived", False),
        ("c", "mutant", "not measured", False),
        ("d", "mutant", "not measured", False),
    ]
    assert (found["a"].failed, found["a"].total, found["c"].reading, found["c"].detail) == (2, 9, None, "out of order")


@pytest.mark.anyio
async def test_a_mutant_that_does_not_build_measures_nothing() -> None:
    """
    No test ran, and any suite would reject it. Where a test did run, or the referee tells of none, it is killed; a
    degenerate candidate is rejected whatever did it.
    """
    said = {"a": "NO_BUILD 0 NOT_RUN NOT_RUN", "b": "NO_BUILD 0 FAIL NOT_RUN", "c": "NO_BUILD 0", "d": "FAIL 0 NOT_RUN"}
    found = await rows(made(**said))
    assert [found[name].word for name in said] == ["not measured", "killed", "killed", "killed"]
    assert (found["a"].holds, found["a"].reading, found["a"].failed) == (False, "NO_BUILD", None)
    assert found["a"].detail == "it does not build, so that no test ran: plant a fault in what builds: said"
    assert least_margin([found["a"]]) is None

    class Unbuilt(Sayer):
        def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
            return {"empty": Tree.of({"say": said["a"]})}

    [row] = await characterise(Unbuilt(), made(), None, kinds=["battery"])  # type: ignore[arg-type]
    assert (row.word, row.holds) == ("rejected", True)


@pytest.mark.anyio
async def test_margin() -> None:
    """The margin is the fewest failed tests of a mutant that was measured; without one it is undefined, not 0."""
    assert least_margin(list((await rows(made(a="FAIL 7", b="FAIL 3"))).values())) == 2
    assert least_margin(list((await rows(made(a="FAIL 7", b="PASS 9 "))).values())) == 0
    assert least_margin(list((await rows(made(c="BROKEN 0"))).values())) is None
    assert least_margin([]) is None
    # What was not run has not failed; where nothing that was run has, no margin is known.
    assert least_margin(list((await rows(made(a="FAIL 2 PASS PASS TIMEOUT" + 6 * " NOT_RUN"))).values())) == 1
    assert least_margin(list((await rows(made(a="FAIL 0" + 9 * " NOT_RUN"))).values())) is None


@pytest.mark.anyio
async def test_kinds_can_be_chosen() -> None:
    """Only the kinds asked for are judged."""
    assert list(await rows(made(a="FAIL 7"), kinds=("reference", "mutant"))) == ["reference", "a"]
