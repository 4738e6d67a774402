"""The pages on the referees of proofs say what the code has; the example cards are as their pages say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.errors import TaskError
from harness.tasks.folder import load_folder, load_folders
from referees.proof import ProofReferee, rocq
from referees.proof_card import ProofCard, ProofOptions

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "examples" / "proofs"


def test_every_option_and_class_is_on_the_reference_page() -> None:
    """An option or class that is added, renamed or given another standing shows on the page."""
    page = (ROOT / "docs" / "reference" / "referees.md").read_text()
    section = page[page.index("## `rocq` and `lean`") :]
    for name in ProofOptions.model_fields:
        assert f"| `{name}` |" in section, name
    for reading, standing in ProofReferee.classes.items():
        assert f"| `{reading}` | {standing} |" in section, reading


def test_every_module_is_in_the_table_of_the_room() -> None:
    """The room's README names each module of the referees, and none that is not there."""
    table = (ROOT / "referees" / "README.md").read_text()
    there = {path.name for path in (ROOT / "referees").glob("proof*.py")}
    assert there == {
        line.split("`")[1] for line in table.splitlines() if line.startswith("| `proof") and ".py`" in line
    }


def test_every_key_of_a_card_is_on_its_page() -> None:
    """Those of the referee's own, in the example."""
    page = (ROOT / "docs" / "referees" / "proofs.md").read_text()
    own = set(ProofCard.model_fields) - {"image", "forbidden", "leaks", "limits"}
    assert not {name for name in own if f"\n{name} = " not in page}


def test_the_example_cards_forbid_what_the_page_recommends() -> None:
    """Word for word, in the task and (which the loader holds) in its instruction; each is pinned by its suite."""
    page = (ROOT / "docs" / "referees" / "proofs.md").read_text()
    words = page[page.index("For Rocq: `Admitted`") : page.index("For Lean: `sorry`")].split("`")[1::2]
    tasks = load_folders(PROOFS)
    assert len(tasks) == 3
    for task in tasks:
        assert task.sealed.card["forbidden"] == words, task.key
        assert task.open.environment["Statement.v"] == task.sealed.tests["Statement.v"]
        assert rocq().suite(task.sealed)["digest"]


def test_a_statement_is_shown_only_where_the_card_says_so(tmp_path: Path) -> None:
    """A sealed file in the environment is refused unless the task names it as shared."""
    folder = tmp_path / "drinker"
    shutil.copytree(PROOFS / "drinker", folder)
    card = folder / "task.toml"
    card.write_text(card.read_text().replace('shared = ["tests/Statement.v"]', "shared = []"))
    with pytest.raises(TaskError, match=r"environment/Statement\.v is the sealed file tests/Statement\.v"):
        load_folder(folder)
