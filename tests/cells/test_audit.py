"""The audit: a clean run passes it, and for each invariant a record that breaks it alone is found by it alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cells.audit import planned
from cells.audit.auditing import AuditReading, audit_run, check, keep_audit, names_of_invariants
from cells.audit.table import INVARIANTS
from cells.boards import boards
from cells.cli import app
from cells.verifying import verify_run
from harness.clock import SystemClock
from harness.errors import UsageError
from harness.record import Entry, read_entries
from harness.registration import load_registration
from harness.transcript import transcript_path
from harness.values import CellKey
from tests.cells.audited import (
    AMENDMENT,
    amendment_of,
    changed,
    clean_run,
    copied,
    entries_of,
    rechained,
    reregistered,
    retold,
    without,
)

Tamper = Callable[[Path], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run; every test works on a copy."""
    return clean_run(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the clean run."""
    return copied(original, tmp_path)


def test_a_clean_run_is_clean(folder: Path) -> None:
    """Nothing is found, everything was looked at, and the diagnostics count what was."""
    found = audit_run(folder)
    assert found.findings == ()
    assert (found.verdict, found.unchecked) == ("CLEAN", ())
    assert found.counts["files"] == {"blobs looked at": 27, "outcomes looked at": 7, "transcripts looked at": 7}
    assert found.counts["tries-in-order"] == {"tries": 7}
    assert found.invariants == names_of_invariants()


def byte_flipped(folder: Path) -> None:
    """One byte of one line."""
    path = folder / "record.jsonl"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def transcript_gone(folder: Path) -> None:
    """The transcript of the last outcome."""
    body = [entry.body for entry in entries_of(folder) if entry.kind == "cell.ended"][-1]
    transcript_path(folder, CellKey(**body["cell"]), body["attempt"]).unlink()


def back_dated(entries: list[Entry]) -> list[Entry]:
    """The last entry, of the year 2000."""
    return [*entries[:-1], replace(entries[-1], at="2000-01-01T00:00:00.000Z")]


def planned_twice(folder: Path) -> object:
    """A cell that is declared, and refused by a gate too."""
    cell = str(load_registration(folder).cells[0])
    return reregistered(folder, refused=({"cell": cell, "gate": "extras", "detail": "made up"},))


def no_outcome(entries: list[Entry]) -> list[Entry]:
    """An entry more that calls itself an outcome."""
    return [*entries[:-1], replace(entries[-1], kind="cell.ended", body={"cell": {}}), entries[-1]]


def void_with_verdict(entries: list[Entry]) -> list[Entry]:
    """The VOID gets another outcome's verdict."""
    verdict = next(entry.body["verdict"] for entry in entries if entry.kind == "cell.ended" and entry.body["verdict"])
    return changed("cell.ended", lambda body: {**body, "verdict": verdict})(entries)


def last_try_removed(entries: list[Entry]) -> list[Entry]:
    """Neither begun nor ended: its cell is VOID then, and the session says that no cell was left."""
    return without("cell.ended", which=-1)(without("cell.started", which=-1)(entries))


def started_twice(entries: list[Entry]) -> list[Entry]:
    """The same try, right after it was started."""
    at = next(number for number, entry in enumerate(entries) if entry.kind == "cell.started")
    return [*entries[: at + 1], entries[at], *entries[at + 1 :]]


def no_retries(folder: Path) -> object:
    """A registration that allows none, of a run that made one."""
    experiment = dict(load_registration(folder).experiment)
    return reregistered(folder, experiment={**experiment, "retries": {"void": 0}})


def other_code(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The code that was kept of a round is another than its digest says."""
    return [{**event, "code": "x = 2\n"} if event["event"] == "extraction" else event for event in events]


def certificate_alone(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A certificate of a state that nothing tells of."""
    *others, end = events
    made = {"n": end["n"], "at": end["at"], "event": "certified", "code_sha256": "0" * 64, "restored": False}
    return [*others, made, {**end, "n": end["n"] + 1}]


def other_seed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first request was drawn with a seed of the drawer's own choice."""
    first = next(event["n"] for event in events if event["event"] == "request")
    return [{**event, "seed": 7} if event["n"] == first else event for event in events]


def reused(folder: Path) -> None:
    """An earlier run has the same output by the same seed, to another prompt."""
    other = folder.parent / "other"
    (other / "transcripts").mkdir(parents=True)
    (other / "registration.json").write_bytes((folder / "registration.json").read_bytes())
    body = [entry.body for entry in entries_of(folder) if entry.kind == "cell.ended"][-1]
    path = transcript_path(folder, CellKey(**body["cell"]), body["attempt"])
    lines = []
    for line in path.read_bytes().splitlines():
        event = json.loads(line)
        if event["event"] == "request":
            event["messages"][-1]["content"] += " Be brief."
        lines.append(json.dumps({**event, "at": "2000-01-01T00:00:00.000Z"}))
    (other / "transcripts" / path.name).write_text("\n".join(lines) + "\n", "utf-8")


def priced_lower(body: dict[str, Any]) -> dict[str, Any]:
    """A bargain."""
    body["spend"]["price"]["usd"] /= 2
    return body


def amended(folder: Path, **changes: Any) -> Path:
    """A legal amendment before the last entry, but for the `changes`."""

    def edit(entries: list[Entry]) -> list[Entry]:
        last = entries[-1]
        body = {**amendment_of(folder, dated=last.at, outcomes=7), **changes}
        return [*entries[:-1], replace(last, kind="registration.amended", body=body), last]

    return rechained(folder, edit)


def edited(edit: Callable[[list[Entry]], list[Entry]]) -> Tamper:
    """A tampering of the record's entries."""
    return lambda folder: rechained(folder, edit)


def part(name: str, **changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The change of some fields of a part of a body."""
    return lambda body: {**body, name: {**body[name], **changes}}


BROKEN: dict[str, Tamper] = {
    "chain": byte_flipped,
    "files": transcript_gone,
    "sessions": edited(changed("run.opened", lambda body: {**body, "registration": "another-0123456789ab"})),
    "session-pins": edited(changed("session.started", lambda body: {**body, "proctor": "0.0.1"})),
    "clock": edited(back_dated),
    "pairing-keys": planned_twice,
    "outcome-form": edited(no_outcome),
    "no-void-number": edited(void_with_verdict),
    "cells-complete": edited(last_try_removed),
    "tries-in-order": edited(started_twice),
    "retries-as-registered": no_retries,
    "fence-receipts": edited(changed("session.started", lambda body: {**body, "node": "another machine"})),
    "probes-repeated": edited(changed("fence.repeated", lambda body: {**body, "holds": False, "why": "a hole"})),
    "controls-held": edited(without("control.judged", which=0)),
    "verdicts-known": edited(changed("cell.ended", part("verdict", reading="SPLENDID"), which=-1)),
    "served-model": edited(changed("cell.ended", lambda body: {**body, "served_models": ["a cheaper one"]}, which=-1)),
    "rounds-complete": lambda folder: retold(folder, other_code),
    "revisions-hold": lambda folder: retold(folder, certificate_alone),
    "seeds": lambda folder: retold(folder, other_seed),
    "no-reuse": reused,
    "spend-adds-up": edited(changed("cell.ended", part("spend", charged_tokens=1), which=-1)),
    "prices": edited(changed("cell.ended", priced_lower, which=-1)),
    "amendments": lambda folder: amended(folder, outcomes=3),
}
"""For each invariant a tampering that breaks it, and no other."""


@pytest.mark.parametrize("name", BROKEN)
def test_each_invariant_alone_finds_what_breaks_it(name: str, folder: Path) -> None:
    """The record's digests hold wherever the chain is not the point; every finding is this invariant's."""
    BROKEN[name](folder)
    found = audit_run(folder)
    assert {finding.invariant for finding in found.findings} == {name}, found.findings
    assert found.verdict == "AUDIT-FAILURE"
    assert all(finding.where and finding.what for finding in found.findings)


def test_the_sum_of_the_parts_is_held_against_the_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record can make it fail, since all figures are made from one: a scoreboard that is wrong does."""

    def wrong(*args: Any, **more: Any) -> object:
        found = boards(*args, **more)
        arm, *others = found.frozen.arms
        return replace(found, frozen=replace(found.frozen, arms=(replace(arm, passed=arm.passed + 1), *others)))

    monkeypatch.setattr(planned, "boards", wrong)
    found = audit_run(folder)
    assert {finding.invariant for finding in found.findings} == {"pooled-is-sum"}
    assert "passed of arm B|none|m is 4: its conditions have 3" in found.findings[0].what


def test_every_invariant_has_its_counterexample() -> None:
    """The table of the tests is that of the code, but for the one that no record can break."""
    assert {*BROKEN, "pooled-is-sum"} == set(names_of_invariants())
    assert len({kind.name for kind in INVARIANTS}) == len(INVARIANTS)


def first_of(found: AuditReading) -> str:
    """What the first finding says."""
    return found.findings[0].what


MORE: dict[str, tuple[Tamper, str]] = {
    "a cell that was removed whole": (
        edited(lambda entries: without("cell.ended", which=2)(without("cell.started", which=2)(entries))),
        "cells-complete",
    ),
    "an outcome of an undeclared cell": (
        edited(changed("cell.ended", part("cell", arm="C"), which=-1)),
        "cells-complete",
    ),
    "a probe that finds something else at the end": (
        edited(changed("fence.repeated", lambda body: {**body, "findings": {"raw-socket": "SERVED"}})),
        "probes-repeated",
    ),
    "no repetition at all": (edited(without("fence.repeated")), "probes-repeated"),
    "no probe table": (edited(without("fence.probed")), "fence-receipts"),
    "a probe table of another image": (
        edited(changed("fence.probed", part("receipt", image="sha256:other"))),
        "fence-receipts",
    ),
    "a probe table without a row": (
        edited(changed("fence.probed", lambda body: {**body, "rows": body["rows"][1:]})),
        "fence-receipts",
    ),
    "a control that did not hold": (
        edited(
            changed("control.judged", lambda body: {**body, "rows": [{**row, "held": False} for row in body["rows"]]})
        ),
        "controls-held",
    ),
    "a control that was left out": (
        edited(changed("control.judged", lambda body: {**body, "rows": body["rows"][:1]})),
        "controls-held",
    ),
    "another standing": (
        edited(changed("cell.ended", part("verdict", standing="rejected"), which=-1)),
        "verdicts-known",
    ),
    "another exhibit": (
        edited(changed("cell.ended", lambda body: {**body, "exhibit": None}, which=-1)),
        "verdicts-known",
    ),
    "calls that nobody made": (edited(changed("cell.ended", part("spend", calls=9), which=-1)), "spend-adds-up"),
    "an end that the transcript does not have": (
        lambda folder: retold(folder, lambda events: events[:-1]),
        "rounds-complete",
    ),
    "an event that was cut out": (
        lambda folder: retold(folder, lambda events: [*events[:1], *events[2:]]),
        "rounds-complete",
    ),
    "another prompt than was sent": (
        lambda folder: retold(
            folder,
            lambda events: [
                {**event, "prompt_sha256": "0" * 64} if event["event"] == "round" else event for event in events
            ],
        ),
        "rounds-complete",
    ),
    "another payload": (
        lambda folder: retold(
            folder,
            lambda events: [
                {**event, "seed_payload": "other|cell|1"} if event["event"] == "round" else event for event in events
            ],
        ),
        "seeds",
    ),
    "a plugin of another version": (
        edited(
            changed(
                "session.started",
                lambda body: {
                    **body,
                    "plugins": {
                        **body["plugins"],
                        "referees/null": {**body["plugins"]["referees/null"], "version": "9"},
                    },
                },
            )
        ),
        "session-pins",
    ),
    "an amendment dated by hand": (lambda folder: amended(folder, dated="2026-01-01T00:00:00.000Z"), "amendments"),
    "an amendment that calls itself another": (lambda folder: amended(folder, number=2), "amendments"),
    "an amendment of another registration": (lambda folder: amended(folder, registration="f" * 64), "amendments"),
    "an amendment whose check did not hold": (
        lambda folder: amended(folder, checks=[{"name": "nothing was halted", "value": 1.0, "holds": False}]),
        "amendments",
    ),
    "an amendment of what is frozen": (
        lambda folder: amended(folder, content={**AMENDMENT, "alpha": 0.5}),
        "amendments",
    ),
    "an entry that no reader can read": (
        edited(changed("fence.probed", lambda _body: ["rows"])),
        "fence-receipts",
    ),
}


@pytest.mark.parametrize("what", MORE)
def test_other_ways_to_break_an_invariant_are_found_by_it(what: str, folder: Path) -> None:
    """Some break others too: the one that they are about says so."""
    tamper, name = MORE[what]
    tamper(folder)
    (kind,) = (kind for kind in INVARIANTS if kind.name == name)
    assert check(kind, folder) != ()
    assert audit_run(folder).verdict == "AUDIT-FAILURE"


def test_a_legal_amendment_is_clean(folder: Path) -> None:
    """What the counterexamples are made of."""
    found = audit_run(amended(folder))
    assert found.findings == ()
    assert found.counts["amendments"] == {"amendments": 1}


def test_an_equal_output_to_an_equal_prompt_is_only_counted(folder: Path, original: Path) -> None:
    """Two runs of the same experiment: a figure, and no finding. Of a later run nothing can be taken."""
    again = folder.parent / "again"
    (again / "transcripts").mkdir(parents=True)
    (again / "registration.json").write_bytes((folder / "registration.json").read_bytes())
    for path in (folder / "transcripts").iterdir():
        text = path.read_text("utf-8").replace('"at":"2', '"at":"1')
        (again / "transcripts" / path.name).write_text(text, "utf-8")
    found = audit_run(folder)
    assert found.findings == ()
    counts = found.counts["no-reuse"]
    assert counts["other runs with this seed namespace"] == 1
    assert counts["outputs equal to an earlier run's, to an equal prompt with an equal seed"] == 12


def test_a_run_of_another_namespace_is_not_compared(folder: Path) -> None:
    """No seed of it can be equal."""
    reused(folder)
    other = folder.parent / "other" / "registration.json"
    data = json.loads(other.read_bytes())
    data["experiment"]["seat"]["seed_namespace"] = "elsewhere"
    other.write_text(json.dumps(data), "utf-8")
    (folder.parent / "broken").mkdir()
    (folder.parent / "broken" / "registration.json").write_text("{", "utf-8")
    assert audit_run(folder).findings == ()


def test_a_broken_chain_leaves_the_rest_unchecked(folder: Path) -> None:
    """Nothing is concluded from lines that hang on nothing, and nothing is called clean."""
    byte_flipped(folder)
    found = audit_run(folder)
    assert found.unchecked == tuple(kind.name for kind in INVARIANTS)
    assert found.verdict == "AUDIT-FAILURE"


def test_a_run_without_a_record_is_not_audited(folder: Path) -> None:
    """Nothing was recorded, so nothing can be said."""
    (folder / "record.jsonl").unlink()
    (folder / "head").unlink()
    with pytest.raises(UsageError, match="has no record"):
        audit_run(folder)


def test_a_kept_failure_stays_beside_a_later_verdict(folder: Path) -> None:
    """Two entries, each with what was found; the chain holds, and no session is thought to be open."""
    rechained(folder, changed("cell.ended", priced_lower, which=-1))
    failed = audit_run(folder)
    keep_audit(folder, failed, clock=SystemClock())
    again = audit_run(folder)
    keep_audit(folder, again, clock=SystemClock())
    kept = [entry.body for entry in read_entries(folder / "record.jsonl") if entry.kind == "run.audited"]
    assert [body["verdict"] for body in kept] == ["AUDIT-FAILURE", "AUDIT-FAILURE"]
    assert kept[0]["findings_digest"] == failed.digest
    assert kept[0]["by_invariant"]["prices"] == 1
    assert kept[0]["head"] == failed.head != kept[1]["head"]
    assert set(kept[0]["by_invariant"]) == set(names_of_invariants())
    reading = verify_run(folder)
    assert (reading.ok, reading.chain.closed) == (True, True)


def test_the_score_tells_the_audits_beside_its_own_verdict(folder: Path) -> None:
    """That none is kept; then each, in order: a failure stays, and the status of the figures is as it was."""
    before = CliRunner().invoke(app, ["score", str(folder)])
    assert "Audit verdict: none is kept" in before.output
    rechained(folder, changed("cell.ended", priced_lower, which=-1))
    for _time in range(2):
        keep_audit(folder, audit_run(folder), clock=SystemClock())
    after = CliRunner().invoke(app, ["score", str(folder)])
    assert "Audit verdict 1 of 2: AUDIT-FAILURE" in after.output
    assert "Audit verdict 2 of 2: AUDIT-FAILURE" in after.output
    assert "findings: prices 1." in after.output
    data = json.loads(CliRunner().invoke(app, ["score", str(folder), "--json"]).output)
    assert [audit["verdict"] for audit in data["audits"]] == ["AUDIT-FAILURE", "AUDIT-FAILURE"]
    assert data["status"] == "final"


def command(*args: str) -> Any:
    """`proctor audit` with these arguments."""
    return CliRunner().invoke(app, ["audit", *args])


def test_the_command_tells_a_clean_run_and_ends_with_0(folder: Path) -> None:
    """The verdict first, then what was counted, then the gates."""
    result = command(str(folder))
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"audit: CLEAN: 0 findings by {len(names_of_invariants())} invariants")
    assert "counted (tries-in-order): tries: 7" in result.output
    assert "gate trips by arm: none" in result.output


def test_the_command_tells_a_failure_and_ends_with_4(folder: Path) -> None:
    """Each finding by its invariant; with --keep it is in the record; with --json a script has all of it."""
    rechained(folder, changed("cell.ended", priced_lower, which=-1))
    result = command(str(folder), "--keep")
    assert result.exit_code == 4
    assert "audit: AUDIT-FAILURE: 1 findings" in result.output
    assert "  prices: line " in result.output
    assert "kept as line" in result.output
    data = json.loads(command(str(folder), "--json").output)
    assert (data["verdict"], data["kept_at_line"], data["unchecked"]) == ("AUDIT-FAILURE", None, [])
    assert [finding["invariant"] for finding in data["findings"]] == ["prices"]
    assert data["gates"]["counts"] == []


def test_a_head_from_outside_finds_a_rewritten_record(folder: Path) -> None:
    """Whatever was made to fit: the line that the head names is another one."""
    head = (folder / "head").read_text("ascii").strip()
    rechained(folder, last_try_removed)
    assert command(str(folder), "--head", head).exit_code == 4
    assert "chain" in command(str(folder), "--head", head).output
