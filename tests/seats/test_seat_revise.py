"""The revise seat: what replaces the state, what is retained, which evidence is shown, what ships, when it ends."""

import anyio
import pytest

from arms.evidence import CurrentEvidence, GuardedEvidence, NoEvidence, StaleEvidence
from arms.text import plain
from harness import plugins
from harness.canonical import canonical_bytes, digest_bytes
from harness.errors import PluginError, RefereeError, SeatError, WorkspaceError
from harness.seats.revise import ReviseSeat
from harness.seats.revise_asking import CONTRACT, STATE
from harness.tree import Tree
from harness.views import PublicReading
from tests.fake_workspace import ran
from tests.seats.desks import FakeModel, task
from tests.seats.revisions import RIGHT, WORSE, WRONG, check, patch, real_python, sat

pytestmark = pytest.mark.anyio

KEEP = "ACTION: KEEP"
FAILED = "FAIL: 1 of 3 checks passed\nadd(1, 2) should give 3"
PASSED = "PASS: 3 of 3 checks passed"


def sha(code):
    """How a state is known."""
    return digest_bytes(code.encode())


def shown(table):
    """The evidence of each prompt: failed, passed or none."""
    return ["fail" if FAILED in text else "pass" if PASSED in text else None for text in table.model.prompts]


async def test_a_wrong_start_is_repaired_and_green_ends_it(bench):
    """The first revision that leaves an accepted state is the last, and its bytes are certified."""
    table = await sat(bench, patch(RIGHT), patch(WORSE), start=WRONG)
    assert table.room.files["solution.py"] == RIGHT.encode()
    assert len(table.model.requests) == 1
    assert table.declared.note == "1 of 2 revisions, 0 escalated; the current state ships, certified"
    (certified,) = table.events("certified")
    assert (certified["code_sha256"], certified["restored"]) == (sha(RIGHT), False)


async def test_forced_revisions_are_all_asked(bench):
    """Neither an accepted state nor an escalation ends a forced run."""
    table = await sat(bench, KEEP, "ACTION: ESCALATE: no idea", KEEP, stop="forced")
    assert [event["action"] for event in table.events("revised")] == ["keep", "escalate", "keep"]
    assert table.declared.note == "3 of 3 revisions, 1 escalated; the current state ships, certified"


async def test_an_escalation_ends_a_run_that_may_end(bench):
    """With the reason in the transcript, and the state as it was."""
    table = await sat(bench, "ACTION: ESCALATE: the task contradicts itself", KEEP, start=WRONG)
    (told,) = table.events("revised")
    assert (told["action"], told["detail"]) == ("escalate", "the task contradicts itself")
    assert table.room.files["solution.py"] == WRONG.encode()
    assert table.declared.note == "1 of 2 revisions, 1 escalated; the current state ships, uncertified"


async def test_a_green_start_is_asked_once(bench):
    """A seat that never called its model has not shown that it booted: one revision is always asked."""
    table = await sat(bench, KEEP, KEEP)
    assert len(table.model.requests) == 1


async def test_the_last_verified_state_is_put_back_byte_for_byte(bench):
    """Odd bytes, line ends and a missing newline at the end included; without `restore` the loss ships."""
    odd = "def add(a, b):\r\n    return a + b  # é\t "
    tier = check()
    tier.passed = lambda code: 3 if code == odd else 0
    table = await sat(bench, patch(WRONG), start=odd, stop="forced", check=tier)
    assert table.room.files["solution.py"] == odd.encode()
    (certified,) = table.events("certified")
    assert certified["restored"]
    assert (certified["code_sha256"], certified["current_sha256"]) == (sha(odd), sha(WRONG))
    assert table.declared.note.endswith("the last verified state ships, certified")
    table = await sat(bench, patch(WRONG), start=odd, stop="forced", check=tier, restore=False)
    assert table.room.files["solution.py"] == WRONG.encode()
    (certified,) = table.events("certified")
    assert not certified["restored"]
    assert certified["verified_sha256"] == sha(odd)
    assert table.declared.note.endswith("the current state ships, uncertified")


async def test_streams_of_evidence(bench):
    """`current` is of the state itself, `stale` of the one before the last edit, `none` and a text arm see none."""
    replies = (patch(WRONG), patch(RIGHT), KEEP)
    for arm, expected in (
        (CurrentEvidence(), ["pass", "fail", "pass"]),
        (StaleEvidence(), ["pass", "pass", "fail"]),
        (NoEvidence(), [None] * 3),
        (plain(), [None] * 3),
    ):
        table = await sat(bench, *replies, arm=arm, stop="forced")
        assert shown(table) == expected
        told = [event["evidence"] for event in table.events("revision")]
        states = [event["state_sha256"] for event in table.events("revision")]
        assert states == [sha(RIGHT), sha(WRONG), sha(RIGHT)]
        for evidence, state in zip(told, states, strict=True):
            assert evidence is None or evidence["stale"] == (evidence["code_sha256"] != state)


async def test_evidence_is_carried_from_before(bench):
    """With `before`, the first revision already has a stale trace; the file itself never reaches a prompt."""
    table = await sat(bench, KEEP, start=RIGHT, before=WRONG, arm=StaleEvidence())
    assert shown(table) == ["fail"]
    assert WRONG not in table.model.prompts[0]
    (asked,) = table.events("revision")
    assert (asked["evidence"]["code_sha256"], asked["evidence"]["stale"]) == (sha(WRONG), True)
    table = await sat(bench, KEEP, start=RIGHT, before=WRONG, arm=CurrentEvidence())
    assert shown(table) == ["pass"]


async def test_a_guard_rejects_or_refreshes_what_is_stale_and_nothing_else(bench):
    """Rejected there is no evidence; refreshed there is a new run's, of the state itself; what is current is shown."""
    for how, told, expected, runs in (("reject", "rejected", None, 0), ("refresh", "refreshed", "pass", 1)):
        table = await sat(bench, KEEP, start=RIGHT, before=WRONG, arm=GuardedEvidence(), on_stale=how)
        assert shown(table) == [expected]
        assert table.events("revision")[0]["evidence_handling"] == told
        assert len(table.desk.check.codes) == 3 + runs
    table = await sat(bench, KEEP, start=WRONG, arm=GuardedEvidence())
    assert shown(table) == ["fail"]
    assert table.events("revision")[0]["evidence_handling"] == "shown"


async def test_a_correct_state_destroyed_by_a_stale_trace_is_kept_by_the_guard(bench):
    """The model believes what it is shown: of the state before, that loses a correct one."""

    def believes(request):
        return patch(WORSE) if FAILED in request.messages[-1].content else KEEP

    for arm, left in ((StaleEvidence(), WORSE), (GuardedEvidence(), RIGHT), (CurrentEvidence(), RIGHT)):
        table = await sat(
            bench, model=FakeModel(believes), start=RIGHT, before=WRONG, arm=arm, stop="forced", restore=False
        )
        assert table.room.files["solution.py"] == left.encode()


async def test_the_same_code_again_is_no_edit(bench):
    """Nothing is tried or run, and evidence is carried from where it was."""
    table = await sat(bench, patch(RIGHT), stop="forced", arm=StaleEvidence())
    (told,) = table.events("revised")
    assert (told["action"], told["note"], told["admitted"]) == ("patch", "no-change", None)
    assert not table.room.calls


async def test_every_prompt_has_the_arm_the_state_and_the_contract(bench):
    """In this order, whatever the arm; each revision is a conversation of its own with a seed of its own."""
    table = await sat(bench, patch(WRONG), patch(RIGHT), start=WORSE, arm=NoEvidence(), stop="forced", system="Brief.")
    for text, code in zip(table.model.prompts, (WORSE, WRONG), strict=True):
        parts = [text.index(part) for part in ("Add.", STATE, f"```python\n{code}```", CONTRACT)]
        assert parts == sorted(parts)
    assert [request.seed for request in table.model.requests] == [table.desk.seeds.seed(n) for n in (1, 2)]
    assert [[message.role for message in request.messages] for request in table.model.requests] == [
        ["system", "user"]
    ] * 2
    assert [event["prompt_sha256"] for event in table.events("revision")] == [
        digest_bytes(text.encode()) for text in table.model.prompts
    ]


async def test_without_a_public_tier_nothing_is_verified(bench):
    """There is no evidence then, no reading, and no certificate; patches are admitted all the same."""
    table = bench(
        FakeModel(patch(WRONG), KEEP),
        files={"start.py": RIGHT},
        arm=CurrentEvidence(),
        programs={"python3": real_python},
    )
    declared = await ReviseSeat(revisions=2).sit(table.desk)
    assert declared.note == "2 of 2 revisions, 0 escalated; the current state ships, uncertified"
    assert table.room.files["solution.py"] == WRONG.encode()
    assert [event["evidence"] for event in table.events("revision")] == [None, None]
    assert [event["reading"] for event in (*table.events("start"), *table.events("certified"))] == [None, None]


async def test_a_stop_in_the_middle_leaves_what_ships(bench):
    """A limit that strikes while the model is asked leaves the state, verified if it may be restored."""
    for restore, left in ((True, RIGHT), (False, WRONG)):
        scope = anyio.CancelScope()

        async def stopped(_request, scope=scope):
            scope.cancel()
            await anyio.sleep_forever()

        table = bench(
            FakeModel(patch(WRONG), stopped),
            files={"start.py": RIGHT},
            check=check(),
            programs={"python3": real_python},
        )
        with scope:
            await ReviseSeat(revisions=3, stop="forced", restore=restore).sit(table.desk)
        assert scope.cancelled_caught
        assert table.room.files["solution.py"] == left.encode()
        assert table.names()[-1] == "revision"


async def test_failures_of_ours_are_raised(bench):
    """A public tier that breaks, a Python that is not there, an end that is not known: none is an action."""

    async def breaks(_code):
        raise RefereeError("no room")

    with pytest.raises(RefereeError, match="no room"):
        await sat(bench, KEEP, check=breaks)
    with pytest.raises(WorkspaceError, match="could not try a patch: exit status 127: python3: not found"):
        await sat(bench, patch(WRONG), programs={})

    async def unknown(call):
        done = await real_python(call)
        return ran(stdout=done.stdout, status=None)

    with pytest.raises(WorkspaceError, match="is not known"):
        await sat(bench, patch(WRONG), programs={"python3": unknown})


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"star.py": RIGHT}, "start: unknown file of the task 'start.py'"),
        ({"start.py": b"\xff"}, "is no UTF-8: byte 0"),
    ],
)
async def test_a_start_that_is_not_there_is_refused(bench, files, said):
    """With the name that was looked for, and what there is."""
    table = bench(FakeModel(KEEP), task=task(environment=Tree.of(files)), check=check())
    with pytest.raises(SeatError, match=said):
        await ReviseSeat().sit(table.desk)


async def test_an_arm_with_an_unknown_stream_is_refused(bench):
    """By its name, with the streams there are."""

    class Odd(NoEvidence):
        evidence = "yesterday"

    with pytest.raises(SeatError, match="arm 'none': evidence: unknown stream 'yesterday'"):
        await sat(bench, KEEP, arm=Odd())


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("revisions", 0), ("revisions", 65), ("revisions", True), ("stop", "red"), ("stop", None), ("start", ""),
        ("start", "../x"), ("before", "/x"), ("file", 1), ("on_stale", "show"), ("restore", 1), ("timeout_s", 0),
        ("timeout_s", float("nan")), ("timeout_s", 601), ("system", " "),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used_are_refused(option, value):
    """When the seat is made, by name."""
    with pytest.raises(PluginError, match=option):
        ReviseSeat(**{option: value})


def test_options_are_pinned_as_given():
    """Each option is in what a registration pins, which is JSON; the seat is registered."""
    seat = plugins.load("seats", "revise")(before="old.py", stop="forced", on_stale="refresh")
    assert seat.options() == {
        "revisions": 3, "stop": "forced", "start": "start.py", "before": "old.py", "file": "solution.py",
        "on_stale": "refresh", "restore": True, "timeout_s": 10.0, "system": None,
    }  # fmt: skip
    canonical_bytes(seat.options())


def test_the_words_of_the_seat_are_frozen():
    """A change of the contract is a change of every revision that was ever run: it is made on purpose or not at all."""
    assert digest_bytes(f"{STATE}\n{CONTRACT}".encode())[:16] == "12ccaef9fe033196"


async def test_suite_and_execution_of_each_reading_are_kept(bench):
    """The certificate names the suite and a run of its own, another than the reading it certifies again."""
    runs = iter(range(99))

    async def tier(_code):
        return PublicReading(reading="PASS", accepted=True, passed=1, total=1, suite="s", execution=str(next(runs)))

    table = await sat(bench, KEEP, check=tier, arm=CurrentEvidence())
    (start,), (asked,), (certified,) = (table.events(kind) for kind in ("start", "revision", "certified"))
    assert start["reading"]["execution"] == asked["evidence"]["execution"] == "0"
    assert (certified["reading"]["suite"], certified["reading"]["execution"]) == ("s", "1")
