"""What a registration tells of the git repository that its experiment file stands in."""

from __future__ import annotations

from pathlib import Path

import pytest
from dulwich import porcelain

from harness.repository import dirt_text, repository_facts
from tests.cells.houses import fake_backend, fakes, frozen_run


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit of an experiment file in a folder."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "experiment.toml").write_text("name = 1\n")
    porcelain.init(str(tmp_path)).close()
    porcelain.add(str(tmp_path), [str(tmp_path / "work" / "experiment.toml")])
    porcelain.commit(str(tmp_path), message=b"one", author=b"A <a@b>", committer=b"A <a@b>")
    return tmp_path


def test_outside_of_any_repository_nothing_is_told(tmp_path: Path) -> None:
    """No repository, no facts, no line."""
    assert repository_facts(tmp_path / "experiment.toml") is None
    assert list(dirt_text(None)) == []


def test_a_clean_tree_has_a_commit_and_no_line(repository: Path) -> None:
    """The commit is the whole hash; nothing is dirty."""
    facts = repository_facts(repository / "work" / "experiment.toml")
    assert facts is not None
    assert len(facts["commit"]) == 40
    assert (facts["dirty"], facts["dirty_count"]) == ([], 0)
    assert list(dirt_text(facts)) == []


def test_changed_staged_and_untracked_paths_are_named(repository: Path) -> None:
    """Each way of not being committed counts; what lies outside the experiment's folder untracked does not."""
    work = repository / "work"
    (work / "experiment.toml").write_text("name = 2\n")
    (work / "arm.md").write_text("new")
    (repository / "elsewhere.txt").write_text("new")
    (repository / "staged.txt").write_text("new")
    porcelain.add(str(repository), [str(repository / "staged.txt")])
    facts = repository_facts(work / "experiment.toml")
    assert facts is not None
    assert facts["dirty"] == ["staged.txt", "work/arm.md", "work/experiment.toml"]
    assert list(dirt_text(facts)) == [
        "git: 3 paths are not committed: staged.txt, work/arm.md, work/experiment.toml",
    ]


def test_run_folders_are_no_dirt(repository: Path) -> None:
    """What a run writes beside its experiment is not what the experiment is made of."""
    run = repository / "work" / "runs" / "x-1"
    run.mkdir(parents=True)
    (run / "registration.json").write_text("{}")
    facts = repository_facts(repository / "work" / "experiment.toml")
    assert facts is not None
    assert facts["dirty"] == []


def test_many_paths_are_counted_and_the_first_named(repository: Path) -> None:
    """Fifty are kept by name, five are printed; the count is whole."""
    for number in range(60):
        (repository / "work" / f"f{number:02}").write_text("x")
    facts = repository_facts(repository / "work" / "experiment.toml")
    assert facts is not None
    assert (len(facts["dirty"]), facts["dirty_count"]) == (50, 60)
    assert next(iter(dirt_text(facts))).endswith("work/f04, ...")


def test_no_commit_and_a_broken_repository_are_told(tmp_path: Path) -> None:
    """Neither stops a freeze: the pins are digests of their own."""
    porcelain.init(str(tmp_path)).close()
    facts = repository_facts(tmp_path / "experiment.toml")
    assert facts is not None
    assert facts["commit"] is None
    assert list(dirt_text(facts)) == ["git: the repository has no commit yet: none is recorded"]
    (tmp_path / ".git" / "index").write_bytes(b"no index")
    broken = repository_facts(tmp_path / "experiment.toml")
    assert broken is not None
    assert "can't be read" in next(iter(dirt_text(broken)))


@pytest.mark.anyio
async def test_a_registration_keeps_the_commit_outside_of_its_id(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same experiment outside of git has the same id; inside, the commit and what is dirty are kept."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with fakes(monkeypatch, fake_backend(tmp_path_factory.mktemp("backend"))):
        inside = (await frozen_run(repository / "work")).registration
        outside = (await frozen_run(elsewhere)).registration
    assert inside.id == outside.id
    assert outside.repository is None
    assert inside.repository is not None
    assert len(inside.repository["commit"]) == 40
    assert "work/tasks.jsonl" in inside.repository["dirty"]
