"""A real Ollama server, found by its address, with the tiny model in it for as long as the tests last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import ollama

from harness.models.gguf import file_digest

MODEL = "proctor-contract:latest"
TEMPLATE = "{{ range .Messages }}<{{ .Role }}>{{ .Content }}\n{{ end }}<assistant>"


@dataclass(frozen=True, kw_only=True)
class ServerUnderTest:
    """A server that has `MODEL`; only a real one cuts prompts without a word."""

    address: str
    is_real: bool


@contextmanager
def real_server(url: str, tiny: Path) -> Iterator[ServerUnderTest]:
    """The server at `url` with the file `tiny` in it as `MODEL`."""
    with ollama.Client(host=url, trust_env=False, timeout=60) as client:
        client.create_blob(tiny)
        client.create(
            model=MODEL,
            files={"tiny.gguf": f"sha256:{file_digest(tiny)}"},
            template=TEMPLATE,
            parameters={"num_thread": 1},
        )
        try:
            yield ServerUnderTest(address=url, is_real=True)
        finally:
            client.delete(MODEL)
