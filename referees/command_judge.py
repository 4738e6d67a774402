"""
The judge's side of the `command` referee: starts the runner in a room that holds the withheld suite and no file of the
exhibit. The suite reaches the program under test by the command `subject` alone, whose calls this program passes on to
the harness. What it reports leaves by a channel that only it and the harness hold. It runs inside workspaces, so it
uses the standard library and the wire only.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from referees.command_wire import REQUEST, lay, packed
from referees.command_witness import go_on_below
from referees.pytest_wire import LOAD, frame, raw_frame, read_frame, take_channel, write_all

__all__ = ["Room", "Switchboard", "main"]

_WIDTH = 8
_SAID = 2000


def _exactly(source: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = source.recv(min(count, 1 << 20))
        if not part:
            raise EOFError("the caller is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class Switchboard:
    """Takes the calls of `subject` one at a time, and answers each with what the harness sends back."""

    def __init__(self, reader: int, writer: int, address: Path) -> None:
        self.reader = reader
        self.writer = writer
        self.turn = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(address))
        self.listener.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            caller, _ = self.listener.accept()
            with caller:
                try:
                    caller.settimeout(60)
                    length = int.from_bytes(_exactly(caller, _WIDTH), "big")
                    if length > REQUEST:
                        self._fail(f"the suite hands `subject` {length} bytes: expected at most {REQUEST}")
                    answer = self._ask(_exactly(caller, length))
                    caller.sendall(len(answer).to_bytes(_WIDTH, "big") + answer)
                except (OSError, EOFError):
                    continue  # a test may end what it started, halfway through

    def _ask(self, request: bytes) -> bytes:
        with self.turn:
            write_all(self.writer, raw_frame(b"C", request))
            return read_frame(self.reader, LOAD)[1]

    def _fail(self, why: str) -> None:
        with self.turn:
            write_all(self.writer, frame(b"B", why))
        raise EOFError(why)


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _SAID))
        return file.read().decode("utf-8", "replace")


def main(folder: str) -> None:
    """Judge; where that itself fails, say how, so that nobody has to guess."""
    reader, writer = take_channel()
    go_on_below(writer)
    try:
        Room(Path(folder), reader, writer).judge()
    except BaseException:  # noqa: BLE001 - whatever it is, the harness is told
        write_all(writer, frame(b"B", traceback.format_exc()[-_SAID:]))


class Room:
    """The suite's room: `suite` the suite, `bin` the stub, `out` what the runner says, `run` the socket."""

    def __init__(self, folder: Path, reader: int, writer: int) -> None:
        self.folder = folder
        self.reader = reader
        self.writer = writer
        self.report = folder / "out" / "report"
        self.stdout, self.stderr = folder / "out" / "stdout", folder / "out" / "stderr"

    def judge(self) -> None:
        """Take the orders, prepare the suite, run the runner, and send its report."""
        write_all(self.writer, frame(b"L", {"version": list(sys.version_info[:3])}))
        order = json.loads(read_frame(self.reader, LOAD)[1])
        archive = read_frame(self.reader, LOAD)[1]
        for name in ("suite", "bin", "out", "run", "home"):
            (self.folder / name).mkdir()
        lay(archive, self.folder / "suite")
        for argv in order["prepare"]:
            status = self._run(argv, order, self.folder / "out" / "prepare", self.folder / "out" / "prepare")
            if status != 0:
                said = _tail(self.folder / "out" / "prepare")
                write_all(self.writer, frame(b"B", f"{' '.join(argv)} ended with {status}:\n{said}"))
                return
        self.stdout.touch()
        self._lay_stub(order)
        board = Switchboard(self.reader, self.writer, self.folder / "run" / "subject")
        status = self._run(order["command"], order, self.stdout, self.stderr)
        with board.turn:
            write_all(self.writer, raw_frame(b"F", self._finished(status, order)))

    def _lay_stub(self, order: dict[str, Any]) -> None:
        found = self.stdout.stat()
        report = [found.st_dev, found.st_ino] if order["report"] == "stdout" else []
        call = f"main({str(self.folder / 'run' / 'subject')!r}, {order['crossing']!r}, {report!r})\n"
        stub = self.folder / "bin" / "subject"
        stub.write_text(f"#!{sys.executable} -IS\n{order['stub']}\n\n{call}", encoding="utf-8")
        stub.chmod(0o755)

    def _run(self, argv: list[str], order: dict[str, Any], out: Path, err: Path) -> int:
        """The exit status of one command in the suite's folder; what it says goes into files."""
        env = {
            "PATH": f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "LC_ALL": "C.UTF-8",
            **order["environment"],
            "PROCTOR_SUBJECT": str(self.folder / "bin" / "subject"),
            "PROCTOR_REPORT": str(self.report),
        }
        words = [word.replace("{report}", str(self.report)) for word in argv]
        with out.open("ab") as stdout, err.open("ab") as stderr:
            try:
                return subprocess.call(
                    words, cwd=self.folder / "suite", env=env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
                )
            except OSError as error:
                stderr.write(f"{words[0]}: {os.strerror(error.errno or 0)}\n".encode())
                return 127

    def _finished(self, status: int, order: dict[str, Any]) -> bytes:
        path = self.report if order["report"] == "file" else self.stdout
        most = order["report_bytes"]
        missing = not path.is_file()
        data = b""
        if not missing:
            with path.open("rb") as file:
                data = file.read(most + 1)
        head = {
            "nonce": order["nonce"],
            "status": status,
            "missing": missing,
            "cut": len(data) > most,
            "said": _tail(self.stderr),
        }
        return packed(head, data[:most])
