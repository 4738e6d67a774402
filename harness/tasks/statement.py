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
        body = _module(reference, module).body
        found = {node.name: node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        for name in names:
            if name not in found:
                raise TaskError(f"the reference does not define {module}.{name} at the top level of its module")
        text = "\n\n\n".join("\n".join(_declared(found[name], "")) for name in names)
        parts.append(f"## Module `{module}`\n\n```python\n{text}\n```\n")
    return "\n".join(parts)


def _module(reference: Tree, module: str) -> ast.Module:
    stem = module.replace(".", "/")
    for path in (f"{stem}.py", f"{stem}/__init__.py"):
        if path in reference:
            return ast.parse(reference.text(path))
    raise TaskError(f"the reference has no module {module!r}: it holds {', '.join(reference)}")


def _declared(node: ast.FunctionDef | ast.ClassDef, indent: str) -> Iterator[str]:
    """The head of a definition, its docstring, and the heads of a class's public members."""
    if isinstance(node, ast.FunctionDef):
        yield from (f"{indent}@{ast.unparse(decorator)}" for decorator in node.decorator_list)
        returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
        yield f"{indent}def {node.name}({ast.unparse(node.args)}){returns}:"
    else:
        bases = ", ".join(map(ast.unparse, node.bases))
        yield f"{indent}class {node.name}({bases}):" if bases else f"{indent}class {node.name}:"
    inner = indent + "    "
    doc = ast.get_docstring(node)
    lines = f'"""{doc}"""'.split("\n") if doc else ["..."]
    yield from (f"{inner}{line}".rstrip() for line in lines)
    if isinstance(node, ast.ClassDef):
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and not _private(member.name):
                yield ""
                yield from _declared(member, inner)


def _private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
