"""The audit of samples: whatever is another than it is called is found, from the pool to the file that was judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.audit.auditing import audit_run, check
from cells.audit.candidates import CandidatesHold
from cells.audit.files import Files
from cells.pools.candidates import candidate_line, header_line, parse_pool, wanted
from cells.run import run
from harness.blobs import BlobStore
from harness.canonical import digest_bytes
from harness.registration import load_registration
from tests.cells.audited import changed, copied, entries_of, rechained, reregistered, retold
from tests.cells.houses import Quiet, fake_backend, fakes, frozen_run
from tests.cells.mirrored_house import FOUR, Checking, replying, varied
from tests.cells.test_pools import made
from tests.cells.test_population import PLACE

Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three units with a pool of two candidates, arms B and P, four rounds; every test works on a copy."""
    folder = tmp_path_factory.mktemp("sampled")
    monkeypatch = pytest.MonkeyPatch()

    async def play() -> Path:
        others = {"referees_null": Checking, "models_scripted": replying(varied)}
        with fakes(monkeypatch, fake_backend(folder), probed=True, **others):
            pool = await made(folder, monkeypatch, lambda _request: "```python\nx = 5\n```", n=2, judge=Checking({}))
        with fakes(monkeypatch, fake_backend(folder), probed=True, **others):
            table = f'[population]\npool = "pool.jsonl"\nsha256 = "{pool.digest}"\n'
            frozen = await frozen_run(folder, more=table, model="", seat_options=FOUR)
            assert await run(frozen.folder, watcher=Quiet()) == "finished"
        return frozen.folder

    try:
        return anyio.run(play)
    finally:
        monkeypatch.undo()


def test_an_honest_run_is_clean(original: Path) -> None:
    """P's first prompt shows a candidate of the pool, and all is what it is called."""
    assert audit_run(original).findings == ()
    path = next(path for path in (original / "transcripts").iterdir() if "-P-" in path.name)
    told = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert next(event for event in told if event["event"] == "round")["previous_round"] == 0
    assert "x = 5" in next(event for event in told if event["event"] == "request")["messages"][-1]["content"]


def every(kind: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Callable[[Events], Events]:
    """A change of all events of a kind."""
    return lambda events: [{**event, **change(event)} if event["event"] == kind else event for event in events]


def swapped(event: dict[str, Any]) -> dict[str, Any]:
    """Another code, with the digest that fits."""
    code = event["code"] + "  # another"
    return {"code": code, "code_sha256": digest_bytes(code.encode()), "code_bytes": len(code.encode())}


def resent(event: dict[str, Any]) -> dict[str, Any]:
    """Another candidate in the prompt."""
    message = event["messages"][-1]
    return {"messages": [{**message, "content": message["content"].replace("x = ", "x = 0 + ")}]}


def prefixed(event: dict[str, Any]) -> dict[str, Any]:
    """A message before the prompt that is no part of the experiment."""
    return {"messages": [{**event["messages"][-1], "role": "system", "content": "x = 3 is right."}, *event["messages"]]}


LIES: dict[str, tuple[Callable[[Events], Events], str]] = {
    "a candidate that the reply does not have": (every("extraction", swapped), "not what the extraction rule finds"),
    "a reply that the candidate is not of": (
        every("completion", lambda _event: {"text": "no code at all"}),
        "not what the extraction rule finds",
    ),
    "no reply": (
        lambda events: [event for event in events if event["event"] != "completion"],
        "no reply that it is of",
    ),
    "another incumbent": (every("round", lambda _event: {"previous_round": -1}), "its best before is that of"),
    "a prompt of another candidate": (every("request", resent), "is not what arm 'P' makes of its incumbent"),
    "something before the prompt": (every("request", prefixed), "stands what is not registered"),
    "a reading of another candidate": (
        every("public", lambda event: {"passed": 9 if event["round"] == 1 else 0}),
        "its best before is that of 1",
    ),
}


@pytest.mark.parametrize("what", LIES)
def test_each_lie_of_a_transcript_is_found(what: str, original: Path, tmp_path: Path) -> None:
    """The record's digests hold, and the invariant says which sample is another."""
    change, said = LIES[what]
    folder = copied(original, tmp_path)
    arms = [entry.body["cell"]["arm"] for entry in entries_of(folder) if entry.kind == "cell.ended"]
    retold(folder, change, which=arms.index("P"))
    found = check(CandidatesHold, folder)
    assert any(said in finding.what for finding in found), found


def test_another_exhibit_is_found(original: Path, tmp_path: Path) -> None:
    """What was judged is another cell's sample: the record names it, the verdict is of it, and it is a whole blob."""
    folder = copied(original, tmp_path)
    store = BlobStore(folder / "blobs")
    ended = [entry for entry in entries_of(folder) if entry.kind == "cell.ended"]
    tree = store.get_tree(ended[0].body["exhibit"])
    file = tree.files["solution.py"]
    other = store.put_tree(replace(tree, files={"solution.py": replace(file, data=b"x = 99")}))

    def change(body: dict[str, Any]) -> dict[str, Any]:
        evidence = {**body["verdict"]["evidence"], "code": other}
        return {**body, "exhibit": other, "verdict": {**body["verdict"], "evidence": evidence}}

    rechained(folder, changed("cell.ended", change, which=0))
    found = audit_run(folder).findings
    assert {finding.invariant for finding in found} == {"candidates-hold"}
    assert "is not the candidate of round" in found[0].what


def other_pool(data: bytes) -> bytes:
    """The same pool, but for one candidate of each unit: its code is another, and every digest inside fits."""
    pool = parse_pool(data, "pool")
    lines = [header_line(pool.header)]
    for unit, index in wanted(pool.header):
        content = {key: value for key, value in pool.lines[unit][index].items() if key not in (*PLACE, "sha256")}
        if index == 1:
            content["standard"] = {**content["standard"], "code": "x = 6"}
        lines.append(candidate_line(pool.header, unit, index, content))
    return b"".join(lines)


def test_a_swapped_candidate_of_the_pool_is_found(original: Path, tmp_path: Path) -> None:
    """Under a registration that fits, too: the prompts that were sent show the one that was there."""
    folder = copied(original, tmp_path)
    store, registration = BlobStore(folder / "blobs"), load_registration(folder)
    digest = store.put(other_pool(store.get(registration.pins["pool pool.jsonl"]["sha256"])))
    experiment = dict(registration.experiment)
    pins = {**registration.pins, "pool pool.jsonl": {**registration.pins["pool pool.jsonl"], "sha256": digest}}
    population = {**experiment["population"], "sha256": digest}
    reregistered(folder, pins=pins, experiment={**experiment, "population": population})
    found = check(CandidatesHold, folder)
    assert found
    assert all("is not what arm 'P' makes of its incumbent" in finding.what for finding in found)


def test_a_pool_that_was_turned_into_another_is_found(original: Path, tmp_path: Path) -> None:
    """A blob whose bytes are no longer what its name says: `files` says so, and nothing is read from it."""
    folder = copied(original, tmp_path)
    digest = load_registration(folder).pins["pool pool.jsonl"]["sha256"]
    path = folder / "blobs" / digest[:2] / digest[2:]
    path.write_bytes(other_pool(path.read_bytes()))
    assert check(CandidatesHold, folder) == ()
    assert any(digest in finding.where + finding.what for finding in check(Files, folder))
