"""
Verdicts by what they depend on: the suite, the image and the candidate's source. Pools of samples repeat themselves.

A kept verdict says who made it: its evidence is that of the execution. Nothing that re-scores may use this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness import environment
from harness.canonical import digest_json
from harness.kept_file import read_kept, write_kept
from harness.values import Verdict

__all__ = ["VerdictCache"]


@cache
def _verdicts() -> TypeAdapter[Verdict]:
    """Reads and writes verdicts. It takes a while to make, and most lines keep none."""
    return TypeAdapter(Verdict)


class VerdictCache:
    """
    A folder with a file a verdict, by default `verdicts` below the state folder. It holds no UNSCORABLE: what could not
    be decided is tried again. A file that is damaged, or that is not about what was asked for, is no answer: `damaged`
    is given its path, and the next verdict takes its place. `found` counts the answers.
    """

    def __init__(self, folder: Path | None = None, *, damaged: Callable[[Path], None] = lambda _path: None) -> None:
        self.folder = environment.state_home() / "verdicts" if folder is None else folder
        self.found = 0
        self._damaged = damaged

    def get(self, *, suite: str, image: str, source: str) -> Verdict | None:
        """The verdict that was kept for these three digests, or None."""
        path = self._path(suite, image, source)
        data = read_kept(path)
        if data is None and not path.exists():
            return None
        try:
            verdict = _verdicts().validate_json(data or b"")
        except ValidationError:
            verdict = None
        if verdict is None or (verdict.evidence.suite, verdict.evidence.code) != (suite, source):
            self._damaged(path)
            return None
        self.found += 1
        return verdict

    def put(self, verdict: Verdict, *, image: str) -> None:
        """Keep `verdict` for its suite, `image` and its code. A folder that can't be written costs time later."""
        if verdict.standing == "unscorable":
            return
        write_kept(self._path(verdict.evidence.suite, image, verdict.evidence.code), _verdicts().dump_json(verdict))

    def _path(self, suite: str, image: str, source: str) -> Path:
        name = digest_json({"suite": suite, "image": image, "source": source})
        return self.folder / name[:2] / name
