"""The oneshot seat: rounds, what a packet knows, what ships at every moment, and what is written down."""

import json

import anyio
import pytest

from arms.packets import PacketB, PacketP
from harness import plugins
from harness.canonical import canonical_bytes, digest_bytes
from harness.errors import ModelServerError, PluginError, SeatError
from harness.seats.oneshot import MAX_CANDIDATE_BYTES, Candidate, OneShotSeat, incumbent, shipped
from harness.tree import Tree
from harness.views import PublicReading
from tests.seats.desks import FakeCheck, FakeModel, fenced, said, task

pytestmark = pytest.mark.anyio

A, B, C = ("def add(a, b):\n    return 0", "def add(a, b):\n    return 1", "def add(a, b):\n    return a + b")
SCORES = {A: 1, B: 0, C: 3, "": 0}


def check():
    """A public tier that gives the candidates above their scores."""
    return FakeCheck(lambda code: SCORES[code])


async def stopped(scope):
    """A call during which a limit stops the seat."""
    scope.cancel()
    await anyio.sleep_forever()


async def test_rounds_end_when_the_public_tests_accept(bench):
    """The second candidate passes, so the third round isn't begun and the accepted candidate is in the workspace."""
    table = bench(FakeModel(fenced(A), fenced(C), fenced(B)), check=check())
    declared = await OneShotSeat(rounds=3).sit(table.desk)
    assert declared.note == "the public tests accepted the candidate of round 2 of 3"
    assert table.room.files["solution.py"] == C.encode()
    assert len(table.model.requests) == 2


async def test_each_round_has_its_own_seed_and_conversation(bench):
    """The seed is drawn for the round's number, and no earlier message is sent again."""
    table = bench(FakeModel(fenced(A)), check=check(), arm=PacketP())
    await OneShotSeat(rounds=3, system="Be brief.").sit(table.desk)
    assert [request.seed for request in table.model.requests] == [table.desk.seeds.seed(n) for n in (1, 2, 3)]
    assert [[m.role for m in request.messages] for request in table.model.requests] == [["system", "user"]] * 3
    assert {request.messages[0].content for request in table.model.requests} == {"Be brief."}
    assert {request.decoding for request in table.model.requests} == {table.desk.decoding}


async def test_p_sees_the_incumbent_and_b_does_not(bench):
    """P's packet shows the candidate that passed most public tests so far, which need not be the last; B's shows none."""
    for arm, shown in ((PacketP(), [None, A, A, A]), (PacketB(), [None, None, None, None])):
        table = bench(FakeModel(fenced(A), fenced(B)), check=check(), arm=arm)
        await OneShotSeat(rounds=4).sit(table.desk)
        seen = [next((code for code in (A, B) if code in text), None) for text in table.model.prompts]
        assert seen == shown
        assert not [text for text in table.model.prompts if "add(1, 2)" in text]


async def test_without_public_tests_every_round_is_a_first(bench):
    """Nothing can be said to have failed: each packet is the first round's, and the last candidate is left."""
    table = bench(FakeModel(fenced(A), fenced(B)), arm=PacketP())
    declared = await OneShotSeat(rounds=2).sit(table.desk)
    assert table.model.prompts[0] == table.model.prompts[1]
    assert table.room.files["solution.py"] == B.encode()
    assert declared.note == "2 rounds done; the candidate of round 2 is left"


async def test_an_accepted_candidate_is_kept(bench):
    """With `stop_on_pass` off the rounds go on, and what ships is the accepted candidate, not a later worse one."""
    table = bench(FakeModel(fenced(C), fenced(A)), check=check())
    await OneShotSeat(rounds=2, stop_on_pass=False).sit(table.desk)
    assert len(table.model.requests) == 2
    assert table.room.files["solution.py"] == C.encode()


async def test_the_workspace_holds_what_ships_at_every_moment(bench):
    """A seat that is stopped while it waits for the model leaves the candidate that would have been left then."""
    for stopped_in, left in ((2, C), (3, C)):
        scope = anyio.CancelScope()
        model = FakeModel(*[fenced(C), fenced(A)][: stopped_in - 1], lambda _, scope=scope: stopped(scope))
        table = bench(model, check=check())
        with scope:
            await OneShotSeat(rounds=4, stop_on_pass=False).sit(table.desk)
        assert scope.cancelled_caught
        assert len(table.model.requests) == stopped_in
        assert table.room.files["solution.py"] == left.encode()


async def test_a_candidate_is_there_before_it_is_checked(bench):
    """A public check that hangs doesn't cost the candidate: it was written first."""
    with anyio.CancelScope() as scope:
        table = bench(FakeModel(fenced(A)), check=lambda _: stopped(scope))
        await OneShotSeat().sit(table.desk)
    assert scope.cancelled_caught
    assert table.room.files["solution.py"] == A.encode()


async def test_a_reply_without_code_is_a_round(bench):
    """It counts as an empty candidate, is checked as one, and never takes the place of code."""
    table = bench(FakeModel(fenced(A), "I can't."), check=check(), arm=PacketP())
    declared = await OneShotSeat(rounds=2).sit(table.desk)
    assert table.desk.check.codes == [A, ""]
    assert [event["rule"] for event in table.events("extraction")] == ["one-block", "none"]
    assert table.room.files["solution.py"] == A.encode()
    assert declared.note == "2 rounds done; the candidate of round 1 is left"


async def test_no_code_at_all(bench):
    """Where no reply had code an empty file is left; a file of the task's own stays as it was."""
    table = bench(FakeModel("No."), check=check())
    assert (await OneShotSeat(rounds=2).sit(table.desk)).note == "2 rounds done; no reply had any code"
    assert table.room.files["solution.py"] == b""
    table = bench(FakeModel("No."), files={"src/a.py": "planted"}, check=check())
    await OneShotSeat(rounds=1, file="src/a.py").sit(table.desk)
    assert table.room.files["src/a.py"] == b"planted"


async def test_what_is_written_down(bench):
    """Each round leaves a `round`, an `extraction` and a `public` event, from which the round can be made again."""
    table = bench(FakeModel(fenced(A), fenced(C)), check=check(), arm=PacketP())
    await OneShotSeat(rounds=2).sit(table.desk)
    assert table.names() == ["round", "extraction", "public"] * 2
    first, second = table.events("round")
    assert (first["round"], first["rounds"], first["previous_round"]) == (1, 2, None)
    assert second["previous_round"] == 1
    assert second["seed_payload"] == "tests|cell|2"
    assert second["seed"] == table.desk.seeds.seed(2)
    assert second["prompt_sha256"] == digest_bytes(table.model.prompts[1].encode())
    assert table.events("extraction")[0]["code"] == A
    assert table.events("extraction")[0]["code_sha256"] == digest_bytes(A.encode())
    assert table.events("public")[0] == {
        **table.events("public")[0],
        "round": 1, "reading": "FAIL", "accepted": False, "passed": 1, "total": 3,
        "facts": [{"call": "add(1, 2)", "expected": "3"}],
    }  # fmt: skip


async def test_extras_are_the_conditions_own(bench):
    """The condition's extras are shown and no others; extras that the task doesn't have are our fault, by name."""
    half = task(extras={"statement": "theorem t", "hint": "mind zero"})
    table = bench(FakeModel(fenced(A)), task=half, extras="statement")
    await OneShotSeat(rounds=1).sit(table.desk)
    assert table.model.prompts == ["Add.\n\ntheorem t"]
    bad = bench(FakeModel(fenced(A)), task=half, extras="statment")
    with pytest.raises(SeatError, match="Did you mean 'statement'"):
        await OneShotSeat(rounds=1).sit(bad.desk)


async def test_an_arm_that_fails_is_not_the_subjects_fault(bench):
    """Whatever an arm raises or returns instead of text becomes a `SeatError` that names the arm and the round."""

    class Broken:
        name = "broken"
        seats = frozenset({"oneshot"})
        content = b""

        def __init__(self, answer):
            self.answer = answer

        def render(self, view):
            return self.answer(view)

    for answer in (lambda view: 1 / 0, lambda view: None, lambda view: "\ud800"):
        table = bench(FakeModel(fenced(A)), arm=Broken(answer))
        with pytest.raises(SeatError, match="arm 'broken', round 1"):
            await OneShotSeat().sit(table.desk)


async def test_a_model_servers_failure_comes_through(bench):
    """The seat neither retries nor hides it: whose fault it is was settled where it happened."""
    table = bench(FakeModel(fenced(A), ModelServerError("down")), check=check())
    with pytest.raises(ModelServerError, match="down"):
        await OneShotSeat(rounds=3).sit(table.desk)


@pytest.mark.parametrize(
    "reply",
    [
        "x" * 10_000_000,
        "```python\n" + "y" * 10_000_000,
        "[" * 100_000,
        "```python\nx = '\0'\n```",
        "```python\nx = '\ud800'\n```",
        "`" * 100_000,
    ],
    ids=["ten megabytes", "ten megabytes of code", "deep", "NUL", "surrogate", "backticks"],
)
async def test_hostile_replies_are_rounds(bench, reply):
    """Whatever the model answers, the round is counted, the transcript holds, and what is left is bounded."""
    table = bench(FakeModel(said(reply)), check=FakeCheck(lambda _: 0), arm=PacketP())
    await OneShotSeat(rounds=2).sit(table.desk)
    assert table.names() == ["round", "extraction", "public"] * 2
    assert len(table.room.files["solution.py"]) <= MAX_CANDIDATE_BYTES
    assert all(len(event["code"].encode()) <= MAX_CANDIDATE_BYTES for event in table.events("extraction"))


async def test_a_candidate_over_the_cap_is_told(bench):
    """Code of exactly the cap is a candidate; one byte more is none, and the transcript says why."""
    for size, over in ((MAX_CANDIDATE_BYTES, False), (MAX_CANDIDATE_BYTES + 1, True)):
        table = bench(FakeModel(fenced("#" * size)))
        await OneShotSeat(rounds=1).sit(table.desk)
        assert table.events("extraction")[0]["over_the_cap"] is over
        assert table.events("extraction")[0]["code_bytes"] == size
        assert len(table.room.files["solution.py"]) == (0 if over else size)


def candidates(*scores):
    """Candidates of rounds 1, 2, ... by their score; None is one without code."""
    made = []
    for number, score in enumerate(scores, start=1):
        passed = score or 0
        reading = PublicReading(reading="FAIL", accepted=passed == 3, passed=passed, total=3)
        made.append(Candidate(round=number, code="" if score is None else "code", reading=reading))
    return made


@pytest.mark.parametrize(
    ("scores", "best", "left"),
    [
        ((), None, None),
        ((None,), None, None),
        ((0, None), 1, 1),
        ((1, 0), 1, 2),
        ((1, 1, 0), 2, 3),
        ((0, 3, 1), 2, 2),
        ((3, 3), 2, 2),
    ],
)
def test_incumbent_and_shipped(scores, best, left):
    """A packet shows the most passed, newest on a tie; what ships is the newest accepted, else the newest with code."""
    made = candidates(*scores)
    assert getattr(incumbent(made), "round", None) == best
    assert getattr(shipped(made), "round", None) == left


@pytest.mark.parametrize(
    "bad",
    [
        {"rounds": 0}, {"rounds": 65}, {"rounds": True}, {"rounds": 2.0}, {"rounds": "2"},
        {"file": "/etc/passwd"}, {"file": "../x.py"}, {"file": ""}, {"file": 3}, {"file": "a\0b"},
        {"system": ""}, {"system": 7}, {"system": "\ud800"}, {"stop_on_pass": 1}, {"stop_on_pass": "yes"},
    ],
)  # fmt: skip
def test_bad_options_are_refused_when_the_seat_is_made(bad):
    """The option and its value are named, long before the first cell."""
    with pytest.raises(PluginError, match=f"seat 'oneshot': {next(iter(bad))}"):
        OneShotSeat(**bad)


def test_options_are_pinned_as_data():
    """What a registration pins is canonical JSON, and it makes the same seat again."""
    seat = plugins.load("seats", "oneshot")(rounds=4, file="src/./a.py")
    assert dict(seat.options()) == {
        "rounds": 4,
        "file": "src/a.py",
        "system": None,
        "stop_on_pass": True,
        "after_source": "end",
        "max_prompt_tokens": None,
    }
    again = OneShotSeat(**json.loads(canonical_bytes(dict(seat.options()))))
    assert again.options() == seat.options()
    with pytest.raises(TypeError, match="roundz"):
        OneShotSeat(roundz=2)


def test_the_task_tree_of_the_bench_is_what_the_room_holds(bench):
    """The bench of these tests is honest: the files that it puts into the room are those of the task's open half."""
    table = bench(FakeModel(""), files={"a.py": "1"})
    assert table.desk.task.environment == Tree.of({"a.py": "1"})
    assert list(table.room.files) == ["a.py"]
