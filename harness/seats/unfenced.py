"""Python code that stands in a reply without fences: runs of lines between lines of prose, told apart by their look."""

from __future__ import annotations

import re

__all__ = ["ends_inside_quotes", "regions", "starts_as_code"]

_LOOK = 400
"""How many characters of a line are looked at: enough to tell its kind, and no pattern can take long over them."""

_START = re.compile(
    r"(?:async\s+)?def\s+\w+\s*[(\[]|class\s+\w+\s*[(\[:]|@\w[\w.]*\s*(?:\(.*)?$"
    r"|from\s+\.*[\w.]*\s+import\s+[\w(*]|import\s+[\w.]+\s*(?:,|;|#|$|as\s+\w+\s*(?:,|;|#|$))"
)
_CODE = re.compile(
    r"#|[ \t]|[rRbBuUfF]{0,2}(?:\"\"\"|''')|[)\]}]"
    r"|(?:if|elif|while|for|with|match|except|async)\b.*:\s*(?:#.*)?$|(?:else|try|finally|except)\s*:"
    r"|(?:return|raise|assert|yield|del|global|await|lambda)\b|(?:pass|break|continue)\s*(?:#.*)?$"
    r"|[A-Za-z_]\w*(?:\.\w+|\[[^\]]*\])*\s*(?::[^=]*)?(?:[-+*/%|&^@]|//|\*\*|<<|>>)?=(?!=)"
    r"|[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)+\s*=(?!=)|[A-Za-z_][\w.]*\("
)
_PROSE = re.compile(
    r"[-*>+]\s|\d+[.)]\s|\*\*|[A-Za-z][\w'\u2019-]*[,;:.!?]?\s+[\w'\"\u2019(`-]|[A-Z][a-z]+[.!:?]*$|[A-Za-z]+:$|[^\x00-\x7f]"
)
_MARK = re.compile("\"\"\"|'''|#")
_SPOKEN = re.compile(r"\b(?:the|you|your|we|this|that|here|please|let's|it's)\b", re.IGNORECASE)


def starts_as_code(text: str) -> bool:
    """Whether the first line that is not blank begins a definition, an import or a decorator."""
    return _START.match(text.lstrip("\n \t")[:_LOOK].partition("\n")[0]) is not None


def ends_inside_quotes(text: str) -> bool:
    """Whether a triple-quoted string is still open at the end of `text`, read as code."""
    quote = ""
    for line in text.split("\n"):
        quote = _quote_after(line, quote)
    return bool(quote)


def regions(text: str) -> tuple[list[str], bool]:
    """
    The runs of code in `text`, and whether there was no prose at all. A run begins at a line that looks like code and
    ends before a line that looks like prose; inside a triple-quoted string no line is prose.
    """
    found: list[list[str]] = []
    open_run, quote, pure = False, "", True
    for line in text.split("\n"):
        if quote:
            found[-1].append(line)
        elif _is_prose(line):
            open_run = pure = False
            continue
        elif open_run:
            found[-1].append(line)
        elif line.strip() and (_START.match(line[:_LOOK]) or _CODE.match(line[:_LOOK])):
            found.append([line])
            open_run = True
        else:
            pure = pure and not line.strip()
            continue
        quote = _quote_after(line, quote)
    return ["\n".join(lines) for lines in found], pure


def _is_prose(line: str) -> bool:
    head = line[:_LOOK]
    if not head.strip() or _START.match(head):
        return False
    if _CODE.match(head):
        plain = head[0] not in "# \t\"')]}" and "=" not in head and "(" not in head
        return plain and _SPOKEN.search(head) is not None
    return _PROSE.match(head) is not None


def _quote_after(line: str, quote: str) -> str:
    """The triple quote that is open after `line`, if `quote` was open before it; "" for none."""
    for found in _MARK.finditer(line):
        mark = found.group()
        if quote:
            quote = "" if mark == quote else quote
        elif mark == "#":
            return ""
        else:
            quote = mark
    return quote
