"""What the screen of the pytest referee sees of files that are made so that it does not, or takes for ever."""

from __future__ import annotations

import pytest

from harness.tree import Tree
from referees.pytest_screen import FILE_BYTES, TREE_BYTES, screened


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"import zlib\n", True),
        (b"# coding: utf-7\nimport +AHoAbABpAGI-\n", True),
        (b"#!/usr/bin/python3\r# -*- coding: utf-7 -*-\rimport +AHoAbABpAGI-\r", True),
        (b"\n\n# coding: utf-7\nimport +AHoAbABpAGI-\n", False),
        (b"# coding: latin-1\n'\xe9'\nimport zlib\n", True),
        (b"# coding: no-such\nimport zlib\n", True),
        (b"# coding: utf-16\nimport zlib\n", True),
        (b"'\xff'\nimport zlib\n", True),
        (b"# import zlib\n", False),
        (b"import zlib(\n", False),
        (b"\0", False),
    ],
)
def test_a_word_is_seen_in_whatever_encoding(data: bytes, seen: bool) -> None:
    """As Python itself would read the file, and as a program could that reads it as text; what is no Python has no word."""
    assert (screened(Tree.of({"solution.py": data}), ["zlib"]) is not None) == seen


def test_what_is_too_long_to_be_screened_is_refused() -> None:
    """Where words are forbidden, and there alone: one file, or all of them together; a file of another kind is not read."""
    long, full = b"a\n" * (FILE_BYTES // 2 + 1), b"#" * FILE_BYTES
    assert "solution.py has 524290 bytes" in str(screened(Tree.of({"solution.py": long}), ["zlib"]))
    assert screened(Tree.of({"solution.py": long}), []) is None
    assert screened(Tree.of({"solution.txt": long, "a.py": full}), ["zlib"]) is None
    many = {f"{number}.py": full for number in range(TREE_BYTES // FILE_BYTES)}
    assert screened(Tree.of(many), ["zlib"]) is None
    assert "together" in str(screened(Tree.of({**many, "more.py": b"#"}), ["zlib"]))
