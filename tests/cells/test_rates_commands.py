"""The commands on rate cards, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cells.cli import app
from harness.errors import RateCardError
from tests.harness.test_rate_cards import CARD


def test_a_good_card_is_shown(tmp_path: Path) -> None:
    """With its date, its digest and every rate; the JSON has the very figures."""
    path = tmp_path / "rates.toml"
    path.write_text(CARD, "utf-8")
    shown = CliRunner().invoke(app, ["rates", "check", str(path)], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "rate card of 2026-09-15" in shown.stdout
    assert "big-1, prompts above 200,000 tokens: input 3, cache_write_5m 3.75" in shown.stdout
    told = json.loads(CliRunner().invoke(app, ["rates", "check", str(path), "--json"], catch_exceptions=False).stdout)
    assert told["sha256"] in shown.stdout
    assert [(row["model"], row["above"], row["rates"]["cache_read"]) for row in told["rows"]] == [
        ("big-1", None, "0.3"),
        ("big-1", 200_000, "0.3"),
    ]


def test_a_bad_card_is_refused(tmp_path: Path) -> None:
    """A usage error, as for any bad file: exit code 2 at the door."""
    path = tmp_path / "rates.toml"
    path.write_text(CARD.replace("output = 15", "output = -1", 1), "utf-8")
    with pytest.raises(RateCardError, match="a rate of -1"):
        CliRunner().invoke(app, ["rates", "check", str(path)], catch_exceptions=False)
