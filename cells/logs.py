"""The log of a run: one JSON object a line in the run folder, beside the record and no part of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

__all__ = ["logging_to"]


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Send structlog's events to `path` for as long as the context lasts; then its configuration is as it was."""
    before = structlog.get_config()
    with path.open("a", encoding="utf-8") as file:
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
            logger_factory=structlog.WriteLoggerFactory(file=file),
            cache_logger_on_first_use=False,
        )
        try:
            yield
        finally:
            structlog.configure(**before)
