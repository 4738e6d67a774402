"""The pages: links resolve, the index leads everywhere, rooms have their tables, nothing foreign is mentioned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pages import ROOMS, ROOT, anchors, pages, without_blocks


def test_the_first_screen_runs():
    """The README starts with one sentence and the two commands that run on a fresh machine, and each is a target."""
    first = pages()["README.md"].splitlines()[:24]
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for target in ("quickstart", "test"):
        assert any(line.startswith(f"make {target}") for line in first)
        assert target in targets
    assert any(line.startswith("proctor run") for line in first)
    assert len(pages()["README.md"].splitlines()) < 60


def link_faults(found: dict[str, str], root: Path) -> list[str]:
    """Links to files that are not there, or to headings that their page does not have."""
    faults = []
    for name, text in found.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            place = (root / name).parent / path if path else root / name
            if not place.exists():
                faults.append(f"{name}: {target} is not there")
            elif anchor and place.suffix == ".md" and anchor not in anchors(place.read_text("utf-8")):
                faults.append(f"{name}: {target} has no such heading")
    return faults


def test_links_resolve():
    """Every relative link of every page leads to a file of the tree, and to a heading of it."""
    assert link_faults(pages(), ROOT) == []
    assert len(pages()) > 30


def test_a_broken_link_is_found(tmp_path):
    """A missing file, a missing heading; a link to elsewhere and one inside a block are let be."""
    (tmp_path / "a.md").write_text("# One `two` three\n", "utf-8")
    text = "[x](a.md#one-two-three) [x](a.md#one) [x](b.md) [x](https://example.org/b.md)\n```text\n[x](c.md)\n```\n"
    assert link_faults({"b2.md": text}, tmp_path) == [
        "b2.md: a.md#one has no such heading",
        "b2.md: b.md is not there",
    ]


def test_the_index_leads_to_every_page():
    """A page that no index names is not found by anybody."""
    index = (ROOT / "docs/index.md").read_text("utf-8")
    decisions = (ROOT / "docs/decisions/README.md").read_text("utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs").as_posix()
        if name.startswith("decisions/") and path.name != "README.md":
            assert f"({path.name})" in decisions
        elif name != "index.md":
            assert f"({name})" in index


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_its_table(room):
    """The page at the door of a room names every module that stands right inside."""
    text = (ROOT / room / "README.md").read_text("utf-8")
    for path in (ROOT / room).glob("*.py"):
        if path.name != "__init__.py":
            assert f"`{path.name}`" in text
    for path in (ROOT / room).iterdir():
        if path.is_dir() and path.name != "__pycache__":
            assert f"`{path.name}/`" in text


HOSTS = ("pypi" + r"\.org", "files" + r"\.pythonhosted", "hub" + r"\.docker", "docker" + r"\.io/", "ghcr" + r"\.io")
FOREIGN = re.compile(
    r"(?<![\w./])/wor" + r"k/[a-z]|/tmp" + r"/v/|/root" + r"/\.|\b(?:" + "|".join(HOSTS) + ")", re.IGNORECASE
)
"""Paths of the place where this was written, and hosts of registries: neither belongs into what others read."""


def texts() -> dict[str, str]:
    """Everything of ours that others read: sources, tests, pages, examples, scripts."""
    endings = {".py", ".md", ".toml", ".sh", ".jsonl", ".txt", ""}
    folders = [*ROOMS, "tests", "docs", "examples", "bench", ".ci"]
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in endings]
    found += [path for path in ROOT.iterdir() if path.suffix in endings]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for path in found
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }


def test_nothing_speaks_of_the_place_where_it_was_written():
    """No path of a workplace, and no registry by its host's name."""
    wrong = [f"{name}: {match[0]}" for name, text in texts().items() for match in FOREIGN.finditer(text)]
    assert wrong == []
    assert len(texts()) > 200


@pytest.mark.parametrize(
    "text", ["/wor" + "k/main", "see /tmp" + "/v/dev", "https://pypi" + ".org/simple", "gh" + "cr.io/x"]
)
def test_such_a_mention_is_found(text):
    """Each kind; `/workspace` is the workspace's own folder and fine."""
    assert FOREIGN.search(text)
    assert not FOREIGN.search("/workspace/solution.py and a registry")
