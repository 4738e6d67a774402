"""Namespaces of seeds: which two clash, what a freeze refuses, and that no two payloads can be the same."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cells.seed_spaces import refuse_shared_namespace
from harness.errors import GateRefused, IntegrityError
from harness.registration import Registration, load_registration, save_registration
from harness.seeds import PoolSeeds, SeedBook, hash_order, seed, spaces_clash
from harness.values import CellKey, Unit


def registration(namespace: str, **changes: Any) -> Registration:
    """One with nothing in it but a namespace."""
    values: dict[str, Any] = {
        "name": "one",
        "question": "?",
        "experiment": {"seat": {"seed_namespace": namespace}},
        "pins": {},
        "cells": (),
        "refused": (),
        "outlook": {},
        "frozen_at": "2026-01-01T00:00:00Z",
        "source": None,
    }
    return Registration(**{**values, **changes})


def kept(runs: Path, item: Registration, *, run: bool) -> None:
    """Save it, and with `run` a record too."""
    save_registration(runs / item.id, item)
    if run:
        (runs / item.id / "record.jsonl").write_text("")


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ("study", "'study' is the namespace of one-"),
        ("study-2", "too like 'study-2' \\(one begins with the other\\), that of one-"),
        ("stu", "too like 'stu'"),
    ],
)
def test_a_namespace_that_was_drawn_from_is_refused(tmp_path: Path, theirs: str, words: str) -> None:
    """Equal to another run's, or a prefix of it or the other way round; one never run is in nobody's way."""
    kept(tmp_path, registration(theirs, question="another"), run=False)
    refuse_shared_namespace(tmp_path, registration("study"))
    kept(tmp_path, registration(theirs, question="another"), run=True)
    with pytest.raises(GateRefused, match=words) as caught:
        refuse_shared_namespace(tmp_path, registration("study"))
    assert caught.value.gate == "seeds"


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000], ids=["empty", "none", "list", "bytes", "deep"]
)
def test_a_damaged_registration_beside_is_told_and_not_passed_over(tmp_path: Path, data: bytes) -> None:
    """What it has drawn can't be told, so nothing is frozen beside it as long as it is there; nor can it be read."""
    theirs = registration("theirs")
    kept(tmp_path, theirs, run=True)
    (tmp_path / theirs.id / "registration.json").write_bytes(data)
    with pytest.raises(IntegrityError, match=r"registration.json is damaged: .*Which seeds that run has drawn"):
        refuse_shared_namespace(tmp_path, registration("study"))
    with pytest.raises(IntegrityError, match=r"registration.json is damaged"):
        load_registration(tmp_path / theirs.id)
    (tmp_path / theirs.id / "record.jsonl").unlink()
    refuse_shared_namespace(tmp_path, registration("study"))


def test_a_run_is_not_in_its_own_way(tmp_path: Path) -> None:
    """Freezing the same thing again is harmless, and a namespace of its own is free."""
    kept(tmp_path, registration("study"), run=True)
    refuse_shared_namespace(tmp_path, registration("study"))
    refuse_shared_namespace(tmp_path, registration("other", question="another"))
    refuse_shared_namespace(tmp_path / "none", registration("study"))


def test_clashes_are_symmetric() -> None:
    """Whichever of the two was there first."""
    for one, other in (("a", "a"), ("a", "ab"), ("ab", "a")):
        assert spaces_clash(one, other)
    for one, other in (("ab", "ac"), ("b", "ab")):
        assert not spaces_clash(one, other)


def test_no_two_payloads_are_the_same() -> None:
    """Cells and pools of any names, a benchmark called `pool` among them: each draw has a payload of its own."""
    payloads = []
    for benchmark, task, arm, model in product(("pool", "b"), ("1", "2"), ("pool", "1"), ("m", "1")):
        key = CellKey(benchmark=benchmark, task=task, arm=arm, extras="none", model=model, replicate=1)
        payloads += [SeedBook("n", str(key)).payload(call) for call in range(3)]
    for benchmark, task, model in product(("pool", "b"), ("1", "2"), ("m", "1")):
        unit = Unit(benchmark=benchmark, model=model, task=task)
        assert set(asdict(unit)) == {"benchmark", "model", "task"}
        payloads += [PoolSeeds("n", str(unit)).payload(index) for index in range(3)]
    assert len(set(payloads)) == len(payloads)
    assert PoolSeeds("n", "b|m|t").seed(3) == seed("n|pool|b|m|t|3") != PoolSeeds("o", "b|m|t").seed(3)
    assert json.loads(json.dumps(PoolSeeds("n", "u").seed(0))) < 2**32


def test_the_order_by_hash_depends_on_its_purpose_alone() -> None:
    """Not on the order of the names; two purposes give two orders."""
    names = [f"t{number}" for number in range(20)]
    assert hash_order(names, "cap") == hash_order(reversed(names), "cap") != hash_order(names, "disjoint")
    assert sorted(hash_order(names, "cap")) == sorted(names)
