"""Robust extraction: what it finds in replies of each kind, and where it and the standard rules differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.seats.extraction import extract_code
from harness.seats.robust_extraction import robust_code

CODE = "def add(a, b):\n    return a + b"
HELPER = "def one():\n    return 1"
FENCED = f"```python\n{CODE}\n```"
HELPER_FENCED = f"```python\n{HELPER}\n```"


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (FENCED, "joined-blocks"),
        (f"Sure! Here it is:\n\n{FENCED}\n\nIt adds.", "joined-blocks"),
        (FENCED.replace("\n", "\r\n"), "joined-blocks"),
        (FENCED.replace("\n", "\r"), "joined-blocks"),
        ("\ufeff" + FENCED.replace("def", "\ufeffdef"), "joined-blocks"),
        (FENCED.replace("    return", "\u00a0\u00a0\u00a0\u00a0return"), "joined-blocks"),
        ("```python\n    def add(a, b):\n        return a + b\n```", "joined-blocks"),
        (f"```python\n{CODE}\nSTATUS: DONE\n```", "joined-blocks"),
        (f"<think>{FENCED}", "joined-blocks"),
        (f"```python\n{CODE}", "joined-blocks"),
        (CODE, "joined-runs"),
        (f"{CODE}\n\nSTATUS: DONE\n", "joined-runs"),
        (f"Here is the function:\n\n{CODE}\n\nThis adds two numbers.", "joined-runs"),
        (f"```java\n{CODE}\n```", "joined-runs"),
    ],
)
def test_the_code_is_found(reply: str, rule: str) -> None:
    """Fenced or not, in prose, with any newlines, marks and indentation: the code and nothing else."""
    assert robust_code(reply, "add") == (CODE, rule)


def test_blocks_are_joined_in_their_order() -> None:
    """The standard rules take one block; a helper that stands in another is kept here, a shell's is not."""
    reply = f"First a helper:\n{HELPER_FENCED}\n```bash\npip install x\n```\nThen:\n{FENCED}"
    assert robust_code(reply, "add") == (f"{HELPER}\n\n{CODE}", "joined-blocks")
    assert extract_code(reply, "add").code == CODE


def test_runs_without_a_fence_are_joined() -> None:
    """So are two parts with prose between them."""
    reply = f"First a helper:\n{HELPER}\nThen the function:\n{CODE}"
    assert robust_code(reply, "add") == (f"{HELPER}\n\n{CODE}", "joined-runs")
    assert extract_code(reply, "add").code == CODE


def test_tabs() -> None:
    """Tabs alone stay; tabs among spaces, which Python refuses, become four spaces."""
    tabs = "def f(x):\n\tif x:\n\t\treturn 1\n\treturn 2"
    mixed = "def f(x):\n    if x:\n\treturn 1\n    return 2"
    assert robust_code(tabs)[0] == tabs
    assert robust_code(f"```python\n{mixed}\n```")[0] == "def f(x):\n    if x:\n    return 1\n    return 2"


@pytest.mark.parametrize(
    "reply",
    ["", " \n\t\n", "STATUS: DONE", "**STATUS: DONE**\n", "I can't do that.", "```python\n```", "\ufeff", "42",
     "```bash\npip install x\n```", "<think>I should add them.", "The import of this is plain."],
)  # fmt: skip
def test_a_reply_without_code_is_empty(reply: str) -> None:
    """No code is an empty candidate under both rule sets, not an error and not a guess."""
    assert robust_code(reply, "add") == ("", "none")
    assert extract_code(reply, "add").code == ""


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from([CODE, HELPER, "```", "~~~", "\n", "\t", "<think>", "prose ."])).map("\n".join)
)
def test_any_reply_is_taken(reply: str) -> None:
    """It never raises, says `none` just where there is no code, and gives what a UTF-8 file can hold."""
    code, rule = robust_code(reply, "add")
    assert (rule == "none") == (not code)
    code.encode("utf-8")
