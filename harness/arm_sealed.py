"""
Whether an arm reaches for more than its view, told from its types and its source.

An arm is rendered with a `RoundView`, which has no field for anything sealed. One that asks for more, or whose module
takes the sealed half's type or a room that handles it, is refused before it is ever rendered.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator

from harness.arm_folder import FolderArm, files_of
from harness.ports import Arm

__all__ = ["reaches"]

_ROOMS = ("cells", "fences", "referees")
_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}


def reaches(arm: Arm) -> list[str]:
    """Each way in which `arm` reaches for the sealed half or past its view, a sentence each; none where it doesn't."""
    return [*_signature(arm), *(said for where, source in _sources(arm) for said in _source(where, source))]


def _signature(arm: Arm) -> Iterator[str]:
    """What `render` asks for beside the one view."""
    try:
        known = list(
            inspect.signature(arm.inner.render if isinstance(arm, FolderArm) else arm.render).parameters.values()
        )
    except (TypeError, ValueError):
        return
    for number, parameter in enumerate(known):
        annotation = parameter.annotation if isinstance(parameter.annotation, str) else repr(parameter.annotation)
        if "Sealed" in annotation:
            yield f"`render` takes `{parameter.name}: {annotation}`: an arm is never handed anything sealed"
        elif number and parameter.kind in _POSITIONAL and parameter.default is inspect.Parameter.empty:
            yield f"`render` asks for `{parameter.name}` beside its view: it is called with a RoundView alone"


def _sources(arm: Arm) -> Iterator[tuple[str, str]]:
    """The source that the arm is made of: the folder's modules, else the module of its class where that is at hand."""
    files = files_of(arm)
    if files is not None:
        modules = ((path, data) for path, data in sorted(files.items()) if path.endswith(".py"))
        yield from ((path, data.decode("utf-8", "replace")) for path, data in modules)
        return
    module = sys.modules.get(type(arm).__module__)
    try:
        if module is not None:
            yield module.__name__, inspect.getsource(module)
    except (OSError, TypeError):
        return


def _source(where: str, source: str) -> Iterator[str]:
    """The places of a module that name the sealed half, or import a room that handles it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for name in _imported(node):
            if name.partition(".")[0] in _ROOMS:
                yield f"{where}, line {line}: imports {name}: an arm may import `harness` and what is its own"
        if "SealedHalf" in _named(node) or (isinstance(node, ast.Attribute) and node.attr == "sealed"):
            yield f"{where}, line {line}: takes the sealed half: an arm sees the open half and the public facts alone"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


def _named(node: ast.AST) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        return {alias.name for alias in node.names}
    return {node.id} if isinstance(node, ast.Name) else set()
