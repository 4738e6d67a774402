"""
A server on loopback that answers as told, right or wrong. It is no Ollama and no language model.

Told nothing, it gives well-formed answers of both wires, so that each fault is one change to what works.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "tiny:latest"
DIGEST = "ab" * 32
SHOW = {
    "template": "{{ range .Messages }}{{ .Role }}: {{ .Content }}{{ end }}",
    "parameters": "",
    "details": {"format": "gguf", "family": "llama", "quantization_level": "F16"},
    "model_info": {"general.architecture": "llama", "llama.context_length": 8192},
    "capabilities": ["completion", "tools"],
}
CHAT = {
    "model": MODEL,
    "created_at": "2026-01-01T00:00:00Z",
    "message": {"role": "assistant", "content": "hello"},
    "done": True,
    "done_reason": "stop",
    "total_duration": 2_000_000,
    "load_duration": 1_000_000,
    "prompt_eval_count": 12,
    "eval_count": 3,
}
COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": MODEL,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
}
HEALTHY: dict[str, Any] = {
    "/api/version": {"version": "0.0.0 (a fault server, not Ollama)"},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL, "digest": DIGEST, "size": 1000}]},
    "/api/show": SHOW,
    "/api/chat": CHAT,
    "/v1/models": {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "x"}]},
    "/v1/chat/completions": COMPLETION,
}


@dataclass(frozen=True)
class Fault:
    """An answer: `body` as JSON unless it is bytes. `hang` never answers, `cut` breaks off inside the body."""

    body: Any = b""
    status: int = 200
    hang: bool = False
    cut: bool = False
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One request that came in."""

    path: str
    headers: dict[str, str]
    body: Any


Told = Fault | Callable[[Any], Fault]


class FaultServer:
    """Use with `running()`; `tell` sets what a path answers."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.hung = 0
        self._told: dict[str, Told] = {}
        self._ended = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def address(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def tell(self, path: str, told: Told) -> None:
        """From now on `path` answers so."""
        self._told[path] = told

    def last(self, path: str) -> Seen:
        """The latest request to `path`."""
        return [each for each in self.seen if each.path == path][-1]

    def answer(self, path: str, body: Any) -> Fault:
        """What `path` answers now."""
        told = self._told.get(path)
        if told is None:
            known = HEALTHY.get(path)
            return Fault(known) if known is not None else Fault({"error": "no such path"}, status=404)
        return told if isinstance(told, Fault) else told(body)

    @contextmanager
    def running(self) -> Iterator[FaultServer]:
        """Serves in a thread of its own until the end of the block."""
        thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._http.shutdown()
            thread.join(5)
            self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits for an acknowledgement

            def log_message(self, *_: Any) -> None:
                """Says nothing on the terminal."""

            def do_GET(self) -> None:
                """Answers a question."""
                self._answer(None)

            def do_POST(self) -> None:
                """Answers a request."""
                self._answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def _answer(self, body: Any) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.seen.append(Seen(path=self.path, headers=headers, body=body))
                fault = server.answer(self.path, body)
                if fault.hang:
                    server.hung += 1
                    server._ended.wait(30)
                    self.close_connection = True
                    return
                data = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
                self.send_response(fault.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data) + 10 * fault.cut))
                for name, value in fault.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = fault.cut

        return Handler
