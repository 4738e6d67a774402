"""Driving a run from a terminal: signals, the live view, the log file."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio

from cells.logs import logging_to
from cells.run import Finished
from cells.run import run as run_folder
from cells.view import QuietWatcher, watching
from harness.registration import load_registration

__all__ = ["run_to_the_end"]


def run_to_the_end(folder: Path, *, quiet: bool) -> Finished:
    """Run what is left; Ctrl-C or SIGTERM ends the session cleanly, a second one at once."""

    async def drive() -> Finished:
        stop = anyio.Event()
        with logging_to(folder / "log.jsonl"), watching(load_registration(folder), quiet=quiet) as watcher:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_listen, stop, watcher)
                how = await run_folder(folder, watcher=watcher, stop=stop)
                tasks.cancel_scope.cancel()
        return how

    return anyio.run(drive)


async def _listen(stop: anyio.Event, watcher: QuietWatcher) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _number in signals:
            if stop.is_set():
                raise KeyboardInterrupt
            watcher.note("stopping: running cells are ended and recorded as interrupted; once more to leave at once")
            stop.set()
