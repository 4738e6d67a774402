"""A whole run that passes its audit, and ways to write another record in its place whose chain holds all the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.run import run
from harness.blobs import BlobStore
from harness.canonical import canonical_bytes, digest_bytes
from harness.errors import ModelServerError
from harness.messages import Completion, Request
from harness.models.scripted import ScriptedProvider
from harness.record import Entry, encode_line, read_entries
from harness.registration import Registration, load_registration
from harness.transcript import transcript_path
from harness.values import CellKey, Usage
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run

MODEL = "[models.rates]\ninput = 1000.0\noutput = 2000.0\n"
Edit = Callable[[list[Entry]], list[Entry]]


class _Answers:
    """A model that fails the first time it is asked, and then answers each prompt with its own text."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: Request) -> Completion:
        """One answer."""
        self.calls += 1
        if self.calls == 1:
            raise ModelServerError("connection refused")
        text = f"```python\nx = {digest_bytes(request.messages[-1].content.encode())[:8]!r}\n```"
        usage = Usage(input=10, output=5, cache_read=0, cache_write_5m=0, cache_write_1h=0)
        return Completion(text=text, stop="stop", usage=usage, served_model="script", latency_s=0.0)


@contextmanager
def house_of_audits(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[None]:
    """Fakes with a probe table, and the model whose first call fails."""
    answers = _Answers()
    with fakes(monkeypatch, fake_backend(folder), probed=True, models_scripted=lambda: ScriptedProvider(answers)):
        yield


def clean_run(folder: Path) -> Path:
    """Freeze and play three tasks, two arms and one VOID into `folder`, and return the run's folder."""
    monkeypatch = pytest.MonkeyPatch()

    async def play() -> Path:
        with house_of_audits(monkeypatch, folder):
            frozen = await frozen_run(folder, model=MODEL, concurrency=1)
            assert await run(frozen.folder, watcher=Quiet()) == "finished"
        return frozen.folder

    try:
        return anyio.run(play)
    finally:
        monkeypatch.undo()


def copied(run_folder: Path, to: Path) -> Path:
    """A copy of a run, as a run of its own folder of runs."""
    target = to / "runs" / run_folder.name
    shutil.copytree(run_folder, target)
    return target


def entries_of(folder: Path) -> list[Entry]:
    """All entries of a record."""
    return list(read_entries(folder / "record.jsonl"))


def rechained(folder: Path, edit: Edit, *, head: bool = True) -> Path:
    """Write what `edit` makes of the entries, every digest made to fit again, and the run's own head unless told not to."""
    prev, lines = load_registration(folder).digest, []
    for seq, entry in enumerate(edit(entries_of(folder))):
        line, prev = encode_line(seq=seq, at=entry.at, kind=entry.kind, body=entry.body, prev=prev)
        lines.append(line + b"\n")
    (folder / "record.jsonl").write_bytes(b"".join(lines))
    if head:
        (folder / "head").write_text(f"{len(lines) - 1}:{prev}\n", "ascii")
    return folder


def reregistered(folder: Path, **changes: Any) -> Path:
    """Write another registration in the place of the run's, with an id that fits, and a record that hangs on it."""
    entries = entries_of(folder)
    other = replace(load_registration(folder), **changes)
    (folder / "registration.json").write_bytes(other.to_bytes())
    opened = replace(entries[0], body={"registration": other.id})
    return rechained_from(folder, other, [opened, *entries[1:]])


def rechained_from(folder: Path, registration: Registration, entries: list[Entry]) -> Path:
    """Write these entries as the record of a registration."""
    prev, lines = registration.digest, []
    for seq, entry in enumerate(entries):
        line, prev = encode_line(seq=seq, at=entry.at, kind=entry.kind, body=entry.body, prev=prev)
        lines.append(line + b"\n")
    (folder / "record.jsonl").write_bytes(b"".join(lines))
    (folder / "head").write_text(f"{len(lines) - 1}:{prev}\n", "ascii")
    return folder


def changed(kind: str, change: Callable[[Any], Any], *, which: int = 0) -> Edit:
    """The edit that changes the body of one entry of a kind; `which` counts from 0, or from the end if negative."""

    def edit(entries: list[Entry]) -> list[Entry]:
        at = [number for number, entry in enumerate(entries) if entry.kind == kind][which]
        body = change(json.loads(json.dumps(entries[at].body)))
        return [*entries[:at], replace(entries[at], body=body), *entries[at + 1 :]]

    return edit


def without(kind: str, *, which: int | None = None) -> Edit:
    """The edit that drops every entry of a kind, or one of them."""

    def edit(entries: list[Entry]) -> list[Entry]:
        places = [number for number, entry in enumerate(entries) if entry.kind == kind]
        gone = set(places if which is None else [places[which]])
        return [entry for number, entry in enumerate(entries) if number not in gone]

    return edit


def retold(folder: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], *, which: int = -1) -> Path:
    """Change the transcript of one outcome, and have the outcome name the changed one."""
    outcome = [entry for entry in entries_of(folder) if entry.kind == "cell.ended"][which]
    path = transcript_path(folder, CellKey(**outcome.body["cell"]), outcome.body["attempt"])
    events = change([json.loads(line) for line in path.read_bytes().splitlines()])
    path.write_bytes(b"".join(canonical_bytes(event) + b"\n" for event in events))
    digest = digest_bytes(path.read_bytes())
    return rechained(folder, changed("cell.ended", lambda body: {**body, "transcript": digest}, which=which))


AMENDMENT = {
    "reason": "a note was forgotten",
    "changes": "a notice",
    "checks": [{"name": "nothing was halted", "figure": "halted", "at_most": 0}],
    "notices": [{"contrast": "P over B", "text": "small"}],
}


def amendment_of(folder: Path, *, dated: str, outcomes: int) -> dict[str, Any]:
    """The body of a legal amendment of a run, the first one."""
    return {
        "number": 1,
        "dated": dated,
        "registration": load_registration(folder).digest,
        "outcomes": outcomes,
        "file": BlobStore(folder / "blobs").put(b"an amendment"),
        "content": AMENDMENT,
        "checks": [{"name": "nothing was halted", "value": 0.0, "holds": True}],
        "repository": None,
    }
