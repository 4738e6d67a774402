"""What the command's options make of the referee."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cells import cli
from cells.cli import judging


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], {"hidden_cap": 300, "public_tier": "full", "prelude": True}),
        (["--stop-early"], {"hidden_cap": 300, "public_tier": "to-first-violation", "prelude": True}),
        (
            ["--hidden-cap", "all", "--no-prelude", "--min-time-s", "2"],
            {"hidden_cap": "all", "public_tier": "full", "prelude": False, "min_time_s": 2.0},
        ),
    ],
)
def test_options_reach_the_referee(
    given: list[str], expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were not given are its own."""
    asked: list[Any] = []

    def judged(ask: Any, *, quiet: bool) -> Any:
        asked.append(ask)
        raise SystemExit(0)

    monkeypatch.setattr(judging, "_judged", judged)
    (tmp_path / "samples.jsonl").write_text("")
    command = ["proctor", "judge", str(tmp_path / "samples.jsonl"), "--benchmark", "humaneval", *given]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        cli.main()
    assert asked[0].options == expected
