"""The docs name every probe, fact, ability and file of the room, and what they show is what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from fences.policy import MUST_WORK, FencePolicy
from fences.receipt import registered_probes
from fences.rows import ABILITY
from fences.running import compare_running
from harness.views import Finding
from harness.walls import Walls

ROOT = Path(__file__).parents[2]
PROBES = (ROOT / "docs/reference/probes.md").read_text("utf-8")
FENCES = (ROOT / "docs/explanation/fences.md").read_text("utf-8")


def test_every_probe_stands_in_the_reference_as_it_is():
    """Each registered probe has its row with language, threat and the findings that hold; there is no other row."""
    rows = set(re.findall(r"^\| `([a-z0-9-]+)` \| (\S+) \| (.+) \| ([A-Z or]+) \| .+ \|$", PROBES, re.MULTILINE))
    expected = {
        (probe.name, probe.language, probe.threat, " or ".join(sorted(probe.holds))) for probe in registered_probes()
    }
    assert expected == rows


def test_every_probe_has_its_line_on_a_page_of_its_family():
    """Threat, attempt, evidence, weakening and what is left open are told of each, on one of the families' pages."""
    pages = {path.name: path.read_text("utf-8") for path in (ROOT / "docs/fences").glob("*.md")}
    families = {name: text for name, text in pages.items() if name != "README.md"}
    told = "".join(families.values())
    assert [probe.name for probe in registered_probes() if f"`{probe.name}`" not in told] == []
    for name, text in families.items():
        assert f"({name})" in pages["README.md"], name
        for head in ("Threat", "Attempt", "Evidence", "Weakening", "Left open"):
            assert f"**{head}.**" in text, (name, head)


def test_findings_facts_and_abilities_are_in_the_reference():
    """Every finding, every compared fact and every ability is named."""
    for finding in Finding:
        assert f"`{finding}`" in PROBES
    for fact in compare_running(Walls(image="i"), {}):
        assert f"`{fact.name.replace('_', '-')}`" in PROBES
    for name in MUST_WORK:
        assert f"`{ABILITY}{name}`" in PROBES


def test_the_policy_in_the_docs_is_one():
    """The example policy is accepted as it stands."""
    block = re.search(r"```toml\n(.*?)```", FENCES, re.DOTALL)
    tables = tomllib.loads(block.group(1))
    policy = FencePolicy.from_mapping(tables["fence"], tables["workspace"]["limits"])
    assert policy.denied == FencePolicy().denied
    assert set(tables["fence"]) == {item for item in FencePolicy.__dataclass_fields__ if item != "limits"}


def test_the_probe_in_the_docs_is_one():
    """The example probe is made, and its control takes something down."""
    block = re.search(r"```python\n(.*?)```", PROBES, re.DOTALL)
    made = {}
    exec(compile(block.group(1), "probes.md", "exec"), made)  # noqa: S102 - our own page
    probe = made["BluetoothProbe"]()
    assert probe.holds == {Finding.DENIED, Finding.ABSENT}
    assert set(probe.down) <= set(Walls.__dataclass_fields__)


def test_every_file_of_the_room_is_at_its_door():
    """The room's README names each of its modules, and none that is not there."""
    readme = (ROOT / "fences/README.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z_]+\.py)`", readme))
    assert named == {path.name for path in (ROOT / "fences").glob("*.py")} - {"__init__.py"}
