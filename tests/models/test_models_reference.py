"""The reference page of the models: every option and every catalogue entry is on it, and what it shows works."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import anyio
import pytest

from harness.messages import ModelSpec
from harness.models.catalogue import catalogue
from harness.models.local import LocalOptions
from harness.models.ollama import OllamaOptions
from harness.models.openai import OpenAIOptions
from harness.models.options import Options, read_options
from harness.models.script import ScriptedOptions
from harness.models.scripted import ScriptedProvider

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "models.md").read_text(encoding="utf-8")
KINDS: dict[str, type[Options]] = {
    "local": LocalOptions,
    "ollama": OllamaOptions,
    "openai": OpenAIOptions,
    "scripted": ScriptedOptions,
}


@pytest.mark.parametrize("provider", KINDS)
def test_every_option_is_documented(provider: str) -> None:
    """An option without a line in its provider's table can't be found by who needs it."""
    part = PAGE.partition(f"## `{provider}`")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| ([^|]*)\|", part, re.MULTILINE))))
    assert set(KINDS[provider].model_fields) - {"timeout_s"} <= documented
    assert "timeout_s" in PAGE


def test_every_embedded_model_is_documented() -> None:
    """Name, size, licence and window of each entry stand in the table."""
    for each in catalogue().values():
        assert f"| `{each.name}` | {each.bytes / 1e6:.0f} MB | {each.licence} | {each.context_length} |" in PAGE


def test_the_examples_work() -> None:
    """Each table of a model on the page is one that its provider takes."""
    shown = [tomllib.loads(block)["models"][0] for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
    assert [each["provider"] for each in shown] == ["ollama", "scripted"]
    for each in shown:
        read_options(KINDS[each["provider"]], ModelSpec(**each))
    assert anyio.run(ScriptedProvider().identify, ModelSpec(**shown[1])).digest
