"""The audit finds a served attempt outside the policy, and is not silent about what it can't see."""

import json

import pytest
from typer.testing import CliRunner

from cells.cell import transcript_path
from cells.cli import app
from cells.fence_audit import audit_fence
from harness.clock import SystemClock
from harness.errors import IntegrityError, UsageError
from harness.outcome import CellOutcome, Spend, outcome_to_json
from harness.record import Record
from harness.seats.oneshot import OneShotSeat
from harness.transcript import Transcript
from harness.values import Halt, Usage, VoidPrice
from tests.cells.houses import fake_backend, fakes, frozen_run


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """A function that records one try with these events, and audits the run."""

    async def go(*events, more="", damage=None):
        with fakes(monkeypatch, fake_backend(tmp_path)):
            frozen = await frozen_run(tmp_path, more=more)
        cell = frozen.registration.cells[0]
        path = transcript_path(frozen.folder, cell, 1)
        with Transcript(path) as transcript:
            for event in events:
                transcript.add(**event)
            digest = transcript.digest()
        spend = Spend(
            usage=Usage.zero(), charged_tokens=0, estimated=False, calls=0, output_bytes=0, wall_s=0.0,
            price=VoidPrice(reason="none"),
        )  # fmt: skip
        outcome = CellOutcome(
            cell=cell,
            attempt=1,
            end=Halt(limit="tokens", scope="cell", bound=1.0, spent=2.0),
            spend=spend,
            transcript=digest,
        )
        with Record(frozen.folder, registration_digest=frozen.registration.digest, clock=SystemClock()) as record:
            record.append("run.opened", {"registration": frozen.registration.id})
            record.append("cell.started", {"cell": outcome_to_json(outcome)["cell"], "attempt": 1})
            record.append("cell.ended", outcome_to_json(outcome))
        if damage is not None:
            damage(path)
        return frozen.folder

    return go


def tool(name, standing="served", text="", **arguments):
    """A `tool` event."""
    return {"event": "tool", "tool": name, "arguments": arguments, "standing": standing, "text": text}


def gateway(standing="served", wire="openai", path="/v1/chat/completions", why=None):
    """A `gateway` event."""
    return {"event": "gateway", "standing": standing, "wire": wire, "path": path, "why": why, "call": 1}


HONEST = [
    tool("read", path="a.py"),
    tool("write", path="/workspace/src/b.py", content="x"),
    tool("list"),
    tool("search", pattern="x", path="."),
    tool("edit", path="a.py", old="a", new="b"),
    tool("submit", note="done"),
    tool("read", "refused", "refused: it is denied", path="/proc/1/environ"),
    tool("read", "absent", "not there", path="b"),
]


@pytest.mark.anyio
async def test_an_honest_run_has_no_breach(audited):
    """Attempts are counted by way and standing; the refused ones are listed with their reason."""
    audit = audit_fence(await audited(*HONEST))
    assert audit.breaches == []
    assert audit.unseen == []
    reads = next(row for row in audit.attempts if row.way == "tool read")
    assert (reads.served, reads.refused, reads.absent, reads.failed) == (1, 1, 1, 0)
    assert [(row["asked"], row["why"]) for row in audit.turned_down] == [("/proc/1/environ", "refused: it is denied")]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (tool("read", path="/etc/passwd"), "in no readable root"),
        (tool("read", path="/workspace-evil/a"), "in no readable root"),
        (tool("read", path="/workspace/../etc/passwd"), "'..'"),
        (tool("list", path="/proc/1"), "denied"),
        (tool("write", path="/tmp/x", content=""), "in no writable root"),
        (tool("edit", path="/usr/lib/x", old="", new=""), "in no readable root"),
        (tool("teleport", path="a"), "lists no tool"),
        (tool("read", path=7), "can't be held against"),
        (tool("read", path="a[cut: 9000 characters]"), "can't be held against"),
        (gateway(), "no gateway"),
    ],
)
@pytest.mark.anyio
async def test_a_served_attempt_outside_the_policy_is_a_breach(audited, event, why):
    """Whatever let it through, and with where it is written."""
    audit = audit_fence(await audited(*HONEST, event))
    (breach,) = audit.breaches
    assert why in breach["why"]
    assert breach["event"] == len(HONEST)


@pytest.mark.anyio
async def test_the_gateway_is_held_against_the_policy(audited, monkeypatch):
    """A wire that the policy lists is none of a breach, one that it does not is."""
    monkeypatch.setattr(OneShotSeat, "needs_gateway", True, raising=False)
    more = "[fence]\nnetwork = 'gateway'\ngateway = { wires = ['openai'] }\n"
    audit = audit_fence(await audited(gateway(), gateway("refused", why="n is 100"), gateway(wire="ollama"), more=more))
    assert [row["why"] for row in audit.breaches] == ["the policy does not list the wire 'ollama'"]
    assert [row["why"] for row in audit.turned_down] == ["n is 100"]


@pytest.mark.anyio
async def test_what_could_not_be_seen_is_said(audited):
    """Programs, foreign agents, a lost helper, and standings that nobody knows."""
    audit = audit_fence(
        await audited(
            tool("run", command="ls"), {"event": "program"}, {"event": "helper", "cause": "killed"}, tool("read", "odd")
        )
    )
    assert audit.breaches == []
    for part in ("run tool", "foreign agent", "killed", "standing 'odd'"):
        assert any(part in text for text in audit.unseen)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"passwd", b"shadow")), "not the recorded one"),
    ],
)
@pytest.mark.anyio
async def test_a_transcript_that_is_not_the_recorded_one_shows_nothing(audited, damage, said):
    """Its events are not believed, and that is said."""
    audit = audit_fence(await audited(tool("read", path="/etc/passwd"), damage=damage))
    assert audit.attempts == ()
    assert [said in text for text in audit.unseen] == [True]


@pytest.mark.anyio
async def test_a_damaged_record_is_an_error(audited):
    """Nothing can be told from a record that does not verify."""
    folder = await audited(*HONEST)
    record = folder / "record.jsonl"
    record.write_bytes(record.read_bytes().replace(b'"attempt":1', b'"attempt":2', 1))
    with pytest.raises(IntegrityError):
        audit_fence(folder)


@pytest.mark.anyio
async def test_the_command_says_no_and_yes(audited, tmp_path):
    """Exit status 4 and the breach by name; 0 and JSON without one."""
    folder = await audited(tool("read", path="/etc/passwd"))
    told = CliRunner().invoke(app, ["fence", "audit", str(folder)])
    assert told.exit_code == 4
    assert "served outside the policy: 1" in told.output
    assert "/etc/passwd" in told.output


@pytest.mark.anyio
async def test_the_command_prints_json(audited):
    """For scripts."""
    folder = await audited(*HONEST)
    told = CliRunner().invoke(app, ["fence", "audit", str(folder), "--json"])
    assert told.exit_code == 0
    data = json.loads(told.output)
    assert (data["tries"], data["breaches"], len(data["turned_down"])) == (1, [], 1)


@pytest.mark.anyio
async def test_a_run_without_a_try_is_no_clean_one(audited):
    """Where the record is gone, or was never begun, the audit says so instead of finding nothing."""
    folder = await audited(*HONEST)
    (folder / "record.jsonl").unlink()
    with pytest.raises(IntegrityError, match="lines 1 to 3 are missing"):
        audit_fence(folder)
    (folder / "head").unlink()
    with pytest.raises(UsageError, match="has no try in its record"):
        audit_fence(folder)
