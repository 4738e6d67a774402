"""What a person sees while samples are judged, on standard error: one line that is redrawn, or a line now and then."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from cells.figures import duration, printable
from cells.judging_results import Result
from harness.clock import Clock

__all__ = ["JudgingView"]

_REDRAWN_S = 0.1
_SAID_S = 10.0
_EACH_S = 0.02
"""What a sample costs beside its task's own calls, in seconds: its process and the judge's part."""


class JudgingView:
    """
    Counts what is judged. On a terminal one line is redrawn ten times a second at most; elsewhere a line is written
    every ten seconds. `quiet` shows notes alone.
    """

    def __init__(self, stream: TextIO, clock: Clock, *, quiet: bool = False) -> None:
        self._stream, self._clock, self._quiet = stream, clock, quiet
        self._live = stream.isatty()
        self._classes: Counter[str] = Counter()
        self._total = self._done = 0
        self._weights: Mapping[str, float] = {}
        self._spent_s = self._left_s = 0.0
        self._began = self._shown = clock.monotonic()
        self._drawn = False

    def begin(self, *, total: int, done: Sequence[Result], left: Iterable[str], weights: Mapping[str, float]) -> None:
        """
        So many samples, of which some have results of an earlier judge. `left` has the task of each of the others, and
        `weights` by task the seconds that its reference took: samples of the longest tasks come first, and the time
        that is left is reckoned by what each costs.
        """
        self._total, self._done = total, len(done)
        self._weights, self._left_s = weights, sum(_EACH_S + weights.get(task, 0.0) for task in left)
        self._classes.update(item.reading for item in done)
        self._began = self._shown = self._clock.monotonic()
        if done:
            self.note(f"{len(done)} of {total} samples are judged already: their results are used")

    def judged(self, results: Sequence[Result]) -> None:
        """These have their results now."""
        self._done += len(results)
        cost_s = sum(_EACH_S + self._weights.get(item.task_id, 0.0) for item in results)
        self._spent_s, self._left_s = self._spent_s + cost_s, max(0.0, self._left_s - cost_s)
        self._classes.update(item.reading for item in results)
        now = self._clock.monotonic()
        if not self._quiet and now - self._shown >= (_REDRAWN_S if self._live else _SAID_S):
            self._shown = now
            self._show(self._line(now))

    def note(self, text: str) -> None:
        """Something worth a line of its own."""
        self._erase()
        self._stream.write(f"{printable(text)}\n")
        self._stream.flush()

    def end(self) -> None:
        """Nothing more is shown."""
        self._erase()

    def _line(self, now: float) -> str:
        classes = ", ".join(f"{name} {count}" for name, count in sorted(self._classes.items()))
        left = (now - self._began) * self._left_s / self._spent_s
        return f"[{self._done}/{self._total}] {classes}; left: {duration(left)}"

    def _show(self, text: str) -> None:
        if not self._live:
            self._stream.write(f"{text}\n")
        else:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{text[:width]}")
            self._drawn = True
        self._stream.flush()

    def _erase(self) -> None:
        """Take the redrawn line away, so that what follows stands on a line of its own."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
