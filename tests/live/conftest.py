"""
The live tests' own options and fixtures.

`pytest tests/live --live --ollama http://127.0.0.1:11434` adds a real Ollama server to the contract tests of the model
providers. They put a model of half a megabyte, `proctor-contract`, into it, and take it out again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.real_ollama import MODEL, ServerUnderTest, real_server
from tests.models.standin_ollama import StandIn
from tests.models.tiny_gguf import TOOLS_TEMPLATE, write_tiny

# Before any test imports it: what it asserts is to explain itself wherever it is used.
pytest.register_assert_rewrite("tests.live.rooms")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each contract test runs on the stand-in, and on a real server when one is given."""
    if "model_server" in metafunc.fixturenames:
        url = metafunc.config.getoption("--ollama", default=None)
        metafunc.parametrize("model_server", ["stand-in", *([url] if url else [])], indirect=True, scope="session")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model's file."""
    return write_tiny(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny_with_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a place for tools in its chat template."""
    return write_tiny(tmp_path_factory.mktemp("tiny") / "tools.gguf", template=TOOLS_TEMPLATE)


@pytest.fixture(scope="session")
def model_server(request: pytest.FixtureRequest, tiny: Path) -> Iterator[ServerUnderTest]:
    """A server of the Ollama wire that has the tiny model."""
    if request.param == "stand-in":
        with StandIn(tiny, MODEL).running() as server:
            yield ServerUnderTest(address=server.address, is_real=False)
    else:
        with real_server(request.param, tiny) as found:
            yield found
