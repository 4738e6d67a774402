"""What the command referee makes of a series of hearings: which exhibit is heard when, and what stands in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import RefereeError
from harness.ports import RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from referees import command, command_bundle
from referees.command_bridge import Broken, Hearing, Order
from tests.referees.folder_room import folder_rooms

pytestmark = pytest.mark.anyio

CARD = {"runner": "tap", "command": ["sh", "it.sh"], "ids": ["a"], "program": ["./it"]}
PASS = Hearing(report=b"1..1\nok 1 - a\n", calls=1)
FAIL = Hearing(report=b"1..1\nnot ok 1 - a\n", calls=1)
NONSENSE = Hearing(report=b"nonsense\n", calls=1)
SLOW = Hearing(reading="TIMEOUT", detail="too slow")
LOST = Hearing(broken=Broken(why="the room is lost"))
ENDLESS = Hearing(broken=Broken(why="no end", like="TIMEOUT"))
DIED = Hearing(report=FAIL.report, calls=1, died=[("MEMORY", "call 1 died of signal 9")])
DIED_AND_PASSED = Hearing(report=PASS.report, calls=1, died=[("CRASH", "call 1 died of signal 6")])


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here."""
    return "asyncio"


async def ruled(monkeypatch: pytest.MonkeyPatch, hearings: list[Hearing]) -> tuple[Verdict, str]:
    """The verdict on these hearings, and who was heard: `e` the exhibit, `r` the reference."""
    heard = []

    async def hear(order: Order, rooms: RoomOpener) -> Hearing:
        heard.append("r" if "reference" in order.exhibit else "e")
        return hearings[len(heard) - 1]

    monkeypatch.setattr(command, "hear", hear)
    sealed = SealedHalf(solution=Tree.of({"reference": ""}), card=CARD)
    task = OpenHalf(benchmark="b", name="n", instruction="")
    verdict = await command.CommandReferee().judge(Exhibit(tree=Tree()), task, sealed, folder_rooms)
    assert len(heard) == len(hearings)
    return verdict, "".join(heard)


@pytest.mark.parametrize(
    ("hearings", "reading", "who"),
    [
        ([PASS], "PASS", "e"),
        ([FAIL], "FAIL", "e"),
        ([DIED], "MEMORY", "e"),
        ([DIED_AND_PASSED], "PASS", "e"),
        ([SLOW, SLOW], "TIMEOUT", "ee"),
        ([SLOW, PASS], "PASS", "ee"),
        ([LOST, PASS, PASS], "PASS", "ere"),
        ([LOST, PASS, FAIL], "FAIL", "ere"),
        ([LOST, PASS, LOST], "CRASH", "ere"),
        ([NONSENSE, PASS, NONSENSE], "CRASH", "ere"),
        ([LOST, PASS, ENDLESS], "TIMEOUT", "ere"),
        ([SLOW, ENDLESS, PASS, ENDLESS], "TIMEOUT", "eere"),
    ],
)
async def test_what_stands(monkeypatch: pytest.MonkeyPatch, hearings: list[Hearing], reading: str, who: str) -> None:
    """TIMEOUT if it comes twice; a broken hearing by what comes after the reference's."""
    verdict, heard = await ruled(monkeypatch, hearings)
    assert (verdict.reading, heard) == (reading, who)
    assert (verdict.cpu_s is None) == (hearings[-1].broken is not None or hearings[-1] is NONSENSE)


@pytest.mark.parametrize("control", [LOST, NONSENSE, FAIL, SLOW])
async def test_what_breaks_with_the_reference_too_is_nobodys(monkeypatch: pytest.MonkeyPatch, control: Hearing) -> None:
    """Unless the reference passes, the referee could not work; both are told."""
    with pytest.raises(RefereeError, match=r"the room is lost\. With the reference in its place: "):
        await ruled(monkeypatch, [LOST, control])


def test_the_digest_covers_all_that_takes_part() -> None:
    """Every module of the referee but the battery, which takes no part in a judgement."""
    folder = Path(command.__file__).parent
    names = {path.stem for path in folder.glob("command*.py")} - {"command_battery"}
    assert names <= set(command_bundle.sources())
