"""Many programs as one: each in a namespace of its own, nothing left of any, and a report that is believed or is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fences.batch import Body, run_batch
from fences.classifier import Try
from tests.fake_workspace import FakeWorkspace, ran

pytestmark = pytest.mark.anyio


def room(answer=None):
    """A workspace whose python3 is this machine's: what it runs here are bodies of this page."""

    def python3(call):
        if answer is not None:
            return answer
        # What is new in these is taken away: here that would be the files of whatever else runs on this machine.
        assert not {"/tmp", "/dev/shm", "/workspace"} & set(json.loads(call.stdin)["folders"])
        done = subprocess.run(
            [sys.executable, *call.argv[1:]], input=call.stdin, capture_output=True, timeout=15, check=False
        )
        return ran(stdout=done.stdout, stderr=done.stderr, status=done.returncode)

    return FakeWorkspace(programs={"python3": python3})


def body(name, text, **arguments):
    """One program."""
    return Body(name=name, body=text, arguments=arguments)


def lives(pid):
    """Whether a process is there."""
    return Path("/proc", pid).exists()


async def test_each_body_is_told_its_own_and_reports_its_own(tmp_path):
    """Arguments, tries and names of one body are not those of the next, and one that fails stops no other."""
    batch = await run_batch(
        room(),
        [
            body("first", 'secret = 1\nattempt("a", lambda: {"fact": args["word"]})', word="one"),
            body("broken", 'raise KeyError("x")'),
            body("quits", "sys.exit(3)"),
            body("last", 'attempt("b", lambda: {"signature": "EPERM" if "secret" not in globals() else "LEAKED"})'),
        ],
        folders=[str(tmp_path)],
    )
    assert batch.tries["first"] == [Try(what="a", fact="one")]
    assert batch.tries["broken"] == "the program failed: KeyError: 'x'"
    assert batch.tries["quits"] == "the program failed: SystemExit: 3"
    assert batch.tries["last"] == [Try(what="b", signature="EPERM")]
    assert set(batch.ms) == {"first", "broken", "quits", "last"}


async def test_a_seats_own_folder_is_not_where_it_stands(tmp_path):
    """A seat that shuts `/workspace` would blind the gate at its end: no program could be started in there."""
    rooms = room()
    bodies = [body("a", "attempt('x', lambda: {'signature': 'EPERM'})")]
    assert not isinstance(await run_batch(rooms, bodies, folders=[str(tmp_path)]), str)
    assert [call.cwd for call in rooms.calls] == ["/"]


async def test_nothing_of_a_body_stays(tmp_path):
    """Files, folders and processes that a body leaves are gone, and the folder's times are as they were."""
    (tmp_path / "task.md").write_text("the task", "utf-8")
    before = tmp_path.stat().st_mtime_ns
    mess = """
import subprocess
os.mkdir(args["home"] + "/made")
open(args["home"] + "/made/file", "w").write("x")
os.symlink("/etc", args["home"] + "/link")
child = subprocess.Popen(["sleep", "300"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "301"])
    os._exit(0)
attempt("mess", lambda: {"fact": str(child.pid)})
"""
    batch = await run_batch(room(), [body("mess", mess, home=str(tmp_path))], folders=[str(tmp_path)])
    assert batch.left == ()
    assert [path.name for path in tmp_path.iterdir()] == ["task.md"]
    assert tmp_path.stat().st_mtime_ns == before
    pid = batch.tries["mess"][0].fact
    assert not lives(pid)


async def test_what_can_not_be_taken_away_is_told(tmp_path):
    """A trace that stays is named: a seat would find it."""
    made = 'os.mkdir(args["home"] + "/stuck")\nshutil_rmtree = None\nimport shutil\nshutil.rmtree = lambda path: (_ for _ in ()).throw(OSError(1, "no"))\nattempt("x", lambda: {"signature": "EPERM"})'
    batch = await run_batch(room(), [body("made", made, home=str(tmp_path))], folders=[str(tmp_path)])
    assert batch.left == (f"{tmp_path}/stuck: no",)


async def test_a_child_that_comes_back_is_no_second_report(tmp_path):
    """A child that falls out of its body is ended, and the parent's report is the one that counts."""
    fork = 'child = os.fork()\nif child == 0:\n    raise ValueError("lost")\nattempt("x", lambda: {"fact": str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))})'
    batch = await run_batch(room(), [body("fork", fork)], folders=[str(tmp_path)])
    assert batch.tries["fork"] == [Try(what="x", fact="99")]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ran(status=127), "exit 127"),
        (ran(status=137), "killed"),
        (ran(stdout=b"hello"), "can't be read"),
        (ran(stdout=b'{"tries": [{"what": "batch", "signature": "REPORTED"}]}'), "can't be read: KeyError"),
        (ran(status=None, timed_out=True), "timed out"),
    ],
)
async def test_a_report_that_is_none_says_why(answer, said):
    """Nothing may be concluded from a batch that did not report."""
    assert said in await run_batch(room(answer), [body("a", "")])


async def test_a_body_that_is_not_in_the_report_is_unclear():
    """A body without its line was not run."""
    answer = ran(
        stdout=b'{"tries": [{"what": "batch", "signature": "REPORTED"}], "found": {}, "ms": {}, "left": ["x"]}'
    )
    batch = await run_batch(room(answer), [body("a", "")])
    assert batch.tries["a"] == "the program failed: it is not in the report"
    assert batch.left == ("x",)
