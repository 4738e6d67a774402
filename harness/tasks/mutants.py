"""
Mutants: what a suite is characterised against. Each is one planted fault, written as edits of the reference.

    why = "the least recently used entry is kept, the newest goes"
    [[edit]]
    file = "lru.py"
    find = "next(iter(self._entries))"
    replace = "next(reversed(self._entries))"
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import TaskError
from harness.tasks.task import SealedHalf
from harness.tree import File, Tree
from harness.written import toml_of

__all__ = ["mutants"]


class _Edit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    file: str
    find: Annotated[str, Field(min_length=1)]
    replace: str


class _Mutant(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    why: Annotated[str, Field(min_length=1)]
    edit: Annotated[list[_Edit], Field(min_length=1)]


def mutants(sealed: SealedHalf) -> dict[str, Tree]:
    """
    The mutated references by name. Raises `TaskError` for a file that is no mutant, and for an edit whose text does not
    stand exactly once in the reference or changes nothing. So it does where all edits together give the reference
    again, which would measure nothing, or another mutant, which would count one fault twice.
    """
    made: dict[str, Tree] = {}
    by_tree = {sealed.solution.digest: "the reference itself"}
    for path in sealed.mutants:
        name, dot, kind = path.rpartition(".")
        if kind != "toml" or not dot or "/" in path:
            raise TaskError(f"mutants/{path}: expected NAME.toml with `why` and [[edit]] tables")
        try:
            mutant = _Mutant.model_validate(toml_of(sealed.mutants.text(path)))
        except (ValueError, ValidationError) as error:
            raise TaskError(f"mutants/{path} is no mutant: {error}") from None
        made[name] = _edited(path, mutant, sealed.solution)
        same = by_tree.setdefault(made[name].digest, f"what mutants/{path} gives too")
        if same != f"what mutants/{path} gives too":
            raise TaskError(f"mutants/{path}: its edits together give {same}: expected a fault of its own")
    return made


def _edited(path: str, mutant: _Mutant, tree: Tree) -> Tree:
    for edit in mutant.edit:
        if edit.file not in tree:
            raise TaskError(f"mutants/{path}: no file {edit.file!r} in solution/, which has {', '.join(tree)}")
        text = tree.text(edit.file)
        if text.count(edit.find) != 1:
            raise TaskError(
                f"mutants/{path}: {edit.find!r} stands {text.count(edit.find)} times in {edit.file}: expected once"
            )
        if edit.find == edit.replace:
            raise TaskError(f"mutants/{path}: {edit.find!r} is replaced by itself")
        data = text.replace(edit.find, edit.replace).encode()
        tree = Tree({**tree.files, edit.file: File(data=data, executable=tree.files[edit.file].executable)})
    return tree
