"""The audit of mirrored arms: honest runs are clean, and each prompt that is no copy of its source's is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from arms.packets_facts import GENERIC
from cells.audit.auditing import audit_run, check
from cells.audit.mirrored import MirrorsHold
from cells.run import run
from harness.canonical import digest_bytes
from harness.errors import ModelServerError
from harness.messages import Request
from harness.seats import mirroring
from tests.cells.audited import MODEL, copied, entries_of, retold
from tests.cells.doctored_arms import OtherFacts, Telling
from tests.cells.houses import Quiet, fake_backend, fakes
from tests.cells.mirrored_house import FOUR, Checking, frozen, is_source, replying, varied

Events = list[dict[str, Any]]


def played(folder: Path, answer: Any = varied, *, unheld: bool = False, plugins: Any = None, **changes: Any) -> Path:
    """Freeze and play three mirrored arms; `unheld` has the seat send whatever a packet renders."""
    monkeypatch = pytest.MonkeyPatch()

    async def play() -> Path:
        fake = fake_backend(folder)
        others = {"referees_null": Checking, "models_scripted": replying(answer), **(plugins or {})}
        with fakes(monkeypatch, fake, probed=True, **others):
            if unheld:
                monkeypatch.setattr(mirroring, "audit_packet", lambda *_given: None)
            made = await frozen(folder, concurrency=9, model=MODEL, **changes)
            with anyio.fail_after(15):
                await run(made.folder, watcher=Quiet())
        return made.folder

    try:
        return anyio.run(play)
    finally:
        monkeypatch.undo()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run; every test works on a copy."""
    return played(tmp_path_factory.mktemp("mirrored"))


def test_an_honest_run_is_clean(original: Path) -> None:
    """Every round of both mirroring arms was held against its source's: three units, four rounds."""
    found = audit_run(original)
    assert found.findings == ()
    assert found.counts["mirrors-hold"] == {"rounds held against their source's": 2 * 3 * 4}


def lost_once() -> Callable[[Request], Any]:
    """A source's server fails once."""
    failed: list[int] = []

    def answer(request: Request) -> Any:
        if "requirements" in request.messages[-1].content and is_source(request) and not failed:
            failed.append(1)
            return ModelServerError("down")
        return varied(request)

    return answer


def early(request: Request) -> str:
    """The source is accepted in its second round, and its mirrors never."""
    text = request.messages[-1].content
    return "x = 99" if "requirements" in text and is_source(request) else "x = 3"


def over_the_bound(request: Request) -> str:
    """The source's fourth prompt would be too long; by then its mirrors were accepted."""
    text = request.messages[-1].content
    if not is_source(request):
        return "x = 99"
    return LONG if "requirements" in text else "x = 3"


LONG = "y = '" + "a" * 3000 + "'\nx = 3"
HONEST: dict[str, tuple[Any, str]] = {
    "a source that was tried twice": (lost_once(), FOUR),
    "a source that was done early": (early, f'{FOUR}\nafter_source = "end"'),
    "a source whose last state is gone on with": (early, f'{FOUR}\nafter_source = "last"'),
    "mirrors that were done before their source was refused": (over_the_bound, f"{FOUR}\nmax_prompt_tokens = 600"),
    "a unit that was refused": (lambda _request: LONG, f"{FOUR}\nmax_prompt_tokens = 600"),
}


@pytest.mark.parametrize("what", HONEST)
def test_what_may_happen_is_clean(what: str, tmp_path: Path) -> None:
    """Nothing that the protocol provides for is taken for a violation."""
    answer, options = HONEST[what]
    assert audit_run(played(tmp_path, answer, seat_options=options)).findings == ()


def test_what_a_careless_runner_sent_is_found(tmp_path: Path) -> None:
    """Doctored packets, and a seat that holds no prompt against its state: the transcripts tell."""
    folder = played(tmp_path, unheld=True, plugins={"arms_CF-SF": OtherFacts, "arms_GR-SHAPE": Telling})
    found = check(MirrorsHold, folder)
    for arm, said in {"CF-SF": "its fact block has SHA-256", "GR-SHAPE": "a generic bullet has 'task_"}.items():
        of = [finding.what for finding in found if f"|{arm}|" in finding.what]
        assert of
        assert all(said in what for what in of), of


def of_arm(folder: Path, arm: str) -> int:
    """Which outcome of the record is an arm's of the last task."""
    cells = [entry.body["cell"] for entry in entries_of(folder) if entry.kind == "cell.ended"]
    return next(at for at, cell in enumerate(cells) if (cell["arm"], cell["task"]) == (arm, "Fake/2"))


def resent(change: Callable[[str], str]) -> Callable[[Events], Events]:
    """Other prompts than were sent, under digests that fit."""

    def edit(events: Events) -> Events:
        told: Events = []
        for given in events:
            event = given
            if event["event"] == "request":
                message = event["messages"][-1]
                text = change(message["content"])
                event = {**event, "messages": [*event["messages"][:-1], {**message, "content": text}]}
                at = max(n for n, one in enumerate(told) if one["event"] == "round")
                told[at] = {**told[at], "prompt_sha256": digest_bytes(text.encode())}
            told.append(event)
        return told

    return edit


def replaced(old: str, new: str) -> Callable[[Events], Events]:
    """Other words in every prompt."""
    return resent(lambda text: text.replace(old, new))


def noted(**changes: Any) -> Callable[[Events], Events]:
    """Another state in every note of a mirror."""
    return lambda events: [{**event, **changes} if event["event"] == "mirror" else event for event in events]


def renumbered(events: Events) -> Events:
    """Events without a gap, after one was cut out."""
    return [{**event, "n": number} for number, event in enumerate(events)]


BROKEN: dict[str, tuple[str, Callable[[Events], Events], str]] = {
    "a fact of another value in CF-SF": ("CF-SF", replaced("must equal 0", "must equal 1"), "its fact block has"),
    "a fact of another value in TC": ("TC", replaced("must equal 0", "must equal 1"), "its fact block has"),
    "another code beside the facts": ("CF-SF", replaced("```python\nx =", "```python\nx  ="), "byte for byte"),
    "a generic bullet too few": ("GR-SHAPE", replaced(f"{GENERIC[0]}\n", ""), "bullets: expected"),
    "a word of the task in a generic bullet": (
        "GR-SHAPE",
        replaced(GENERIC[0], f"{GENERIC[0]}, and 0"),
        "a generic bullet has '0'",
    ),
    "an instruction of other words": (
        "CF-SF",
        replaced("Work out what", "Find out what"),
        "is not what arm 'CF-SF' makes of its source's state",
    ),
    "a note of another state": ("CF-SF", noted(bullets=5), "is not the one that the rounds of 'TC' make: bullets"),
    "a source's note of another state": ("TC", noted(dropped=1), "make: dropped"),
    "no note at all": (
        "GR-SHAPE",
        lambda events: renumbered([event for event in events if event["event"] != "mirror"]),
        "none was noted",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_each_difference_is_found_by_this_invariant(what: str, original: Path, tmp_path: Path) -> None:
    """The record's digests hold, and so do those that the transcript names: the prompts themselves tell."""
    arm, change, said = BROKEN[what]
    folder = copied(original, tmp_path)
    retold(folder, change, which=of_arm(folder, arm))
    assert {finding.invariant for finding in audit_run(folder).findings} <= {"mirrors-hold", "candidates-hold"}
    assert any(said in finding.what for finding in check(MirrorsHold, folder)), check(MirrorsHold, folder)


def test_rounds_of_the_source_that_were_told_otherwise(original: Path, tmp_path: Path) -> None:
    """What the public tests said of the source's candidates makes the states of its mirrors."""
    folder = copied(original, tmp_path)

    def other(events: Events) -> Events:
        return [{**event, "facts": event["facts"][:-1]} if event["event"] == "public" else event for event in events]

    retold(folder, other, which=of_arm(folder, "TC"))
    said = "\n".join(finding.what for finding in check(MirrorsHold, folder))
    assert all(f"|{arm}|" in said for arm in ("TC", "CF-SF", "GR-SHAPE"))
