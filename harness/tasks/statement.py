"""
The tool behind the extra `statement`: the formal statement of an interface, derived from the sealed reference.

It is the reference's own signatures and docstrings of the declared names and their public members, verbatim, and no
line of any body. The same reference always gives the same text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from harness.errors import TaskError
from harness.tree import Tree

__all__ = ["statement"]


def statement(reference: Tree, interface: Sequence[tuple[str, Sequence[str]]]) -> str:
    """
    The statement of `interface`, pairs of a module and its names. Raises `TaskError` for a module or name that the
    reference does not define at its top level.
    """
    parts: list[str] = []
    for module, names in interface:
        source = _source(reference, module)
        body, lines = ast.parse(source).body, source.split("\n")
        found = {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        for name in names:
            if name not in found:
                raise TaskError(f"the reference does not define {module}.{name} at the top level of its module")
        text = "\n\n\n".join("\n".join(_declared(found[name], lines)) for name in names)
        parts.append(f"## Module `{module}`\n\n```python\n{text}\n```\n")
    return "\n".join(parts)


def _source(reference: Tree, module: str) -> str:
    stem = module.replace(".", "/")
    for path in (f"{stem}.py", f"{stem}/__init__.py"):
        if path in reference:
            return reference.text(path)
    raise TaskError(f"the reference has no module {module!r}: it holds {', '.join(reference)}")


def _declared(node: ast.FunctionDef | ast.ClassDef, lines: Sequence[str]) -> Iterator[str]:
    """The lines of a definition down to the end of its docstring, then the same of a class's public members."""
    start, first = _begins(node), node.body[0]
    if first.lineno == node.lineno:
        raise TaskError(f"line {node.lineno} of the reference has head and body of {node.name} in one: expected two")
    if ast.get_docstring(node) is not None:
        yield from lines[start - 1 : first.end_lineno]
    else:
        yield from lines[start - 1 : _begins(first) - 1]
        yield " " * first.col_offset + "..."
    if isinstance(node, ast.ClassDef):
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and not _private(member.name):
                yield ""
                yield from _declared(member, lines)


def _begins(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
