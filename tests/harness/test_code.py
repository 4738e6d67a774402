"""The digest of our own code: every byte that a result can depend on, and nothing else."""

from harness.code import code_digest, source_files


def test_every_file_counts_but_the_page_at_the_door(tmp_path):
    """Sources and data change the digest; a page for readers, and what Python compiles, do not stop a run."""
    for name in ("run.py", "texts/placebo.md", "README.md", "__pycache__/run.pyc"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name, "utf-8")
    before = source_files("room", tmp_path)
    assert set(before) == {"room/run.py", "room/texts/placebo.md"}
    (tmp_path / "README.md").write_text("other words", "utf-8")
    assert source_files("room", tmp_path) == before
    (tmp_path / "texts/placebo.md").write_text("other words", "utf-8")
    assert source_files("room", tmp_path) != before


def test_the_digest_is_one():
    """It is taken once in a process, over all five rooms."""
    assert code_digest() == code_digest()
    assert len(code_digest()) == 64
