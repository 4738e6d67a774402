"""The pages on arms say what is there, and the code in them runs."""

import json
import re
import tomllib
from pathlib import Path

from arms.controllers.inversion import ASSUMPTIONS, corpus_of
from arms.controllers.kernel import CONSTRAINTS
from arms.controllers.linucb import ACTIONS
from arms.controllers.trace import WEIGHTS
from harness import plugins
from harness.arm_check import check_arm
from harness.arm_folder import ArmCard
from harness.placebo import Limits
from harness.views import Previous, PublicReading, RoundView
from tests.surface import section

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "reference/arms.md").read_text(encoding="utf-8")
HOW_TO = (DOCS / "how-to/register-an-arm.md").read_text(encoding="utf-8")


def test_every_registered_arm_of_ours_is_told():
    """A built-in arm that is not in the reference can't be chosen with open eyes."""
    ours = [name for name, info in plugins.table("arms").items() if info.target.startswith("arms.")]
    assert ours
    assert not [name for name in ours if f"| `{name}` |" not in REFERENCE]


def test_every_rule_of_the_check_is_told():
    """The table of rules is the code's own, levels included."""
    sources = ("harness/arm_check.py", "harness/arm_acceptance.py", "cells/arm_packets.py", "cells/arm_listing.py")
    source = "".join((DOCS.parent / path).read_text(encoding="utf-8") for path in sources)
    used = set(re.findall(r"(?:_error\(|rule=)\"([\w-]+)\"", source))
    told = set(re.findall(r"^\| `([\w-]+)` \| (?:error|warning|note) \|", REFERENCE, re.MULTILINE))
    assert used == told


def code(language):
    """The code blocks of the how-to, indentation taken off."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", HOW_TO, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def test_the_code_of_the_how_to_runs(tmp_path, monkeypatch):
    """The example packet is a good arm, and the page's own test passes on it."""
    (tmp_path / "my_arms").mkdir()
    (tmp_path / "my_arms/__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "my_arms/test-first.md").write_text("Write a test first.\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    names = {}
    for text in code("python"):
        exec(compile(text, "register-an-arm.md", "exec"), names)  # noqa: S102 - the page's code is what is under test
    names["test_no_error"]()
    assert names["test_first"]().render(RoundView(instruction="Add.")) == "Write a test first.\n\nAdd."
    packet = names["PacketCount"]()
    reading = PublicReading(reading="FAIL", accepted=False, passed=1, total=3)
    later = RoundView(instruction="Add.", round=2, rounds=2, previous=Previous(code="x", reading=reading))
    assert packet.render(later) == "Add.\n\nAn earlier try passed 1 of 3 public tests. Try again."
    assert [finding.level for finding in check_arm(packet)] == ["note"] * 5


def test_the_tables_of_the_how_to_are_toml():
    """Each TOML block parses, and registers in the right group."""
    first, second = (tomllib.loads(text) for text in code("toml"))
    assert first["arms"][1:] == [{"folder": "arms/test-first"}, {"folder": "arms/grey-wall"}]
    assert set(second["project"]["entry-points"]["proctor.arms"]) == {"test-first", "count"}


def test_the_corpus_of_the_reference_can_be_used():
    """The example of a corpus is one, and every assumption, constraint kind and sub-action is named on the page."""
    [example] = re.findall(r"```json\n(.*?)```", REFERENCE, re.DOTALL)
    assert list(corpus_of(example.encode())) == ["non-empty", "sorted", "unique"]
    told = section(REFERENCE, "Controllers")
    assert not [name for name in (*ASSUMPTIONS, *WEIGHTS, *ACTIONS) if f"`{name}`" not in told]
    assert f"{len(CONSTRAINTS)} constraints" in told


def test_every_key_of_a_card_is_told():
    """The tables of `arm.toml` and of a placebo's limits are the code's own, and the defaults are those that hold."""
    told = set(re.findall(r"^\| `\[?(\w+)\]?` \|", section(REFERENCE, "Arm folders"), re.MULTILINE))
    assert told == set(ArmCard.model_fields)
    limits = dict(re.findall(r"^\| `(\w+)` \| `([\w.]+)` \|", section(REFERENCE, "Placebos"), re.MULTILINE))
    assert limits == {name: json.dumps(value) for name, value in Limits().model_dump().items()}
