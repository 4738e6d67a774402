"""
Verdicts by what they depend on: the suite, the image and the candidate's source. Pools of samples repeat themselves.

A kept verdict says who made it: its evidence is that of the execution. Nothing that re-scores may use this.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness import environment
from harness.canonical import digest_bytes, digest_json
from harness.clock import fresh_token
from harness.values import Verdict

__all__ = ["VerdictCache"]


@cache
def _verdicts() -> TypeAdapter[Verdict]:
    """Reads and writes verdicts. It takes a while to make, and most lines keep none."""
    return TypeAdapter(Verdict)


class VerdictCache:
    """
    A folder with a file a verdict, by default `verdicts` below the state folder. It holds no UNSCORABLE: what could not
    be decided is tried again. A file that is damaged, or that is not about what was asked for, is no answer.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = environment.state_home() / "verdicts" if folder is None else folder

    def get(self, *, suite: str, image: str, source: str) -> Verdict | None:
        """The verdict that was kept for these three digests, or None."""
        try:
            digest, _, data = self._path(suite, image, source).read_bytes().partition(b"\n")
            if digest_bytes(data).encode() != digest:
                return None
            verdict = _verdicts().validate_json(data)
        except (OSError, ValidationError):
            return None
        return verdict if (verdict.evidence.suite, verdict.evidence.code) == (suite, source) else None

    def put(self, verdict: Verdict, *, image: str) -> None:
        """Keep `verdict` for its suite, `image` and its code. A folder that can't be written costs time later."""
        if verdict.standing == "unscorable":
            return
        path = self._path(verdict.evidence.suite, image, verdict.evidence.code)
        data = _verdicts().dump_json(verdict)
        draft = path.with_name(f"{path.name}.{fresh_token(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(digest_bytes(data).encode() + b"\n" + data)
            os.replace(draft, path)  # noqa: PTH105 - Path.replace hides which of the two names comes first
        except OSError:
            with suppress(OSError):
                draft.unlink()

    def _path(self, suite: str, image: str, source: str) -> Path:
        name = digest_json({"suite": suite, "image": image, "source": source})
        return self.folder / name[:2] / name
