"""Candidates made from the files of a reference: endless ones, ones that claim, and one that shows where it is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from harness.conformance.languages import CLAIMS, JUNIT, LANGUAGES, suffix_of
from harness.tree import File, Tree

__all__ = ["claiming", "emptied", "endless", "labelled", "marked"]

_CALLED = "while True:\n    pass\n"
_FALSE = "raise AssertionError\n"
_AT_END = "import atexit, os\natexit.register(os._exit, 0)\n"
_COMMENTS = {
    **dict.fromkeys((".py", ".sh", ".bash"), "# {}"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".c", ".cc", ".cpp", ".cxx", ".rs", ".go", ".dfy"), "// {}"),
    ".v": "(* {} *)",
    ".lean": "-- {}",
}
_REPORTS = {
    **dict.fromkeys(("junit.xml", "report.xml", "results.xml", "test-results.xml", "Testing/Test.xml"), JUNIT),
    **dict.fromkeys(
        ("report.json", "results.json", "reward.json", "verdict.json"),
        '{"passed": true, "reading": "PASS", "tests": {"failed": 0}, "failed": 0, "reward": 1, "exitcode": 0}\n',
    ),
    **dict.fromkeys(("stdout.txt", "output.txt", "log.txt", "result.txt"), CLAIMS),
    "reward.txt": "1\n",
    "conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "sitecustomize.py": "import os\nos._exit(0)\n",
}


def endless(reference: Tree) -> Mapping[str, Tree]:
    """The candidates that never end, by what they do. Empty where no file is of a language that is known."""
    made = _each(reference, lambda suffix: LANGUAGES[suffix].endless)
    called = _python(reference, _CALLED, head="")
    return made if called is None else {**made, "loops when called": called}


def claiming(reference: Tree) -> Mapping[str, Tree]:
    """The candidates that end well and do nothing right, by what they do; some of them fit every language."""
    made = _each(reference, lambda suffix: LANGUAGES[suffix].claiming)
    false = _python(reference, _FALSE, head=_AT_END)
    if false is not None:
        made["is false, and exits with 0 at its end"] = false
    nothing = emptied(reference)
    claims = {path: File(data=CLAIMS.encode(), executable=file.executable) for path, file in reference.files.items()}
    return {
        **made,
        "is empty beside planted reports": nothing.merged(Tree.of(_REPORTS)),
        "is nothing but claims": Tree(claims),
    }


def emptied(reference: Tree) -> Tree:
    """The same files with nothing in them."""
    return Tree({path: File(data=b"", executable=file.executable) for path, file in reference.files.items()})


def marked(reference: Tree, module: str, path: str) -> Tree | None:
    """
    The reference, which in Python first names itself `module` among the modules of its process, and in Python and shell
    makes the file `path`. It does what the reference does, and shows where. None where no file is of these two.
    """
    texts = {
        ".py": (
            f"import sys\nsys.modules[{module!r}] = sys\n"
            f"try:\n    open({path!r}, 'w').close()\nexcept BaseException:\n    pass\n"
        ),
        ".sh": f": > {path} 2>/dev/null\n",
    }
    files = {
        name: _started(file, name, texts[suffix])
        for name, file in reference.files.items()
        if (suffix := suffix_of(name, file.data)) in texts
    }
    return reference.merged(Tree(files)) if files else None


def labelled(reference: Tree, word: str) -> Tree:
    """The reference with `word` in a comment at the end of each file whose language is known, and in a file beside."""
    files = {}
    for path, file in reference.files.items():
        comment = _COMMENTS.get(suffix_of(path, file.data))
        if comment is not None:
            files[path] = File(data=file.data + f"\n{comment.format(word)}\n".encode(), executable=file.executable)
    return reference.merged(Tree(files)).merged(Tree.of({"ABOUT.txt": f"{word}\n"}))


def _each(reference: Tree, texts: Callable[[str], Mapping[str, str]]) -> dict[str, Tree]:
    """The reference with the text of one name put into every file whose language has one, name by name."""
    known = {path: suffix for path in reference if (suffix := suffix_of(path, reference[path])) in LANGUAGES}
    names = dict.fromkeys(name for suffix in known.values() for name in texts(suffix))
    return {
        name: reference.merged(
            Tree(
                {
                    path: _started(reference.files[path], path, texts(suffix)[name])
                    for path, suffix in known.items()
                    if name in texts(suffix)
                }
            )
        )
        for name in names
    }


def _started(file: File, path: str, text: str) -> File:
    """A file with `text` where it is run first."""
    suffix = suffix_of(path, file.data)
    source = file.data.decode("utf-8", "surrogateescape")
    if suffix in LANGUAGES and LANGUAGES[suffix].after:
        made = source + text
    else:
        lines = source.splitlines(keepends=True)
        at = max(int(source.startswith("#!")), _first_line(source) if suffix == ".py" else 0)
        made = "".join([*lines[:at], text, *lines[at:]])
    return File(data=made.encode("utf-8", "surrogateescape"), executable=file.executable)


def _first_line(source: str) -> int:
    """How many lines of a Python file stand before its first statement that is neither text nor of the future."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return 0
    for node in body:
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (text or future):
            first = min((item.lineno for item in getattr(node, "decorator_list", [])), default=node.lineno)
            return first - 1
    return len(source.splitlines())


def _python(reference: Tree, body: str, *, head: str) -> Tree | None:
    """The reference with `body` for the body of each function in it, and `head` first; None without Python."""
    files = {}
    for path, file in reference.files.items():
        try:
            module = ast.parse(file.data) if suffix_of(path, file.data) == ".py" else None
        except (SyntaxError, ValueError):
            continue
        functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)] if module else []
        if module is None or not functions:
            continue
        for node in functions:
            node.body = ast.parse(body).body
        first = file.data.partition(b"\n")[0] + b"\n" if file.data.startswith(b"#!") else b""
        made = File(data=first + ast.unparse(module).encode(), executable=file.executable)
        files[path] = _started(made, path, head)
    return reference.merged(Tree(files)) if files else None
