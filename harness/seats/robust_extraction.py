"""
The code in a model's reply by a second, more forgiving rule set, to tell a candidate that failed from one
whose form did.

`extract_code` takes one block and never joins two. Here blocks are joined, so are the
runs of code lines that were never fenced, and mixed indentation is made one. Where both find the same
text there is one candidate, and where they don't, a unit is dead only when both of its readings are.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from harness.seats.blocks import scan
from harness.seats.extraction import extract_code, valid_text, without_thoughts
from harness.seats.unfenced import regions

__all__ = ["RobustRule", "robust_code"]

RobustRule: TypeAlias = Literal["joined-blocks", "joined-runs", "as-standard", "none"]
"""
Which rule decided:

- `joined-blocks`: every block of Python or without a language, joined in their order by an empty line;
- `joined-runs`: no such block: the runs of code between prose, from the first that defines or imports something;
- `as-standard`: neither found code, and the standard rules did;
- `none`: there is no code.
"""

_FIRST = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class|import|from|@)[ \t]*\w", re.MULTILINE)
_STATUS = re.compile(r"^[ \t]*\**STATUS:[ \t]*DONE\**\.?[ \t]*$", re.MULTILINE | re.IGNORECASE)
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff]")
_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_THOUGHT = re.compile(r"</?think>")
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_TAB = 4


def robust_code(reply: str, entry_point: str | None = None) -> tuple[str, RobustRule]:
    r"""
    The code in `reply` and the rule that found it; empty and `none` where there is none. Never raises.

    Before the rules: newlines become `\n`, byte order marks and zero-width characters go, no-break spaces become
    spaces, a line that is only `STATUS: DONE` goes, and a reply that is nothing but a thought is looked into.
    """
    text = _plain(reply)
    blocks = [block.text for block in scan(text).blocks if block.language in {"", "python"} and block.text.strip()]
    joined = _tidy("\n\n".join(_margin(block) for block in blocks))
    if joined:
        return joined, "joined-blocks"
    if runs := _joined_runs(text):
        return runs, "joined-runs"
    code = extract_code(text, entry_point).code
    return (_tidy(code), "as-standard") if code else ("", "none")


def _plain(reply: str) -> str:
    text = valid_text(reply).replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", text).replace("\u00a0", " ")
    behind = without_thoughts(text)
    return _STATUS.sub("", behind if behind.strip() else _THOUGHT.sub("", text))


def _joined_runs(text: str) -> str:
    """The runs of code between lines of prose, from the first that defines or imports something on."""
    runs, _pure = regions(_FENCE_LINE.sub("", text))
    first = next((at for at, run in enumerate(runs) if _FIRST.search(run)), len(runs))
    return _tidy("\n\n".join(_margin(run) for run in runs[first:]))


def _margin(text: str) -> str:
    """`text` without the indentation that all of its lines share."""
    indents = [match.group() for line in text.split("\n") if line.strip() and (match := _INDENT.match(line))]
    lines = [line for line in text.split("\n") if line.strip()]
    if len(indents) < len(lines) or not lines:
        return text
    shared = min(len(indent) for indent in indents)
    return "\n".join(line[shared:] for line in text.split("\n"))


def _tidy(code: str) -> str:
    """Blank lines around it gone; where some lines are indented by tabs and some by spaces, each tab is four spaces."""
    indents = "".join(_INDENT.findall(code))
    if "\t" in indents and " " in indents:
        code = _INDENT.sub(lambda found: found.group().replace("\t", " " * _TAB), code)
    return code.strip("\n").rstrip()
