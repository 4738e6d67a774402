"""
A stand-in, not Ollama: the part of its wire that the providers speak, honest counts included, over the embedded engine.

It differs from the real one in its prompt format, and where the real one cuts an over-long prompt without a word it
answers 400, as newer servers do when they are told not to cut.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from harness.models.gguf import file_digest, read_facts

VERSION = "0.0.0 (a stand-in, not Ollama)"
NUMBERS = {"num_ctx", "num_predict", "seed", "temperature", "top_p", "top_k", "min_p", "repeat_penalty", "num_thread"}


class _RefusedError(Exception):
    def __init__(self, status: int, words: Any) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class StandIn:
    """One model file served as `name`. Use with `running()`."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._facts = read_facts(path)
        self._engines: dict[int, Any] = {}
        self._turn = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True

    @property
    def address(self) -> str:
        """The server's address, without a path."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @contextmanager
    def running(self) -> Iterator[StandIn]:
        """Serves in threads until the end of the block."""
        thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join(5)
            self._http.server_close()

    def _engine(self, num_ctx: int) -> Any:
        import xllamacpp

        if num_ctx not in self._engines:
            params = xllamacpp.CommonParams()
            params.model.path = str(self._path)
            params.n_ctx, params.n_parallel, params.cpuparams.n_threads = num_ctx, 1, 1
            params.cache_prompt, params.use_jinja, params.warmup, params.verbosity = False, True, False, 1
            self._engines[num_ctx] = xllamacpp.Server(params)
        return self._engines[num_ctx]

    def answer(self, path: str, body: Any) -> Any:
        """What `path` answers, as JSON data."""
        if path == "/api/version":
            return {"version": VERSION}
        if path == "/api/tags":
            size = self._path.stat().st_size
            model = {"name": self._name, "model": self._name, "digest": file_digest(self._path), "size": size}
            return {"models": [model]}
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": self._name, "object": "model", "created": 1, "owned_by": "x"}]}
        if path not in {"/api/show", "/api/chat", "/v1/chat/completions"}:
            raise _RefusedError(404, "404 page not found")
        if body.get("model") != self._name:
            raise _RefusedError(404, f'model "{body.get("model")}" not found, try pulling it first')
        if path == "/api/show":
            return self._show()
        return self._chat(body) if path == "/api/chat" else self._complete(body, 2048)

    def _show(self) -> dict[str, Any]:
        facts = self._facts
        return {
            "template": facts.chat_template,
            "parameters": "",
            "details": {"format": "gguf", "family": facts.architecture},
            "model_info": {
                "general.architecture": facts.architecture,
                f"{facts.architecture}.context_length": facts.trained_ctx,
            },
            "capabilities": ["completion", *(["tools"] if facts.tools else [])],
        }

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        options = body.get("options") or {}
        for name in NUMBERS & options.keys():
            if not isinstance(options[name], int | float):
                raise _RefusedError(500, f'option "{name}" must be of type number')
        asked = {key: options[key] for key in ("seed", "temperature", "top_p", "top_k", "stop") if key in options}
        messages = [{"content": "", **message} for message in body["messages"]]
        started = time.monotonic_ns()
        reply = self._complete(
            {**asked, "messages": messages, "max_tokens": options.get("num_predict", -1)}, options.get("num_ctx", 2048)
        )
        choice = reply["choices"][0]
        return {
            "model": self._name,
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": choice["message"].get("content") or ""},
            "done": True,
            "done_reason": choice["finish_reason"],
            "total_duration": time.monotonic_ns() - started,
            "prompt_eval_count": reply["usage"]["prompt_tokens"],
            "eval_count": reply["usage"]["completion_tokens"],
        }

    def _complete(self, body: dict[str, Any], num_ctx: int) -> dict[str, Any]:
        with self._turn:
            reply = self._engine(num_ctx).handle_chat_completions({**body, "stream": False, "cache_prompt": False})
        if "error" in reply:
            raise _RefusedError(reply["error"]["code"], reply["error"])
        return {**reply, "model": self._name}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: Any) -> None:
                """Says nothing on the terminal."""

            def do_GET(self) -> None:
                """Answers a question."""
                self._answer(None)

            def do_POST(self) -> None:
                """Answers a request."""
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) == length:  # else whoever asked has gone
                    self._answer(json.loads(body))

            def _answer(self, body: Any) -> None:
                try:
                    status, value = 200, server.answer(self.path, body)
                except _RefusedError as refused:
                    status, value = refused.status, {"error": refused.words}
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler
