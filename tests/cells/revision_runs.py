"""The example of forced revision on fakes: its own file, tasks and model, a real Python, and a referee of a few lines."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from harness.canonical import digest_bytes
from harness.clock import fresh_token
from harness.tasks.evalplus import SUITE_FILE
from harness.tree import Tree
from harness.values import Evidence, Verdict
from harness.views import Fact, PublicReading
from tests.fake_workspace import FakeBackend, FakeWorkspace
from tests.seats.revisions import real_python

EXAMPLE = Path(__file__).parents[2] / "examples" / "revision"


class HereReferee:
    """The tiers of an EvalPlus suite, run right here: only for code that stands in the example."""

    name = "evalplus"
    classes: Mapping[str, Any] = {"PASS": "accepted", "FAIL": "rejected"}

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = dict(options or {})

    def suite(self, sealed: Any) -> dict[str, Any]:
        """By the suite's text."""
        return {"digest": sealed.tests.digest, "counts": {"public": 1}}

    def reference(self, sealed: Any) -> Tree:
        """The task's own."""
        return Tree.of({"solution.py": sealed.solution.text("solution.py")})

    def battery(self, task: Any, sealed: Any) -> dict[str, Tree]:
        """Nothing at all."""
        return {"empty": Tree.of({"solution.py": ""})}

    async def judge(self, exhibit: Any, task: Any, sealed: Any, rooms: Any) -> Verdict:
        """Both tiers."""
        await anyio.lowlevel.checkpoint()
        said = _said(exhibit.tree.text("solution.py"), sealed, "base_input", "plus_input")
        reading = "PASS" if said.accepted else "FAIL"
        evidence = Evidence(code=exhibit.digest, suite=sealed.tests.digest, execution=fresh_token())
        return Verdict(reading=reading, standing=self.classes[reading], evidence=evidence, seconds=0.0)

    @asynccontextmanager
    async def public_check(self, task: Any, sealed: Any, rooms: Any) -> AsyncIterator[Any]:
        """The public tier."""

        async def check(code: str) -> PublicReading:
            await anyio.lowlevel.checkpoint()
            return _said(code, sealed, "base_input")

        yield check


def _value(space: dict[str, Any], name: str, call: list[Any]) -> Any:
    try:
        return space[name](*call)
    except Exception as error:  # noqa: BLE001 - whatever a defect raises is its answer
        return type(error)


def _said(code: str, sealed: Any, *tiers: str) -> PublicReading:
    suite = json.loads(sealed.tests.text(SUITE_FILE))
    name, wanted, given = suite["entry_point"], dict[str, Any](), dict[str, Any]()
    exec(sealed.solution.text("solution.py"), wanted)  # noqa: S102 - the example's own reference
    exec(code, given)  # noqa: S102 - and what its scripted model answers
    calls = [call for tier in tiers for call in suite[tier]]
    missed = [call for call in calls if _value(given, name, call) != _value(wanted, name, call)]
    facts = [Fact(call=f"{name}{tuple(call)!r}", expected=repr(_value(wanted, name, call))) for call in missed]
    return PublicReading(
        reading="FAIL" if missed else "PASS",
        accepted=not missed,
        passed=len(calls) - len(missed),
        total=len(calls),
        facts=tuple(facts[:6]),
        suite=sealed.tests.digest,
        execution=f"{digest_bytes(code.encode())[:8]} {fresh_token()}",
    )


def example(folder: Path, **changes: str) -> Path:
    """The scripted example as a file in `folder`, its tasks named in full; `changes` replace texts of it."""
    text = (EXAMPLE / "scripted/experiment.toml").read_text("utf-8")
    text = text.replace("folder:../repairs", f"folder:{EXAMPLE / 'repairs'}")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "experiment.toml"
    path.write_text(text + '\n[workspace]\nbackend = "docker"\n', "utf-8")
    return path


def backend() -> FakeBackend:
    """Fake workspaces with a Python."""
    return FakeBackend(name="docker", make=lambda name: FakeWorkspace(name=name, programs={"python3": real_python}))


__all__ = ["EXAMPLE", "HereReferee", "backend", "example"]
