"""The candidate's patch: the file that it left, or the difference between the exhibit and the environment."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from harness.tree import Tree

__all__ = ["patch_of"]


def patch_of(exhibit: Tree, environment: Tree, path: str) -> str:
    """
    The exhibit's file at `path` as text, or else a patch in git's format from the environment to the exhibit.

    A file that is not UTF-8 text is left out of a patch that is made here, as SWE-bench's own patches leave it out.
    Whether a file is executable is kept as git keeps it, also where that alone has changed.
    """
    if path in exhibit:
        return exhibit.text(path)
    names = sorted({*exhibit, *environment})
    return "".join(line for name in names for line in _changed(name, environment, exhibit))


def _changed(name: str, old: Tree, new: Tree) -> Iterator[str]:
    before: list[str]
    after: list[str]
    was, now = _mode(name, old), _mode(name, new)
    same = was is not None and now is not None and old[name] == new[name]
    if same and was == now:
        return
    try:
        before, after = ([], []) if same else (_lines(name, old), _lines(name, new))
    except UnicodeDecodeError:
        return
    yield f"diff --git a/{name} b/{name}\n"
    if was is None:
        yield f"new file mode {now}\n"
    elif now is None:
        yield f"deleted file mode {was}\n"
    elif was != now:
        yield f"old mode {was}\nnew mode {now}\n"
    source = f"a/{name}" if name in old else "/dev/null"
    target = f"b/{name}" if name in new else "/dev/null"
    for line in difflib.unified_diff(before, after, source, target):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _mode(name: str, tree: Tree) -> str | None:
    """The mode of a file as git writes it, or None where there is none."""
    return None if name not in tree else "100755" if tree.files[name].executable else "100644"


def _lines(name: str, tree: Tree) -> list[str]:
    """Lines as git counts them: `splitlines` would cut at form feeds and other separators too."""
    text = tree[name].decode("utf-8") if name in tree else ""
    return [*(line + "\n" for line in text.split("\n")[:-1]), *filter(None, [text.rpartition("\n")[2]])]
