"""A seat's tools in real workspaces: they do their work there, and nothing of the host comes back by any of them."""

from dataclasses import replace

import pytest

from harness import plugins
from harness.clock import fresh_token
from harness.seats.tools import SeatTools
from harness.transcript import Transcript, read_transcript
from harness.walls import Walls
from harness.workspaces.file_helper import open_helper
from tests.seats.desks import RULES

pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture
def anyio_backend() -> str:
    """The tools on both loops are tried on fakes; each case here opens rooms."""
    return "asyncio"


BACKENDS = ("bubblewrap", "docker")


def opened(name):
    """A sealed workspace of the backend `name`."""
    return plugins.load("workspaces", name)().open(Walls(image="proctor-seat"), run=f"tools-{fresh_token(4)}")


@pytest.mark.parametrize("name", BACKENDS)
async def test_the_tools_do_their_work(name):
    """What one tool makes another sees, and programs run as the seat's user in `/workspace`."""
    async with opened(name) as room:
        tools = SeatTools(room, RULES, timeout_s=20)
        for tool, arguments, text in (
            ("write", {"path": "src/a.py", "content": "print(6 * 7)\n"}, "wrote 13 bytes to /workspace/src/a.py"),
            ("run", {"command": "pwd; id -u; python3 src/a.py; echo oh >&2; exit 3"}, None),
            ("edit", {"path": "src/a.py", "old": "7", "new": "8"}, "edited /workspace/src/a.py at line 1"),
            ("read", {"path": "src/a.py"}, "print(6 * 8)\n"),
            ("search", {"pattern": "print"}, "/workspace/src/a.py:1: print(6 * 8)"),
            ("list", {"path": "src"}, "a.py (file, 13 bytes)"),
        ):
            outcome = await tools.call(tool, arguments)
            assert outcome.standing == "served", outcome
            if text is None:
                home, user, product, *rest = outcome.text.split("\n")
                assert (home, product, rest) == ("/workspace", "42", ["[stderr]", "oh", "[exit status 3]"])
                assert user != "0"
            else:
                assert outcome.text == text


@pytest.mark.parametrize("name", BACKENDS)
async def test_no_path_of_the_host_is_read(name, tmp_path):
    """A canary on the host is out of reach by name, by every sort of link, and by a program; so is what a tool may not touch."""
    canary = fresh_token()
    secret = tmp_path / "canary"
    secret.write_text(canary, encoding="utf-8")
    rules = replace(RULES, denied=("/workspace/denied",))
    async with opened(name) as room:
        tools = SeatTools(room, rules, timeout_s=20)
        traps = f"ln -s {secret} link; ln -s {tmp_path} folder; ln -s /proc/self/environ environ; ln -s / root; mkfifo pipe; mkdir denied; echo x > denied/x"
        assert (await tools.call("run", {"command": traps})).standing == "served"
        attempts = [
            ("read", {"path": path})
            for path in (
                "link",
                "folder/canary",
                "environ",
                "root/etc/passwd",
                "pipe",
                "denied/x",
                str(secret),
                "/proc/1/environ",
            )
        ]
        attempts += [
            ("write", {"path": path, "content": "x"}) for path in ("link", "folder/new", "root/tmp/x", "denied/y")
        ]
        attempts += [
            ("list", {"path": "root"}),
            ("search", {"pattern": ".", "path": "folder"}),
            ("edit", {"path": "link", "old": canary, "new": "x"}),
        ]
        for tool, arguments in attempts:
            outcome = await tools.call(tool, arguments)
            assert outcome.standing in {"refused", "absent"}, (tool, arguments, outcome)
            assert canary not in outcome.text
        outcome = await tools.call(
            "run", {"command": f"cat {secret} link folder/canary; find / -name canary 2>/dev/null | head -3"}
        )
        assert canary not in outcome.text
        assert "denied" not in (await tools.call("list", {})).text
    assert secret.read_text(encoding="utf-8") == canary
    assert [path.name for path in tmp_path.iterdir()] == ["canary"]


@pytest.mark.parametrize("name", BACKENDS)
async def test_a_command_that_goes_on_is_stopped(name):
    """The time limit ends the command and what it started; the workspace serves the next call."""
    async with opened(name) as room:
        tools = SeatTools(room, RULES, timeout_s=1.5)
        outcome = await tools.call("run", {"command": "echo begun; (trap '' TERM; sleep 60) & sleep 60"})
        assert (outcome.standing, outcome.text) == ("failed", "begun\n[stopped after 1.5 s]")
        tools = SeatTools(room, RULES, timeout_s=20)
        outcome = await tools.call(
            "run", {"command": "ls /proc | grep -c '^[0-9]'; head -c 100000 /dev/zero | tr '\\0' x"}
        )
        assert outcome.standing == "served"
        assert "[cut: a call shows at most 16384 bytes]" in outcome.text
        assert int(outcome.text.split("\n", 1)[0]) < 10


@pytest.mark.parametrize(("name", "counted"), [("bubblewrap", 0), ("docker", 3)])
async def test_nothing_runs_on_after_a_call(name, counted, tmp_path):
    """
    A background job, one in a session of its own and a stopped one are ended before the call is answered; where they
    outlive their command they are counted and told. The helper goes on, and nobody is blamed.
    """
    events = []
    async with (
        opened(name) as room,
        open_helper(room, event=lambda cause, said: events.append((cause, said))) as helper,
    ):
        with Transcript(tmp_path / "t.jsonl") as transcript:
            tools = SeatTools(room, RULES, helper=helper, timeout_s=20, transcript=transcript)
            await tools.call("write", {"path": "a", "content": "text"})
            mess = "sleep 600.25 & setsid sleep 600.25 & sleep 600.25 & kill -STOP $!; echo made"
            outcome = await tools.call("run", {"command": mess})
            assert outcome.left == counted
            assert outcome.text.startswith("made\n[exit status 0]")
            assert ("left running" in outcome.text) == bool(counted)
            alive = await tools.call(
                "run", {"command": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -ac 'sleep 600[.]25'"}
            )
            assert alive.text.startswith("0\n")
            assert (await tools.call("read", {"path": "a"})).text == "text"
    assert [event["left"] for event in read_transcript(tmp_path / "t.jsonl")] == [None, counted, 0, None]
    assert events == []


async def test_with_background_a_server_lives_from_call_to_call():
    """A policy that allows it: what one call starts the next one finds."""
    async with opened("docker") as room, open_helper(room) as helper:
        tools = SeatTools(room, replace(RULES, background=True), helper=helper, timeout_s=20)
        assert (await tools.call("run", {"command": "sleep 600 & echo $! > pid"})).left is None
        outcome = await tools.call("run", {"command": "kill -0 $(cat pid) && echo alive"})
        assert outcome.text.startswith("alive\n")
