"""
The `swebench` referee: SWE-bench's own harness, unmodified, runs and grades one instance in an image that is pinned.

The harness starts the instance's container itself, so the rooms of this referee are not used. What it is given is the
engine's client with bounds: one image by its id, no network, few capabilities. Its verdict is read off a log in which
the candidate's own program has a voice: that is how the benchmark grades, and each verdict says so.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import resources
from types import MappingProxyType
from typing import Any

import anyio

from harness.canonical import digest_bytes, digest_json
from harness.clock import fresh_token
from harness.ports import PublicCheck, RoomOpener
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Evidence, Standing, TierReading, Verdict
from referees.swebench_card import SweBenchCard, read_options, record
from referees.swebench_patch import patch_of
from referees.swebench_run import answered, order_for

__all__ = ["SweBenchReferee", "tiers_of"]

CLASSES: Mapping[str, Standing] = MappingProxyType(
    {
        "RESOLVED": "accepted",
        "UNRESOLVED": "rejected",
        "NO_PATCH": "rejected",
        "PATCH_FAILED": "rejected",
        "TIMEOUT": "rejected",
        "UNSCORABLE": "unscorable",
    }
)
_SOURCES = ("swebench", "swebench_card", "swebench_patch", "swebench_run", "swebench_worker")
_AS_GRADED = "as SWE-bench grades: by a log that the candidate's own program can write to"
_IDLE = """\
diff --git a/idle.txt b/idle.txt
new file mode 100644
--- /dev/null
+++ b/idle.txt
@@ -0,0 +1 @@
+nothing is done here
"""


class SweBenchReferee:
    """Judges by SWE-bench's harness; made with the options of `SweBenchOptions`, as a mapping or by name."""

    name = "swebench"
    classes: Mapping[str, Standing] = CLASSES

    def __init__(self, options: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        self.options = read_options({**(options or {}), **named})

    def suite(self, sealed: SealedHalf) -> Mapping[str, Any]:
        """What a verdict depends on: record, card, options, and the versions of swebench and of this referee."""
        card, instance = record(sealed)
        folder = resources.files("referees")
        sources = {name: digest_bytes(folder.joinpath(f"{name}.py").read_bytes()) for name in _SOURCES}
        parts = {
            "record": instance,
            "card": card.model_dump(mode="json"),
            "options": self.options.model_dump(mode="json"),
            "swebench": _version(),
            "sources": sources,
        }
        counts = {name: len(instance[name]) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}
        ids = [*instance["FAIL_TO_PASS"], *instance["PASS_TO_PASS"]]
        return {"digest": digest_json(parts), "ids": ids, "counts": counts, "swebench": _version()}

    def reference(self, sealed: SealedHalf) -> Tree:
        """The record's own patch, which must be RESOLVED before anything is judged."""
        card, instance = record(sealed)
        return Tree.of({card.patch: instance["patch"]})

    def battery(self, task: OpenHalf, sealed: SealedHalf) -> Mapping[str, Tree]:
        """No patch, a text that is none, and one that adds an idle file."""
        card, _ = record(sealed)
        texts = {"empty": "", "no_patch_at_all": "this is no patch\n", "idle": _IDLE}
        return {name: task.environment.merged(Tree.of({card.patch: text})) for name, text in texts.items()}

    async def judge(self, exhibit: Exhibit, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener) -> Verdict:
        """
        The verdict on an exhibit. Raises `RefereeError` when harness or engine fail, and `ImageError` when package or
        image are missing: then nothing was decided.
        """
        del rooms  # the harness makes its own container, within our bounds
        started = anyio.current_time()
        card, instance = record(sealed)
        nonce = fresh_token()
        patch = patch_of(exhibit.tree, task.environment, card.patch)
        reading, tiers, detail = await _judged(order_for(card, instance, patch, self.options, nonce), card)
        suite = str((await anyio.to_thread.run_sync(self.suite, sealed))["digest"])
        counts = [[tier.tier, tier.passed, tier.total] for tier in tiers]
        return Verdict(
            reading=reading,
            standing=self.classes[reading],
            evidence=Evidence(
                code=exhibit.digest,
                suite=suite,
                execution=digest_json({"nonce": nonce, "reading": reading, "tiers": counts}),
            ),
            tiers=tiers,
            detail=detail[:2000],
            seconds=anyio.current_time() - started,
            limits={"wall_s": float(card.timeout_s), "memory_bytes": float(self.options.memory_bytes)},
        )

    @asynccontextmanager
    async def public_check(
        self, task: OpenHalf, sealed: SealedHalf, rooms: RoomOpener
    ) -> AsyncIterator[PublicCheck | None]:
        """None: SWE-bench has no public tests."""
        del task, sealed, rooms
        yield None


async def _judged(order: dict[str, Any], card: SweBenchCard) -> tuple[str, tuple[TierReading, ...], str]:
    """
    Run it, and once more where it took too long or its patch was not applied: a machine's load could be the reason, or
    a container that was killed in that moment.
    """
    if not order["patch"].strip():
        return "NO_PATCH", (), "the exhibit has no patch, and differs in nothing from the environment"
    answer = await answered(order)
    if answer["end"] in ("timeout", "patch failed"):
        answer = await answered(order)
    if answer["end"] == "timeout":
        return "TIMEOUT", (), f"the tests were not done within {card.timeout_s} s, twice"
    if answer["end"] == "patch failed":
        return "PATCH_FAILED", (), f"none of the harness's ways applies the patch: {answer['log'][-400:]}"
    report = answer["report"]
    tiers = tiers_of(report)
    counts = ", ".join(f"{tier.passed} of {tier.total} {tier.tier}" for tier in tiers) or "no result in the log"
    return "RESOLVED" if report["resolved"] is True else "UNRESOLVED", tiers, f"{counts}; {_AS_GRADED}"


def tiers_of(report: Mapping[str, Any]) -> tuple[TierReading, ...]:
    """How many tests of each kind went as they should; nothing where the harness found no results at all."""
    found = report.get("tests_status", {})
    return tuple(
        TierReading(
            tier=name,
            reading="UNRESOLVED" if found[name]["failure"] else "RESOLVED",
            passed=len(found[name]["success"]),
            total=len(found[name]["success"]) + len(found[name]["failure"]),
        )
        for name in ("FAIL_TO_PASS", "PASS_TO_PASS")
        if name in found
    )


def _version() -> str:
    """The version of swebench here, or none."""
    try:
        return importlib.metadata.version("swebench")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
