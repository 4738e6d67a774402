"""A run full of data for the tests of the report: halts, lower bounds, voids, ties, a spread, rounds, refusals."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

from cells.cell_lines import cell_lines
from cells.gate_trips import GateCount, GateTrips, Refusal
from cells.readings import score
from cells.report_facts import ReportFacts
from cells.settled import settle
from cells.unlocks import Unlocks
from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome

TASKS = ("Crc32", "FreeList", "LRU", "LZW", "Paxos", "ring-buffer/with a rather long name of a problem")
ARMS = ("treated", "plain")
WORDS = (
    "PASS",
    "PASS",
    "PASS",
    "FAIL",
    "NO_BUILD",
    "HALT(tokens)",
    "HALT(usd)",
    "VOID(fence)",
    "FAILED_BOOT",
    "TIMEOUT",
)

SIZES = {"small": [f"made|{task}" for task in TASKS[:3]], "large": [f"made|{task}" for task in TASKS[3:]]}
ANALYSIS = Analysis(
    groupings=[{"name": "size", "members": SIZES}],
    contrasts=[
        {
            "name": "C1",
            "treatment": "treated",
            "control": "plain",
            "qualifiers": ["task 4 was replaced"],
            "strata": ["size"],
        },
        {"name": "C2", "treatment": "treated", "control": "plain", "alternative": "two-sided"},
    ],
    ratios=[
        {
            "name": "premium",
            "quantity": "usd",
            "treatment": "treated",
            "control": "plain",
            "alternative": "greater",
            "sd_ln": 0.30458,
            "min_n": 2,
            "qualifiers": ["prices in cents"],
        },
        {
            "name": "tokens",
            "quantity": "tokens",
            "treatment": "treated",
            "control": "plain",
            "alternative": "two-sided",
        },
    ],
)
PROBES = [
    {
        "probe": "dns",
        "language": "python",
        "expected": ["DENIED"],
        "finding_up": "DENIED",
        "evidence_up": "EAI_AGAIN",
        "finding_down": "SERVED",
        "weakening": "host network",
        "holds": True,
    },
    {"probe": "engine-socket", "expected": ["ABSENT"], "finding_up": "ABSENT", "finding_down": None, "holds": None},
]
CONTROLS = [
    {"task": "made/1", "name": "reference", "reading": "PASS", "standing": "accepted", "held": True},
    {"task": "made/1", "name": "empty", "reading": "PASS", "standing": "accepted", "held": False},
]
GATES = GateTrips(
    counts=(
        GateCount(gate="SCREENED", arm="treated", trips=2, of=31),
        GateCount(gate="SCREENED", arm="plain", trips=0, of=33),
    ),
    refusals=tuple(
        Refusal(
            cell="made|1|treated|none|m|1",
            arm="treated",
            attempt=1,
            gate="SCREENED",
            why="imports",
            would_be=word,
            accepted=None,
            exhibit=None,
            kept=False,
        )
        for word in ("PASS", "FAIL")
    ),
    unequal=("SCREENED does not refuse all arms alike: treated 2 of 31, plain 0 of 33",),
)
UNLOCKS = (
    Unlocks(arm="treated", extras="none", model="m", judged=48, unseen=0, by_round=(11, 18, 23, 25)),
    Unlocks(arm="plain", extras="none", model="m", judged=47, unseen=1, by_round=(11, 14, 15, 15)),
)


def outcomes_of(seed: int = 7, *, replicates: int = 5) -> tuple[list, list]:
    """Declared cells and their outcomes: each arm's costs are lognormal, the treated arm's higher, with ends of all kinds."""
    chance = random.Random(seed)  # noqa: S311 - a seeded generator of made-up figures
    declared, outcomes = [], []
    for task in TASKS:
        for arm in ARMS:
            for replicate in range(1, replicates + 1):
                cell = key(task, arm, replicate)
                usd = round(chance.lognormvariate(0.9 if arm == "treated" else 0.4, 0.45), 2)
                word = chance.choice(WORDS if arm == "treated" else WORDS[:-3])
                declared.append(cell)
                outcomes.append(
                    outcome(cell, word, tokens=int(usd * 90_000), usd=usd, calls=3, lower_bound=chance.random() < 0.1)
                )
    return declared, outcomes


def full_facts(**more) -> ReportFacts:
    """The facts of a run in which everything happened."""
    return replace(_full(), **more)


@cache
def _full() -> ReportFacts:
    declared, outcomes = outcomes_of()
    board = score(declared, outcomes, ANALYSIS, head="4711:" + "ab12" * 16, registration_id="full-0123456789ab")
    given = {
        "registration": {
            "id": "full-0123456789ab",
            "name": "full",
            "question": "Does the treatment cost more than it is worth?",
            "digest": "d1" * 32,
            "frozen_at": "2026-11-30T16:00:00Z",
            "source": "/home/a/experiment.toml",
            "pins": {
                "code": "c0" * 32,
                "image": {"digest": "e1" * 32, "name": "proctor-seat"},
                "task made/1": "f" * 64,
                "model m": {"digest": None, "provider": "scripted"},
            },
            "refused": [{"cell": "made|7|A|none|m|1", "gate": "disjoint", "detail": "the workspace meets the denied"}],
        },
        "board": board,
        "probes": PROBES,
        "controls": CONTROLS,
        "gates": GATES,
        "unlocks": UNLOCKS,
        "plan": {"cells declared": 60, "sessions": 2, "referee": "null", "models": ["m: scripted script"]},
        "cells": tuple(cell_lines("full-0123456789ab", settle(declared, outcomes))),
    }
    return ReportFacts(**given)
