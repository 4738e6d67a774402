"""The audit: a clean run passes it, and for each invariant a record that breaks it alone is found by it alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cells.audit import planned
from cells.audit.auditing import AuditReading, audit_run, check, keep_audit, names_of_invariants
from cells.audit.sessions import ENTRY_KINDS
from cells.audit.table import INVARIANTS
from cells.boards import boards
from cells.cli import app
from cells.plan import read_run
from cells.verifying import verify_run
from harness.clock import SystemClock
from harness.errors import IntegrityError, UsageError
from harness.record import read_entries
from tests.cells.audit_counterexamples import (
    BROKEN,
    MORE,
    amended,
    byte_flipped,
    characterised,
    edited,
    last_try_removed,
    priced_lower,
    reused,
)
from tests.cells.audited import (
    changed,
    clean_run,
    copied,
    rechained,
)


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


@pytest.mark.parametrize("name", BROKEN)
def test_each_invariant_alone_finds_what_breaks_it(name: str, folder: Path) -> None:
    """The record's digests hold wherever the chain is not the point; every finding is this invariant's."""
    BROKEN[name](folder)
    found = audit_run(folder)
    assert {finding.invariant for finding in found.findings} == {name}, found.findings
    assert found.verdict == "AUDIT-FAILURE"
    assert all(finding.where and finding.what for finding in found.findings)


def test_a_suite_that_holds_is_no_finding(folder: Path) -> None:
    """It was characterised in the record before anything was played, as it should be."""
    edited(characterised(holds=True))(folder)
    assert audit_run(folder).verdict == "CLEAN"


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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda body: {**body, "zzz": 1}, "no cell.ended says this: zzz: "),
        (lambda body: {**body, "attempt": "x"}, "no cell.ended says this: attempt: .*, got 'x'"),
        (lambda body: {**body, "exhibit": 5}, "no cell.ended says this: exhibit: .*, got 5"),
    ],
)
def test_what_no_line_says_is_told_by_verify_as_by_every_reader(folder: Path, change: Any, said: str) -> None:
    """The chain holds, and an outcome is none: a problem of that line, by its field; and the audit says its verdict."""
    rechained(folder, changed("cell.ended", change))
    with pytest.raises(IntegrityError, match=said):
        read_run(folder)
    told = [problem.what for problem in verify_run(folder).problems]
    assert told  # of an exhibit or a transcript that is not there first
    assert "zzz" not in said or re.search(said, told[0])
    result = CliRunner().invoke(app, ["audit", str(folder), "--json"])
    found = json.loads(result.output)
    assert (result.exit_code, found["verdict"], found["gates"]) == (4, "AUDIT-FAILURE", None)


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


def test_the_kinds_of_entries_are_those_of_the_page_on_records() -> None:
    """What the audit knows as a record's own is what the page on the record has a section of."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "record.md").read_text("utf-8")
    assert set(re.findall(r"^### `([a-z]+\.[a-z]+)`$", page, re.MULTILINE)) == ENTRY_KINDS
