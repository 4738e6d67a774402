"""A card for any referee: common keys in `[proctor]`, its own in `[proctor.card]`, read by a model of the referee's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import TaskError
from harness.tasks.card import Card, read_card
from harness.tasks.folder import derive_statement, load_folder

HEAD = 'schema_version = "1.4"\n[task]\nname = "demo/add"\n[proctor]\nbenchmark = "demo"\nname = "add"\n'


class ProofCard(Card):
    """A card of a referee of one's own."""

    file: str
    """The file that is judged."""
    seconds: float = 1.0
    """How long it may take."""


def folder(path: Path, table: str, *, instruction: str = "Prove it without admit.\n") -> Path:
    """A task folder with the given lines after the head."""
    (path / "task.toml").write_text(HEAD + table, "utf-8")
    (path / "instruction.md").write_text(instruction, "utf-8")
    for name in ("tests", "solution"):
        (path / name).mkdir()
    (path / "tests" / "Statement.v").write_text("Definition statement := True.\n", "utf-8")
    (path / "solution" / "Solution.v").write_text("Theorem main : True. Proof. exact I. Qed.\n", "utf-8")
    return path


def test_a_card_of_another_referee_arrives_with_the_common_keys(tmp_path):
    """What is in `[proctor.card]`, and image, screen and leaks of `[proctor]` beside it."""
    task = load_folder(
        folder(tmp_path, 'image = "provers"\nforbidden = ["admit"]\n[proctor.card]\nfile = "Solution.v"\n')
    )
    card = read_card(ProofCard, task.sealed.card, "proof")
    assert (card.file, card.image, card.forbidden, card.leaks.shared) == ("Solution.v", "provers", ["admit"], [])
    assert task.sealed.image == "provers"


def test_without_an_image_the_experiments_is_meant(tmp_path):
    """The card's is empty."""
    assert load_folder(folder(tmp_path, '[proctor.card]\nfile = "a"\n')).sealed.image == ""


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({"file": "a", "secnods": 2.0}, r"card.secnods: unknown key. Did you mean 'seconds'\? Known: file"),
        ({}, "card.file: missing"),
        ({"file": "a", "seconds": float("nan")}, "card.seconds is 'nan'"),
        ({"file": "a", "leaks": {"shred": []}}, "card.leaks.shred: unknown key. Did you mean 'shared'"),
    ],
)
def test_a_card_that_is_not_one_is_refused_by_name(card, said):
    """The key, what was found, and the nearest that is known."""
    with pytest.raises(TaskError, match=f"not one for the proof referee:\n  {said}"):
        read_card(ProofCard, card, "proof")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('ids = ["a"]\n[proctor.card]\nfile = "a"\n', "proctor.ids: unknown key"),
        ('[proctor.card]\nimage = "a"\n', "card gives image: expected in .proctor. itself"),
        ('card = "a"\n', "proctor.card is 'a'"),
        ('forbidden = ["cheat"]\n[proctor.card]\nfile = "a"\n', "instruction.md does not name cheat"),
    ],
)
def test_a_folder_whose_table_is_wrong_is_refused(tmp_path, table, said):
    """Before anything is judged."""
    with pytest.raises(TaskError, match=said):
        load_folder(folder(tmp_path, table))


def test_a_statement_is_derived_for_python_modules_only(tmp_path):
    """Another referee's task writes its own."""
    with pytest.raises(TaskError, match="writes its own"):
        derive_statement(folder(tmp_path, '[proctor.card]\nfile = "a"\n'))
