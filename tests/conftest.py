"""Options and fixtures that every test shares."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer.main
import typer.testing


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--live` adds the tests that need an engine, a sandbox or a model; the default run needs none of them."""
    parser.addoption(
        "--live", action="store_true", help="run the live tests too (they fail, not skip, without an engine)"
    )
    parser.addoption("--ollama", metavar="URL", help="also test against the real Ollama server at this address")
    parser.addoption("--live-only", action="store_true", help="run the live tests alone")
    parser.addoption(
        "--with",
        action="append",
        default=[],
        metavar="NAME",
        help="run the tests too that need NAME (marker only_with)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the live tests out (deselected, never skipped) unless they were asked for; likewise what needs more yet."""
    with_what = set(config.getoption("--with"))
    short = [item for item in items if any(mark.args[0] not in with_what for mark in item.iter_markers("only_with"))]
    config.hook.pytest_deselected(items=short)
    items[:] = [item for item in items if item not in short]
    live = [item for item in items if item.get_closest_marker("live") is not None]
    if config.getoption("--live-only"):
        fast = [item for item in items if item not in live]
        config.hook.pytest_deselected(items=fast)
        items[:] = live
    elif not config.getoption("--live"):
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Each async test runs on asyncio and on trio."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def _the_tree_of_commands_is_built_once() -> Iterator[None]:
    """
    Typer builds every command's options anew each time that an application is called, which takes longer than most
    commands do. A process calls it once; the tests call it a thousand times, and nothing in it changes in between.
    """
    built = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", built)
        patch.setattr(typer.testing, "_get_command", built)
        yield


@pytest.fixture(autouse=True)
def _a_socket_that_is_ready_as_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Anyio waits for a Unix socket by `loop.add_reader(socket, future.set_result, None)`. Where the socket becomes ready
    in the very turn of the loop in which the wait is cancelled, the loop is told of an `InvalidStateError` that nobody
    is harmed by. That report alone, told by its callback, fails no test.
    """
    from anyio._backends._asyncio import TestRunner

    real = TestRunner._exception_handler

    def handler(runner: TestRunner, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        late = isinstance(context.get("exception"), asyncio.InvalidStateError)
        if not (late and "Future.set_result" in str(context.get("message"))):
            real(runner, loop, context)

    monkeypatch.setattr(TestRunner, "_exception_handler", handler)
