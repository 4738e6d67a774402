"""Code that is quoted in a prompt, so that nothing in it can end the quotation."""

from __future__ import annotations

import re

__all__ = ["fenced"]


def fenced(code: str, language: str) -> str:
    """
    `code` as a fenced block that it can't close: the fence is longer than every run of its character in the code, and
    of backticks or tildes the one that stays shorter.

    >>> print(fenced("x = 1", "python").splitlines()[0])
    ```python
    """
    marks = [char * max(3, _longest_run(code, char) + 1) for char in "`~"]
    fence = min(marks, key=len)
    return f"{fence}{language}\n{code.rstrip()}\n{fence}"


def _longest_run(text: str, char: str) -> int:
    return max((len(run) for run in re.findall(f"{re.escape(char)}+", text)), default=0)
