"""
Tampering with a run: for each kind the command that finds it, and what it says.

Each is done twice: as a careless edit of the file, and by somebody who computes every digest again, the run's own head
included. Of the latter a head that was kept outside finds each; the table says which are seen without one, and which not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cells.cli import app
from cells.cli.door import guarded
from cells.declared.declaration import load_declaration
from cells.declared.making import cells_of
from cells.declared.pinning import pinned_names
from cells.declared.rows import ForeignCell
from harness.record import Entry
from harness.registration import load_registration
from tests.cells.audited import (
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
from tests.cells.declared.sets import DECLARATION, ROWS, written

Said = tuple[int, str]
Tamper = Callable[[Path], object]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run; every test works on a copy."""
    return clean_run(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the clean run."""
    return copied(original, tmp_path)


@pytest.fixture
def said(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """What `proctor COMMAND FOLDER ...` ends with and says, on both of its outputs, in one line a message."""

    def run(command: str, *more: str) -> Said:
        monkeypatch.setattr("sys.argv", ["proctor", command, str(folder), *more])
        code = 0
        try:
            guarded(app)
        except SystemExit as ended:
            code = int(ended.code or 0)
        told = capsys.readouterr()
        return code, " ".join((told.out + told.err).split())

    return run


def lines_of(folder: Path) -> list[bytes]:
    """The record's lines."""
    return (folder / "record.jsonl").read_bytes().splitlines(keepends=True)


def line_of_last(folder: Path, kind: str) -> int:
    """Where the last entry of a kind stands, from 0."""
    return max(number for number, entry in enumerate(entries_of(folder)) if entry.kind == kind)


def by_hand(edit: Callable[[list[bytes], int], list[bytes]]) -> Tamper:
    """A careless edit of the record's file at its last outcome."""

    def tamper(folder: Path) -> None:
        lines = edit(lines_of(folder), line_of_last(folder, "cell.ended"))
        (folder / "record.jsonl").write_bytes(b"".join(lines))

    return tamper


def replaced(old: bytes, new: bytes) -> Tamper:
    """Some bytes of the last outcome's line are others."""

    def edit(lines: list[bytes], at: int) -> list[bytes]:
        assert old in lines[at]
        return [*lines[:at], lines[at].replace(old, new, 1), *lines[at + 1 :]]

    return by_hand(edit)


def question_changed(folder: Path) -> None:
    """Another question, in the bytes of the registration."""
    path = folder / "registration.json"
    path.write_bytes(path.read_bytes().replace(b"Does the house hold?", b"Did the house hold?!"))


def amendment_line(lines: list[bytes], at: int) -> list[bytes]:
    """An amendment that was never appended, put before the last outcome."""
    return [*lines[:at], b'{"at":"2026-12-01T00:00:00.000Z","kind":"registration.amended"}\n', *lines[at:]]


BROKEN = "its bytes are not the ones that its sha256 was taken over"
UNCHAINED = "it does not follow the line before it"
CARELESS: dict[str, tuple[Tamper, dict[str, str]]] = {
    "a cell removed": (
        by_hand(lambda lines, at: [*lines[:at], *lines[at + 1 :]]),
        {"verify": UNCHAINED, "audit": UNCHAINED, "score": UNCHAINED},
    ),
    "a cell doubled": (
        by_hand(lambda lines, at: [*lines[: at + 1], lines[at], *lines[at + 1 :]]),
        {"verify": UNCHAINED, "audit": UNCHAINED, "score": UNCHAINED},
    ),
    "a cell renamed": (
        replaced(b'"task":"Fake/0"', b'"task":"Fake/9"'),
        {"verify": BROKEN, "audit": BROKEN, "score": BROKEN},
    ),
    "a cell re-priced": (replaced(b'"usd":0.04', b'"usd":0.01'), {"verify": BROKEN, "audit": BROKEN, "score": BROKEN}),
    "a flipped byte": (
        by_hand(lambda lines, _at: [bytes([lines[0][0] ^ 1]) + lines[0][1:], *lines[1:]]),
        {"verify": "line 1", "audit": "line 1", "score": "line 1"},
    ),
    "a cut tail": (
        by_hand(lambda lines, _at: lines[:-2]),
        {"verify": "missing: the head names a later line", "audit": "missing: the head", "score": "are missing"},
    ),
    "an edited registration": (
        question_changed,
        {"verify": "was edited", "audit": "was edited", "score": "does not belong to this run's registration"},
    ),
    "an amendment in the middle": (
        by_hand(amendment_line),
        {"verify": "not a line of a record", "audit": "not a line", "score": "not a line of a record"},
    ),
}
"""For each careless edit what each command says; each of them ends with 4."""


@pytest.mark.parametrize("what", CARELESS)
def test_a_careless_edit_is_found_and_named(what: str, folder: Path, said: Callable[..., Said]) -> None:
    """By all three commands, each with where it begins."""
    tamper, words = CARELESS[what]
    tamper(folder)
    for command, expected in words.items():
        code, told = said(command)
        assert (code, expected in told) == (4, True), (command, code, told)


def cut_after_the_cells(entries: list[Entry]) -> list[Entry]:
    """Neither the repetition of the probes nor the end of the session."""
    return entries[: max(number for number, entry in enumerate(entries) if entry.kind == "cell.ended") + 1]


def doubled(other: bool) -> Callable[[list[Entry]], list[Entry]]:
    """The first PASS once more: word for word, or turned to a FAIL."""

    def edit(entries: list[Entry]) -> list[Entry]:
        at = next(
            number for number, entry in enumerate(entries) if entry.kind == "cell.ended" and entry.body["verdict"]
        )
        body = json.loads(json.dumps(entries[at].body))
        if other:
            body["verdict"] |= {"reading": "FAIL", "standing": "rejected"}
        return [*entries[: at + 1], replace(entries[at], body=body), *entries[at + 1 :]]

    return edit


def turned(body: dict[str, Any]) -> dict[str, Any]:
    """The reading is another, and its standing is not."""
    return {**body, "verdict": {**body["verdict"], "reading": "FAIL"}}


def cheaper(body: dict[str, Any]) -> dict[str, Any]:
    """Half the price."""
    body["spend"]["price"]["usd"] /= 2
    return body


def told_cheaper(folder: Path) -> Path:
    """Half of the tokens, in the transcript as in the outcome, and the price that is theirs."""

    def halved(usage: dict[str, int]) -> dict[str, int]:
        return {name: count // 5 * 1 for name, count in usage.items()}

    def events(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**event, "usage": halved(event["usage"])} if "usage" in event else event for event in told]

    def body(outcome: dict[str, Any]) -> dict[str, Any]:
        spend, calls = outcome["spend"], outcome["spend"]["calls"]
        spend["usage"] = {name: count // 5 for name, count in spend["usage"].items()}
        spend["charged_tokens"] = calls * 3
        spend["charged_usd"] = spend["price"]["usd"] = calls * 0.004
        return outcome

    return rechained(retold(folder, events), changed("cell.ended", body, which=-1))


def in_the_middle(folder: Path, **changes: Any) -> Path:
    """An amendment before the fourth outcome, dated as the entry there."""

    def edit(entries: list[Entry]) -> list[Entry]:
        at = [number for number, entry in enumerate(entries) if entry.kind == "cell.ended"][3]
        body = {**amendment_of(folder, dated=entries[at].at, outcomes=3), **changes}
        made_up = replace(entries[at], kind="registration.amended", body=body)
        return [*entries[:at], made_up, *entries[at:]]

    return rechained(folder, edit)


def removed(entries: list[Entry]) -> list[Entry]:
    """One cell, begun and ended."""
    return without("cell.ended", which=2)(without("cell.started", which=2)(entries))


def edited(edit: Callable[[list[Entry]], list[Entry]]) -> Tamper:
    """An edit of the entries, with every digest made to fit."""
    return lambda folder: rechained(folder, edit)


def last(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Tamper:
    """A change of the last outcome, likewise."""
    return edited(changed("cell.ended", change, which=-1))


RECHAINED: dict[str, tuple[Tamper, dict[str, tuple[int, str]]]] = {
    "a cell removed": (edited(removed), {"score": (1, "missing cell"), "audit": (4, "cells-complete: cell")}),
    "a final try removed": (
        edited(lambda entries: without("cell.ended", which=-1)(without("cell.started", which=-1)(entries))),
        {"audit": (4, "the session was closed with 0 cells left: the record has 1")},
    ),
    "a cell doubled with another verdict": (
        edited(doubled(other=True)),
        {"score": (1, "doubled cell"), "audit": (4, "tries-in-order")},
    ),
    "a cell doubled word for word": (
        edited(doubled(other=False)),
        {"score": (0, "recorded a second time, word for word"), "audit": (4, "tries-in-order")},
    ),
    "a cell renamed": (
        last(lambda body: {**body, "cell": {**body["cell"], "task": "Fake/9"}}),
        {
            "verify": (4, "its transcript"),
            "score": (1, "undeclared cell"),
            "audit": (4, "which is not declared"),
        },
    ),
    "a cell re-priced": (last(cheaper), {"audit": (4, "prices: line")}),
    "a verdict turned": (last(turned), {"audit": (4, "verdicts-known: line")}),
    "a cell cut off with the tail": (
        edited(lambda entries: without("cell.ended", which=-1)(cut_after_the_cells(entries))),
        {"audit": (4, "was started and has no outcome")},
    ),
    "an edited pin": (
        lambda folder: reregistered(
            folder, pins={**load_registration(folder).pins, "code": {"sha256": "0" * 64, "version": "9"}}
        ),
        {"audit": (4, "session-pins: line")},
    ),
    "an amendment in the middle": (
        lambda folder: in_the_middle(folder, outcomes=7),
        {"audit": (4, "amendment 1: it says that 7 outcomes stood before it: 3 do")},
    ),
}
"""What is still seen of a record whose digests were all computed again, without a head from outside."""

UNSEEN: dict[str, Tamper] = {
    "the end of the session cut off": edited(cut_after_the_cells),
    "a transcript told to fit a price": told_cheaper,
    "another question": lambda folder: reregistered(folder, question="Did the house hold?"),
    "an amendment that fits its place": in_the_middle,
}
"""What agrees with everything else in the folder: a head from outside is what finds it, and nothing else does."""


@pytest.mark.parametrize("what", RECHAINED)
def test_what_is_seen_of_a_record_that_was_chained_anew(what: str, folder: Path, said: Callable[..., Said]) -> None:
    """`verify` sees files that are what they say; the others name what can't be; a head from outside finds each."""
    head = (folder / "head").read_text("ascii").strip()
    tamper, words = RECHAINED[what]
    tamper(folder)
    for command, (code, expected) in ({"verify": (0, "ok")} | words).items():
        ended, told = said(command)
        assert (ended, expected in told) == (code, True), (command, ended, told)
    ended, told = said("verify", "--head", head)
    assert (ended, "FAILED" in told) == (4, True)


@pytest.mark.parametrize("what", UNSEEN)
def test_what_only_a_head_from_outside_finds(what: str, folder: Path, said: Callable[..., Said]) -> None:
    """The page of audits says so, and this holds it to that; with the head all three name the line."""
    head = (folder / "head").read_text("ascii").strip()
    UNSEEN[what](folder)
    assert (said("verify")[0], said("audit")[0], said("score")[0]) == (0, 0, 0)
    for command in ("verify", "audit"):
        code, told = said(command, "--head", head)
        assert (code, "line" in told) == (4, True), told


NAMED = 'cells = ["r1/a1", "r1/a2", "r1/a3", "r1/a4", "r1/a5"]'
DECLARED: dict[str, tuple[str, str, str]] = {
    "a cell removed": ("a2,r1,LRU,diet,LANDED,PASS,3.00,True,150,x\n", "", "missing cell r1/a2"),
    "a cell doubled": (
        "a2,r1,LRU,diet,LANDED,PASS,3.00,True,150,x\n",
        "a2,r1,LRU,diet,LANDED,PASS,3.00,True,150,x\na2,r1,LRU,diet,LANDED,FAIL,3.00,True,150,x\n",
        "r1/a2",
    ),
    "a cell renamed": ("a2,r1,", "a9,r1,", "missing cell r1/a2"),
    "a cell re-priced": ("PASS,3.00", "PASS,3.01", "changed cell r1/a2: what its rows say is not what was declared"),
}
"""For each tampering with a file of cells: what is replaced, by what, and what `proctor score --declaration` says."""


@pytest.mark.parametrize("what", DECLARED)
def test_tampering_with_a_declared_set_is_found_and_named(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The declaration names each cell with the digest of its rows; as it stood, the set is scored."""
    old, new, expected = DECLARED[what]
    cells = [cell for cell in _declared_cells(tmp_path) if cell.cell.run == "r1"]
    (tmp_path / "names.txt").write_text(pinned_names(cells), "utf-8")
    declaration = DECLARATION.replace(NAMED, 'cells_file = "names.txt"')

    def scored(rows: str) -> Said:
        path = written(tmp_path, rows=rows, declaration=declaration)  # type: ignore[no-untyped-call]
        monkeypatch.setattr("sys.argv", ["proctor", "score", "--declaration", str(path)])
        with pytest.raises(SystemExit) as ended:
            guarded(app)
        return int(ended.value.code or 0), capsys.readouterr().out

    assert scored(ROWS)[0] == 0
    code, told = scored(ROWS.replace(old, new))
    assert (code, expected in told) == (1, True)


def _declared_cells(folder: Path) -> list[ForeignCell]:
    """The cells of the file as it stood."""
    declaration, _digest = load_declaration(written(folder))  # type: ignore[no-untyped-call]
    return list(cells_of(folder / "cells.csv", declaration.sources[0]))
