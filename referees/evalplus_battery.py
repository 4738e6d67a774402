"""Degenerate candidates: each stands for a way in which a referee can be talked into a PASS. All must be rejected."""

from __future__ import annotations

from collections.abc import Mapping

from harness.tree import Tree

__all__ = ["degenerates"]

_STUB = "def {entry}(*args, **kwargs):\n    return None\n"
_CONSTANT = "def {entry}(*args, **kwargs):\n    return 0\n"
_EXIT = (
    "import os\nimport sys\n\n\ndef {entry}(*args, **kwargs):\n    return None\n\n\nsys.stdout.flush()\nos._exit(0)\n"
)
_EQUAL = """class Anything:
    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __hash__(self):
        return 0


def {entry}(*args, **kwargs):
    return Anything()
"""
_RESULTS = '{"passed": true, "reading": "PASS", "eval": {"base_status": "pass", "plus_status": "pass"}}\n'
_CONFTEST = """def pytest_runtest_makereport(item, call):
    call.excinfo = None
"""


def degenerates(entry_point: str, file: str) -> Mapping[str, Tree]:
    """The battery for an entry point, each candidate's code in `file`."""

    def made(code: str, **others: str) -> Tree:
        return Tree.of({file: code.replace("{entry}", entry_point), **others})

    return {
        "empty": made(""),
        "stub": made(_STUB),
        "constant": made(_CONSTANT),
        "exit-at-import": made(_EXIT),
        "equals-everything": made(_EQUAL),
        "planted-result": made(_STUB, **{"results.json": _RESULTS, "solution_eval_results.json": _RESULTS}),
        "planted-conftest": made(_STUB, **{"conftest.py": _CONFTEST}),
    }
