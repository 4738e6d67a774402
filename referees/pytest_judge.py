"""
The judge's side of the `pytest` referee: runs the withheld suite in a room that holds no file of the exhibit.

The modules of the card's interface are stand-ins whose calls cross to the other room. What this program reports leaves
by a channel that only it and the harness hold. It runs inside workspaces, so it uses the standard library, the copy of
pytest that the harness sends, and its neighbours only.
"""

from __future__ import annotations

import importlib.util
import io
import json
import linecache
import mmap
import os
import resource
import sys
import tarfile
import time
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from referees.pytest_remote import Client, SubjectModule
from referees.pytest_watch import POLL_S, Watch, adopt
from referees.pytest_wire import LABEL, LOAD, frame, read_frame, take_channel, write_all

if TYPE_CHECKING:
    import pytest

DETAIL = 600
"""Characters of what is said of one failed test."""


class Reporter:
    """Our own pytest plugin: it sends each phase of each test as an event, and keeps to the ids that were asked for."""

    def __init__(self, client: Client, writer: int, nonce: str, only: list[str] | None) -> None:
        self.client = client
        self.writer = writer
        self.nonce = nonce
        self.only = only

    def send(self, event: str, **data: Any) -> None:
        """One event, with the nonce of this execution."""
        write_all(self.writer, frame(b"E", {"event": event, "nonce": self.nonce, **data}))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file of the suite that can't be collected is ours to answer for."""
        if report.outcome != "passed":
            self.send("uncollected", id=report.nodeid, detail=str(report.longrepr)[-DETAIL:])

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Say what was collected, then keep what was asked for; from here on the subject may be called."""
        self.send("collected", ids=[item.nodeid for item in items])
        if self.only is not None:
            items[:] = [item for item in items if item.nodeid in self.only]
        self.client.open = True

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """A test that something left out."""
        self.send("deselected", ids=[item.nodeid for item in items])

    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send the phase as pytest reports it, and what became of the subject by then."""
        try:
            report = yield
        except Exception as error:
            if call.excinfo is None:
                raise
            shown = f"{type(error).__name__} while what was raised was shown"
            report = _plain_report(item, call, shown)
        failed = report.outcome == "failed" and call.excinfo is not None
        self.send(
            "phase",
            id=item.nodeid,
            when=report.when,
            outcome=report.outcome,
            xfail=hasattr(report, "wasxfail"),
            fault=self.client.fault,
            raised=call.excinfo.type.__name__[:LABEL] if failed and call.excinfo is not None else None,
            **(self._detail(call) if failed else {}),
        )
        return report

    def _detail(self, call: pytest.CallInfo[None]) -> dict[str, str]:
        """The violated line of the suite, what was raised there, and the subject's last answer."""
        excinfo = call.excinfo
        assert excinfo is not None
        frames = [entry for entry in excinfo.traceback if Path(str(entry.path)).name.startswith(("test_", "conftest"))]
        source = linecache.getline(str(frames[-1].path), frames[-1].lineno + 1).strip() if frames else ""
        kind = excinfo.type.__name__
        try:
            text = str(excinfo.value).partition("\n")[0]
        except Exception:  # noqa: BLE001 - the text may hold an integer too long to print
            text = ""
        said = f"{kind}: {text}" if text else kind
        answer = f"; the subject's last answer: {self.client.last}" if self.client.last else ""
        return {"line": source[:DETAIL], "detail": f"{said}{answer}"[:DETAIL]}


def _plain_report(item: pytest.Item, call: pytest.CallInfo[None], shown: str) -> pytest.TestReport:
    """The report of a failed phase, without what was raised there."""
    import pytest

    when = call.when
    assert when != "collect"  # that is no phase of a test
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", shown, when)


def _wrapped() -> None:
    """Mark the one hook that wraps pytest's own; pytest is importable by now."""
    import pytest

    mark = pytest.hookimpl(wrapper=True, tryfirst=True)
    mark(Reporter.pytest_runtest_makereport)


def _stand_ins(client: Client, order: dict[str, Any]) -> None:
    """Put a stand-in for each module of the interface where the suite's imports will find it."""
    for module in order["interface"]:
        made = SubjectModule(module["module"])
        for name in module["names"]:
            setattr(made, name, client.remote(order["names"][f"{module['module']}.{name}"]))
        for name in module["exceptions"]:
            setattr(made, name, client.exception_class(order["names"][f"{module['module']}.{name}"]))
        sys.modules[module["module"]] = made


def _lay(archive: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = folder / member.name
            path.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            path.write_bytes(source.read() if source is not None else b"")


def _loaded(folder: Path, reader: int, writer: int) -> dict[str, Any]:
    """Say which Python this is, take the orders, and lay down pytest and the suite."""
    python = {"magic": importlib.util.MAGIC_NUMBER.hex(), "version": list(sys.version_info[:3])}
    write_all(writer, frame(b"L", python))
    order: dict[str, Any] = json.loads(read_frame(reader, LOAD)[1])
    (folder / "pytest.zip").write_bytes(read_frame(reader, LOAD)[1])
    (folder / "suite").mkdir()
    _lay(read_frame(reader, LOAD)[1], folder / "suite")
    (folder / "judge.ini").write_text("[pytest]\n")
    return order


def _run(folder: Path, client: Client, order: dict[str, Any]) -> None:
    """Run pytest, and say how pytest itself ended."""
    log = folder / "judge.log"
    with log.open("wb") as sink:
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
    limit = order["judge_bytes"]
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.path.insert(0, str(folder / "pytest.zip"))
    sys.dont_write_bytecode = True
    import pytest

    _wrapped()
    _stand_ins(client, order)
    reporter = Reporter(client, client.writer, order["nonce"], order["only"])
    suite = str(folder / "suite")
    options = ["-c", str(folder / "judge.ini"), "--rootdir", suite, "--confcutdir", suite, "--assert=plain"]
    quiet = ["-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:faulthandler", "--capture=no"]
    status = pytest.main([*options, *quiet, suite], plugins=[reporter])
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:] if status not in (0, 1) else ""
    reporter.send("finished", status=int(status), pytest=pytest.__version__, said=said)


def main(folder: str) -> None:
    """
    Run the suite in a process of its own, and watch it: what a suite is answered may make it work, or wait, for ever.

    Where it fails, say how, so that nobody has to guess; `T` says that it was over its own time.
    """
    reader, writer = take_channel()
    order = _loaded(Path(folder), reader, writer)
    turn = mmap.mmap(-1, 1)
    child = os.fork()
    if child == 0:
        try:
            _run(Path(folder), Client(reader, writer, turn), order)
        except BaseException:  # noqa: BLE001 - whatever it is, the harness is told
            write_all(writer, frame(b"B", traceback.format_exc()[-4000:]))
        os._exit(0)
    adopt()
    watch = Watch(child, order["judge_s"], order["judge_s"])
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if over := watch.look(lambda: None if turn[0] % 2 else turn[0]):
            watch.end_all()
            write_all(writer, frame(b"T", over))
            return
        time.sleep(POLL_S)
    watch.end_all()
