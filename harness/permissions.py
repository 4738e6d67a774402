"""
Whether a seat's tool may touch a path: the rules' own check, by containment of parts and never by string prefix.

The check is about names alone and opens nothing. What a name *leads to* is the tool's business: it opens beneath
`Permission.root` without following a link out of it, and a tool that walks leaves out what `excluded` names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.errors import unknown_name
from harness.walls import ToolRules

__all__ = ["READING", "WORKSPACE", "WRITING", "Permission", "check", "contains", "normal"]

WORKSPACE = "/workspace"
"""Where a relative path starts, and where a seat works."""

READING = frozenset({"read", "list", "search", "run"})
"""Tools that need their path (a file, a folder, or the folder a program starts in) below a readable root."""

WRITING = frozenset({"write"})
"""Tools that need it below a writable root. Any other tool reads and writes, so it needs both."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Permission:
    """
    The answer, its reason as a sentence, and the path in normal form (None when the name itself was refused).

    `root` is the root that decided: the one to open beneath when allowed, the denied one when that is the reason.
    `excluded` are denied roots below an allowed folder: a tool that lists or searches it must leave them out.
    """

    allowed: bool
    why: str
    root: str | None = None
    path: str | None = None
    excluded: tuple[str, ...] = ()


def normal(path: object) -> str:
    """
    `path` as an absolute path without `.` and empty parts; a relative one is below the workspace.

    Raises `ValueError` for `..` (a link before it would make it mean another place), an empty path, a NUL, and
    what is no text or not encodable as UTF-8: it comes from a model, which may answer with anything.

    >>> normal("src/./a.py")
    '/workspace/src/a.py'
    """
    if not isinstance(path, str) or not path:
        raise ValueError(f"{path!r} is not a path: expected a non-empty text")
    if "\0" in path:
        raise ValueError(f"{path!r} holds a NUL")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{path!r} is not encodable as UTF-8") from None
    whole = path if path.startswith("/") else f"{WORKSPACE}/{path}"
    parts = [part for part in whole.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise ValueError(f"{path!r} has a '..' part: name the path directly")
    return "/" + "/".join(parts)


def contains(root: str, path: str) -> bool:
    """
    Whether `path` is `root` or lies below it, part by part; both are absolute and in normal form.

    >>> contains("/workspace", "/workspace-evil/a"), contains("/workspace", "/workspace/a")
    (False, True)
    """
    root_parts = [part for part in root.split("/") if part]
    return [part for part in path.split("/") if part][: len(root_parts)] == root_parts


def check(rules: ToolRules, tool: str, path: str) -> Permission:
    """Whether `rules` let `tool` touch `path`. A root that is unset, relative or not in normal form refuses."""
    if tool not in rules.tools:
        return Permission(allowed=False, why=unknown_name("tool", tool, rules.tools))
    try:
        clean = normal(path)
        roots = {kind: _clean_roots(getattr(rules, kind)) for kind in ("readable", "writable", "denied")}
    except ValueError as error:
        return Permission(allowed=False, why=str(error))
    denied = _holding(roots["denied"], clean)
    if denied is not None:
        return Permission(allowed=False, why=f"{clean} is in {denied}, which is denied", root=denied, path=clean)
    needs = ("readable",) if tool in READING else ("writable",) if tool in WRITING else ("readable", "writable")
    found: str | None = None
    for kind in needs:
        found = _holding(roots[kind], clean)
        if found is None:
            known = ", ".join(roots[kind]) or "none"
            return Permission(allowed=False, why=f"{clean} is in no {kind} root; {kind} roots: {known}", path=clean)
    below = tuple(root for root in roots["denied"] if contains(clean, root))
    return Permission(allowed=True, why=f"{clean} is in {found}", root=found, path=clean, excluded=below)


def _clean_roots(roots: Iterable[str]) -> tuple[str, ...]:
    for root in roots:
        parts = root.split("/")[1:]
        if root != "/" and (not root.startswith("/") or {"", ".", ".."} & set(parts)):
            raise ValueError(f"the rules hold the root {root!r}: expected an absolute path in normal form")
    return tuple(roots)


def _holding(roots: Iterable[str], path: str) -> str | None:
    """The deepest of `roots` that contains `path`, or None."""
    return max((root for root in roots if contains(root, path)), key=len, default=None)
