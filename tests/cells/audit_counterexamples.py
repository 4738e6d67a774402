"""For each invariant of the audit a tampering that breaks it: the counterexamples of its tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.record import Entry
from harness.registration import load_registration
from harness.transcript import transcript_path
from harness.values import CellKey
from tests.cells.audited import (
    AMENDMENT,
    amendment_of,
    changed,
    entries_of,
    rechained,
    reregistered,
    retold,
    without,
)
from tests.cells.promoted import confirming_a_made_up_effect

Tamper = Callable[[Path], object]
"""What is done to the folder of a clean run."""


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


def other_prompt(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rounds name another prompt than was sent."""
    return [{**event, "prompt_sha256": "0" * 64} if event["event"] == "round" else event for event in events]


def other_replies(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The model wrote something else than what was kept of its code."""
    return [{**event, "text": "```python\nx = 2\n```"} if event["event"] == "completion" else event for event in events]


def state_of_a_mirror(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The copy of another arm's state, in an arm that copies none."""
    first, *others = events
    state = {"role": "copied", "source": "TC", "round": 1, "block": "- f(1) must equal 2", "bullets": 1}
    told = [first, {"event": "mirror", "at": first["at"], **state}, *others]
    return [{**event, "n": number} for number, event in enumerate(told)]


def certificate_alone(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A certificate of a state that nothing tells of."""
    *others, end = events
    made = {"n": end["n"], "at": end["at"], "event": "certified", "code_sha256": "0" * 64, "restored": False}
    return [*others, made, {**end, "n": end["n"] + 1}]


def other_seed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first request was drawn with a seed of the drawer's own choice."""
    first = next(event["n"] for event in events if event["event"] == "request")
    return [{**event, "seed": 7} if event["n"] == first else event for event in events]


def drawn_elsewhere(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every round says that it was drawn by the payload of the same cell and call in another namespace."""
    return [
        {**event, "seed_payload": event["seed_payload"].replace("fake|", "elsewhere|", 1)}
        if event["event"] == "round"
        else event
        for event in events
    ]


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


def taken_from_the_discovery(folder: Path) -> None:
    """The discovery has the same output by the same seed, to another prompt, though its seeds are of another namespace."""
    reused(folder)
    (folder.parent / "other" / "registration.json").unlink()
    confirming_a_made_up_effect(folder, discovery="other")


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


def characterised(*, holds: bool) -> Callable[[list[Entry]], list[Entry]]:
    """What a check said of the first task's suite, kept before any cell was played."""

    def change(entries: list[Entry]) -> list[Entry]:
        at = next(index for index, entry in enumerate(entries) if entry.kind == "control.judged")
        rows = [{"kind": "mutant", "name": "a", "word": "killed" if holds else "survived", "holds": holds}]
        why = [] if holds else ["mutant a: survived (PASS)"]
        body = {"task": entries[at].body["task"], "holds": holds, "why": why, "rows": rows, "flaky": []}
        return [*entries[:at], replace(entries[at], kind="suite.characterised", body=body), *entries[at:]]

    return change


BROKEN: dict[str, Tamper] = {
    "chain": byte_flipped,
    "files": transcript_gone,
    "sessions": edited(changed("run.opened", lambda body: {**body, "registration": "another-0123456789ab"})),
    "known-entries": edited(lambda entries: [*entries[:-1], replace(entries[-1], kind="cell.forgotten"), entries[-1]]),
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
    "rounds-complete": lambda folder: retold(folder, other_prompt),
    "candidates-hold": lambda folder: retold(folder, other_replies),
    "mirrors-hold": lambda folder: retold(folder, state_of_a_mirror),
    "revisions-hold": lambda folder: retold(folder, certificate_alone),
    "seeds": lambda folder: retold(folder, other_seed),
    "no-reuse": reused,
    "spend-adds-up": edited(changed("cell.ended", part("spend", charged_tokens=1), which=-1)),
    "prices": edited(changed("cell.ended", priced_lower, which=-1)),
    "amendments": lambda folder: amended(folder, outcomes=3),
    "promotions": edited(lambda entries: [*entries, replace(entries[-1], kind="effect.promoted", body={})]),
    "discovery-apart": taken_from_the_discovery,
}
"""For each invariant a tampering that breaks it, and no other."""


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
    "a suite that was seen not to hold": (edited(characterised(holds=False)), "controls-held"),
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
    "another code than its digest says": (lambda folder: retold(folder, other_code), "rounds-complete"),
    "another candidate than was judged": (lambda folder: retold(folder, other_code), "candidates-hold"),
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
    "a call that was drawn as the discovery draws": (
        lambda folder: retold(confirming_a_made_up_effect(folder, discovery="other"), drawn_elsewhere),
        "discovery-apart",
    ),
    "an entry that no reader can read": (
        edited(changed("fence.probed", lambda _body: ["rows"])),
        "fence-receipts",
    ),
}
