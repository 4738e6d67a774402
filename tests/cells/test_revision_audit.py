"""The audit of revisions: a run of the example is clean, and each thing that its transcripts could lie about is found."""

import anyio
import pytest

from cells.audit.auditing import audit_run, check
from cells.audit.revised import RevisionsHold
from cells.freeze import freeze
from cells.run import run
from harness.clock import SystemClock
from tests.cells.audited import copied, retold
from tests.cells.houses import Quiet, fakes
from tests.cells.revision_runs import HereReferee, backend, example


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A run of the example with one task and the arm `stale`, whose correct start is destroyed and restored."""
    folder = tmp_path_factory.mktemp("revised")
    changes = {
        "restore = false": "restore = true",
        '/repairs"': '/repairs"\nids = ["Runs"]',
        "concurrency = 2": "concurrency = 1",
    }

    async def play():
        monkeypatch = pytest.MonkeyPatch()
        try:
            with fakes(monkeypatch, backend(), probed=True, referees_evalplus=HereReferee):
                frozen = await freeze(example(folder, **changes), folder / "runs", clock=SystemClock())
                assert await run(frozen.folder, watcher=Quiet()) == "finished"
        finally:
            monkeypatch.undo()
        return frozen.folder

    return anyio.run(play)


def of(kind, **changes):
    """A change of the first event of a kind."""

    def change(events):
        at = next(n for n, event in enumerate(events) if event["event"] == kind)
        return [{**event, **changes} if n == at else event for n, event in enumerate(events)]

    return change


def evidence_freshened(events):
    """The stale trace says that it is none."""
    return [
        {**event, "evidence": {**event["evidence"], "stale": False}} if event["event"] == "revision" else event
        for event in events
    ]


LIES = {
    "another start": (of("start", code="x = 1\n"), "its start has another SHA-256"),
    "a revision of another state": (of("revision", state_sha256="0" * 64), "was asked of another state"),
    "a revision out of order": (of("revision", revision=3), "revision 3 stands where 1 should"),
    "stale evidence called current": (evidence_freshened, "says stale: False"),
    "another prompt": (of("revision", prompt_sha256="0" * 64), "has another prompt than it names"),
    "another patch": (of("revised", code="x = 1\n"), "left another state than its action makes"),
    "a change without admission": (of("revised", admitted=False), "left another state than its action makes"),
    "another state before": (of("revised", before_sha256="0" * 64), "began with another state"),
    "a certificate of what never was": (
        of("certified", code_sha256="0" * 64),
        "neither the last nor was ever accepted",
    ),
    "a certificate that restored nothing": (of("certified", restored=False), "says restored: False"),
    "no start": (lambda events: [event for event in events if event["event"] != "start"], "expected the start"),
    "an event that is not whole": (of("revised", admitted=True, code=None), "is not whole"),
}


def test_the_run_is_clean(original):
    """Nothing of the contract is broken, though a correct state was destroyed on the way."""
    assert audit_run(original).findings == ()


@pytest.mark.parametrize("what", LIES)
def test_each_lie_is_found(what, original, tmp_path):
    """By this invariant, in words that say what is wrong."""
    change, said = LIES[what]
    folder = copied(original, tmp_path)
    retold(folder, change, which=2)
    assert any(said in finding.what for finding in check(RevisionsHold, folder)), check(RevisionsHold, folder)
