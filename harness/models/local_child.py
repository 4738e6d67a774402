"""
The embedded engine's own process: `python -m harness.models.local_child`, JSON lines in, JSON lines out.

The first line names the model file and the window; each line after it is one request, answered by one line with
`reply` (as the chat-completions wire has it) or `error`; one with `count` alone is a request whose prompt is to be
counted, answered with `tokens`. The engine writes what it likes to the standard streams, so
the answers leave by a descriptor that it does not know. When the input ends, the parent is gone: so does the process,
even in the middle of an answer.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import shutil
import socket
import sys
import tempfile
import threading
from typing import IO, Any

__all__ = ["main"]

WARNINGS = 2
COUNT_PATH = "/v1/chat/completions/input_tokens"


def _read_lines(source: IO[bytes], lines: queue.Queue[bytes]) -> None:
    """Runs beside the engine, which lets other threads work while it generates."""
    for line in source:
        lines.put(line)
    os._exit(0)


class _Door:
    """
    The engine's own socket, of which no name is left: only who holds this handle can reach it, which is this process.
    It is the one way to the engine's tokeniser.
    """

    def __init__(self, path: str) -> None:
        # An engine that does not listen, or a system without such handles, has nobody to count.
        self._handle = os.open(path, os.O_PATH) if hasattr(os, "O_PATH") and os.path.exists(path) else None  # noqa: PTH110 # the engine's path is text

    def count(self, body: dict[str, Any]) -> dict[str, Any]:
        """The answer of the engine: the prompt's tokens, or its error."""
        if self._handle is None:
            return {"error": {"message": "the engine's tokeniser can't be reached on this system"}}
        wire = http.client.HTTPConnection("engine")
        wire.sock = socket.socket(socket.AF_UNIX)
        try:
            wire.sock.connect(f"/proc/self/fd/{self._handle}")
            wire.request("POST", COUNT_PATH, json.dumps(body), {"Content-Type": "application/json"})
            said = json.loads(wire.getresponse().read())
        finally:
            wire.close()
        return {"error": said["error"]} if "error" in said else {"tokens": said["input_tokens"]}


def _engine(settings: dict[str, Any]) -> tuple[Any, _Door]:
    """One slot and no prompt cache: the same seed then gives the same text, whatever was asked before."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = settings["num_ctx"]
    params.n_parallel = 1
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.ctx_shift = False
    params.use_jinja = True
    params.warmup = False
    params.verbosity = WARNINGS
    params.n_gpu_layers = settings["gpu_layers"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    # The engine insists on listening; nobody shall be able to reach it but through this process.
    folder = tempfile.mkdtemp(prefix="proctor-model-")
    path = os.path.join(folder, "engine.sock")  # noqa: PTH118 # the engine takes text
    params.hostnames = [path]
    params.ui = False
    params.endpoint_slots = False
    params.endpoint_props = False
    try:
        return xllamacpp.Server(params), _Door(path)
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Serves until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read_lines, args=(sys.stdin.buffer, lines), daemon=True).start()

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value).encode() + b"\n")

    try:
        engine, door = _engine(json.loads(lines.get()))
    except Exception as error:  # noqa: BLE001 # whatever the engine raises, the parent is to know it
        answer({"error": {"message": f"the engine can't load the model: {type(error).__name__}: {error}"}})
        return
    answer({"ready": True})
    while True:
        try:
            asked = json.loads(lines.get())
            if "count" in asked:
                answer(door.count(asked["count"]))
                continue
            reply = engine.handle_chat_completions(asked)
        except Exception as error:  # noqa: BLE001 # as above
            answer({"error": {"message": f"{type(error).__name__}: {error}"}})
            continue
        answer({"error": reply["error"]} if "error" in reply else {"reply": reply})


if __name__ == "__main__":
    main()
