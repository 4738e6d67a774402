"""One run of a program as the subject's room makes it: bounds, what it leaves alive, and how it is told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from referees import command_program
from referees.command_wire import packed, unpacked
from referees.pytest_wire import WireError

DRIVER = """\
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from referees.command_program import Bounds, run
from referees.pytest_watch import adopt
adopt()
order = json.loads(sys.argv[2])
end, out, err = run(order["argv"], Path(sys.argv[3]), {"PATH": "/usr/bin:/bin"}, order["stdin"].encode() * order["times"],
                    Bounds(**order["bounds"]), beat=lambda: None)
print(json.dumps([end, out.decode("latin-1")[:200], len(out), err.decode("latin-1")[:200]]))
"""

UNWAITED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(60):
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os._exit(0)
    try: os.wait()
    except OSError: pass
"""
"""Children whose time the kernel adds to nobody's, since nobody waits for them."""


def ran(
    folder: Path, program: str, stdin: str = "", *, times: int = 1, **bounds: Any
) -> tuple[dict[str, Any], str, int, str]:
    """What a shell program came to, under a server of its own: nothing of it may outlive that."""
    order = {
        "argv": ["sh", "-c", program],
        "stdin": stdin,
        "times": times,
        "bounds": {"output_bytes": 1 << 16, "memory_bytes": 200 << 20, "cpu_s": 5.0, "blocked_s": 9.0, **bounds},
    }
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", DRIVER, root, json.dumps(order), str(folder)]
    found = subprocess.run(command, capture_output=True, check=True, timeout=15)
    end, out, size, err = json.loads(found.stdout)
    return end, out, size, err


def test_input_goes_in_and_outputs_and_status_come_out(tmp_path: Path) -> None:
    """Bytes as they are, in the folder given, with no more environment than given."""
    end, out, _, err = ran(tmp_path, "cat; pwd; echo why >&2; exit 3", "a\nb")
    assert (end["status"], end["signal"], end["over"], end["failed"]) == (3, None, None, None)
    assert (out, err) == (f"a\nb{tmp_path}\n", "why\n")


def test_input_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    """More than a pipe takes, and a program that does not look at it."""
    assert ran(tmp_path, "exit 0", "x", times=1_000_000)[0]["status"] == 0


@pytest.mark.parametrize(
    ("program", "bounds", "told"),
    [
        ("kill -SEGV $$", {}, {"signal": 11}),
        ("kill -KILL $$", {}, {"signal": 9}),
        ("while :; do :; done", {"cpu_s": 0.3}, {"over": "cpu"}),
        ("(while :; do :; done) & (while :; do :; done) & wait", {"cpu_s": 0.4}, {"over": "cpu"}),
        ("exit 0", {"cpu_s": 0.0}, {"over": "cpu"}),
        (f"exec {sys.executable} -c '{UNWAITED}'", {"cpu_s": 0.6}, {"over": "cpu"}),
        ("for n in $(seq 80); do sleep 3 & done; wait", {}, {"over": "processes"}),
        ("for n in $(seq 50); do sleep 0.1 & done; wait", {}, {"status": 0}),
        ("sleep 5", {"blocked_s": 0.3}, {"over": "blocked"}),
        ("sleep 5 & sleep 5 & wait", {"blocked_s": 0.3}, {"over": "blocked"}),
        ("n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done", {"blocked_s": 0.05}, {"status": 0}),
        ("kill -KILL $PPID; kill -STOP $PPID; exit 3", {}, {"status": 3}),
        ("yes", {}, {"over": "output"}),
        ("yes >&2", {}, {"over": "output"}),
        (
            f"exec {sys.executable} -c 'x = bytearray(300 << 20); import time; time.sleep(5)'",
            {},
            {"over": "memory"},
        ),
    ],
)
def test_how_a_program_can_end(tmp_path: Path, program: str, bounds: dict[str, Any], told: dict[str, Any]) -> None:
    """Signals of its own, and each bound: of the processor over all its processes, of memory, of either output."""
    end, _, size, _ = ran(tmp_path, program, **bounds)
    assert {key: end[key] for key in ("status", "signal", "over")} == {
        "status": None,
        "signal": None,
        "over": None,
        **told,
    }
    assert size <= 1 << 16


def test_what_a_program_leaves_alive_is_ended(tmp_path: Path) -> None:
    """In the background, in a session of its own, orphaned twice: none lives on, and none holds the call up."""
    marker = f"{10**6 + time.time_ns() % 10**6}"
    left = f"sleep {marker} & setsid sleep {marker} & (setsid sh -c 'sleep {marker} & exec sleep {marker}' &); echo up"
    started = time.monotonic()
    end, out, _, _ = ran(tmp_path, left)
    assert (end["status"], out) == (0, "up\n")
    assert time.monotonic() - started < 10
    assert subprocess.run(["pgrep", "-f", f"^sleep {marker}"], capture_output=True, check=False).stdout == b""


def test_a_program_that_is_none(tmp_path: Path) -> None:
    """It is told, and is no crash of the server."""
    (tmp_path / "it").write_text("\x00\x01")
    (tmp_path / "it").chmod(0o755)
    assert ran(tmp_path, "exec ./it")[0]["status"] in {126, 127}


def test_the_wire() -> None:
    """What is packed is unpacked; anything else is refused."""
    body = packed({"a": 1}, b"one", b"")
    assert unpacked(body, 2) == ({"a": 1}, [b"one", b""])
    for wrong in (
        b"",
        body[:-1],
        body + b"x",
        body[8:],
        b"\xff" * 40,
        packed({}, b""),
        (3).to_bytes(8, "big") + b"[1]",
    ):
        with pytest.raises(WireError):
            unpacked(wrong, 2)


@pytest.mark.parametrize(("looking_s", "counted"), [(0.2, True), (0.0, False)])
def test_what_is_hard_to_look_at_is_not_waited_for_any_longer(
    monkeypatch: pytest.MonkeyPatch, looking_s: float, counted: bool
) -> None:
    """A gap between two looks is the machine's delay, and hardly counted; what the look itself took is the program's."""

    def below() -> list[Any]:
        until = time.process_time() + looking_s
        while time.process_time() < until:
            pass
        return []

    monkeypatch.setattr(command_program, "_below", below)
    pipe = subprocess.PIPE
    bounds = command_program.Bounds(output_bytes=9, cpu_s=9.0, blocked_s=9.0)
    with subprocess.Popen(["sleep", "9"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        run = command_program._Run(process, b"", bounds, lambda: None)
        run._watch()
        before = run.blocked_s
        time.sleep(0.2 - looking_s)
        run._watch()
        process.kill()
        run.pipes.close()
    assert (run.blocked_s - before > 0.19) == counted
