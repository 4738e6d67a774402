"""Extraction: each rule on replies of its kind, and properties that hold for any reply at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.seats.extraction import Extraction, extract_code, valid_text

CODE = "def add(a, b):\n    return a + b"
OTHER = "def helper(x):\n    return x"
USE = "print(add(1, 2))"


def fence(code, label="python", mark="```"):
    """A fenced block."""
    return f"{mark}{label}\n{code}\n{mark}"


CASES = {
    "one block": (fence(CODE), "one-block"),
    "prose around": (f"Sure! Here it is:\n\n{fence(CODE)}\n\nIt adds.", "one-block"),
    "no label": (fence(CODE, ""), "one-block"),
    "py label": (fence(CODE, "py"), "one-block"),
    "label in capitals": (fence(CODE, "Python3"), "one-block"),
    "label with attributes": (fence(CODE, 'python title="a.py"'), "one-block"),
    "label in braces": (fence(CODE, "{.python}"), "one-block"),
    "tilde fence": (fence(CODE, mark="~~~"), "one-block"),
    "long fence": (fence(CODE, mark="`````"), "one-block"),
    "indented fence": ("1. Do this:\n   ```python\n   def add(a, b):\n       return a + b\n   ```", "one-block"),
    "tab before the fence": ("- so:\n\t```python\n\tdef add(a, b):\n\t    return a + b\n\t```", "one-block"),
    "carriage returns": (fence(CODE).replace("\n", "\r\n"), "one-block"),
    "old carriage returns": (fence(CODE).replace("\n", "\r"), "one-block"),
    "byte order mark": ("\ufeff" + fence("\ufeff" + CODE), "one-block"),
    "never closed": (f"Here:\n```python\n{CODE}", "one-block"),
    "closed behind the last line": (f"```python\n{CODE}```", "one-block"),
    "closing cut off": (f"```python\n{CODE}\n``", "one-block"),
    "blank lines around": (f"```python\n\n\n{CODE}\n\n\n```", "one-block"),
    "all of it indented": ("```python\n    def add(a, b):\n        return a + b\n```", "one-block"),
    "thought before": (f"<think>\n{fence(OTHER)}\n</think>\n{fence(CODE)}", "one-block"),
    "two thoughts": (f"<think>a</think>\n <think>\nb</think>{fence(CODE)}", "one-block"),
    "thought without a beginning": (f"hm, {OTHER}\n</think>\n\n{fence(CODE)}", "one-block"),
    "status after": (f"{fence(CODE)}\n\nSTATUS: DONE", "one-block"),
    "a block in a page": (f"```markdown\n# Title\n{fence(CODE)}\n```", "one-block"),
    "shell beside it": (f"{fence('pip install x', 'bash')}\n{fence(CODE)}", "entry-block"),
    "output beside it": (f"{fence(CODE)}\nprints\n{fence('3', '')}", "entry-block"),
    "empty block beside it": (f"{fence('', 'python')}\n{fence(CODE)}", "one-block"),
    "use after": (f"{fence(CODE)}\nUse it:\n{fence(USE)}", "entry-block"),
    "two tries": (f"{fence('def add(a, b):' + chr(10) + '    return 0')}\nBetter:\n{fence(CODE)}", "entry-block"),
    "helper after": (f"{fence(CODE)}\n{fence(OTHER)}", "entry-block"),
    "wrong label": (fence(CODE, "java"), "one-block"),
    "fence begun elsewhere": (f"{CODE}\n```\nThis adds.", "headless"),
    "bare": (CODE, "bare"),
    "bare with a status": (f"{CODE}\n\nSTATUS: DONE\n", "bare"),
    "bare, indented": ("    def add(a, b):\n        return a + b\n", "bare"),
    "prose before code": (f"Here is the function:\n\n{CODE}", "unfenced"),
    "prose after code": (f"{CODE}\n\nThis adds two numbers and returns the sum.", "unfenced"),
    "list after code": (f"{CODE}\n\n- adds\n- returns", "unfenced"),
    "code between prose": (f"Sure!\n{CODE}\nHope this helps!", "unfenced"),
    "two unfenced parts": (f"First a helper:\n{OTHER}\nThen the function:\n{CODE}", "unfenced"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_code_is_found(name):
    """Whatever stands around it, the candidate is the code and nothing else, found by the rule that was written."""
    reply, rule = CASES[name]
    assert extract_code(reply, "add") == Extraction(code=CODE, rule=rule)


@pytest.mark.parametrize(
    ("reply", "code", "rule"),
    [
        (f"{fence(OTHER)}\n{fence(USE)}", OTHER, "definition-block"),
        (f"{fence(OTHER)}\n{fence(CODE)}", CODE, "definition-block"),
        (f"{fence('x = 1')}\n{fence(USE)}", USE, "last-block"),
        (fence(USE), USE, "one-block"),
        ("for i in range(3):\n    print(i)\n", "for i in range(3):\n    print(i)", "bare"),
    ],
)
def test_without_an_entry_point(reply, code, rule):
    """With no name to look for, definitions decide, then the place; blocks are never joined."""
    assert extract_code(reply) == Extraction(code=code, rule=rule)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("class Add:\n    pass", "Add"),
        ("add = lambda a, b: a + b", "add"),
        ("add: object = sum", "add"),
        ("async def add(a, b):\n    return a + b", "add"),
    ],
)
def test_each_way_to_define_an_entry_point_counts(code, name):
    """A class, an assignment and a coroutine define a name as well as a function does; a longer name doesn't."""
    assert extract_code(f"{fence(code)}\n{fence('def addition(): ...')}", name).code == code


@pytest.mark.parametrize(
    "reply",
    [
        "", " \n\t\n", "STATUS: DONE", "**STATUS: DONE**\n", "I can't do that.", "Thank you for your question!",
        "<think>def add(a, b): return a + b", "<think>\n```python\nx = 1\n```", "```python\n```", "```\n\n```",
        fence("pip install x", "bash"), "\ufeff", "# Heading\n\nSome words about the task.", "42",
        "The import of this is plain: from the list, take the first.",
    ],
)  # fmt: skip
def test_a_reply_without_code_is_empty(reply):
    """No code is an empty candidate, not an error and not a guess."""
    assert extract_code(reply, "add") == Extraction(code="", rule="none")


@pytest.mark.parametrize(
    "code",
    [
        "import math\n\n\ndef f(x):\n    return math.sqrt(x)",
        "from typing import (\n    List,\n)\n\nLIMIT = 10**9 + 7\n\nclass A:\n\tdef g(self):\n\t\treturn LIMIT",
        '# helper first\n\ndef f(text):\n    """Say what it does.\n\nLines of prose at the margin, as this one.\n"""\n    return text',
        'TEXT = """\nThe words of this text are prose.\n- and a list\n"""\n\ndef f():\n    return TEXT',
        "TABLE = [\n1, 2,\n3,\n]\n\ndef f(i):\n    return TABLE[i]",
        'def f(s):\n    """\n    ```\n    f("a")\n    ```\n    """\n    return s',
        'def f(s):\n    """\n```\nexample\n```\n    """\n    return s',
        "@cache\ndef f(n):\n    if n < 2:\n        return n\n    return f(n - 1) + f(n - 2)",
        "if True:\n    x = 1\nelse:\n    x = 2\n\nprint(x)",
        "def f(a):\n    # don't stop here '''\n    return a\n\n\nassert f(1) == 1",
    ],
)
def test_bare_code_stays_as_it_is(code):
    """Code without a fence is taken whole, docstrings that read as prose or hold a fence included."""
    assert extract_code(code, "f").code == code
    assert extract_code(extract_code(code).code).code == code


def test_lone_surrogates_are_replaced():
    """A candidate must fit a UTF-8 file, whatever a model server let through."""
    code = extract_code(fence("x = '\ud800'")).code
    assert code == "x = '\ufffd'"
    assert valid_text("a\udfffb") == "a\ufffdb"


NAMES = st.sampled_from(["f", "g", "value", "add"])
LINES = st.sampled_from(["return a", "x = 1", "if a:\n        return 1", "# note", "return '```'", "pass", ""])
FUNCTIONS = st.builds(
    lambda name, lines: f"def {name}(a):\n    " + "\n    ".join([*lines, "return 0"]),
    NAMES, st.lists(LINES, max_size=4),
)  # fmt: skip
PROGRAMS = st.builds(
    lambda head, parts: "\n\n".join([*head, *parts]),
    st.lists(
        st.sampled_from(["import re", "from math import sqrt", "N = 3", "A, B = 1, 2", "# words here"]), max_size=3
    ),
    st.lists(FUNCTIONS, min_size=1, max_size=3),
)


@given(PROGRAMS)
def test_programs_come_back_unchanged(program):
    """Bare code is a fixed point, and the same code comes out of a fence."""
    assert extract_code(program).code == program.strip()
    assert extract_code(fence(program, mark="````")).code == program.strip()


PIECES = st.sampled_from(
    ["```", "~~~", "```python\n", "\n", "\r\n", "\t", "def f(a):", "    return a", "<think>", "</think>", '"""', "'''",
     "STATUS: DONE", "\ufeff", "\0", "\ud800", "words and words", "# x", "import os", "class A:", " ", "`", "f = 1", "(", "é"]
)  # fmt: skip


@given(
    st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=40).map("".join)),
    st.sampled_from([None, "f", "(", "a.b"]),
)
def test_any_reply_has_an_answer(reply, entry_point):
    """Extraction never raises, is never longer than the reply, and its code can be written to a file."""
    found = extract_code(reply, entry_point)
    assert len(found.code) <= len(reply)
    assert found.code.encode("utf-8").decode("utf-8") == found.code
    assert (found.rule == "none") == (found.code == "")
    assert found == extract_code(reply, entry_point)


UNITS = [
    "```\n", "```python\n", "`", "~", "<think></think>", "</think>\n", "a ", "a=", "a.", "a[", "def ", " ", "\n", '"""', "'''\n#",
    "if a b ", "a, ", "x: ", "<think>", "STATUS: DONE\n", "import a\nwords and words\n", "\t```\n", "import ", "@a", "1. ",
    "if :", "if :#", "a :", "from a import ", "@a(", "*", "** ", "a\u2019", "\u00e9 ", "class A", "[1][",
]  # fmt: skip
SHAPES = {
    "one line": lambda unit, size: unit * size,
    "lines of 300": lambda unit, size: f"{unit * (300 // len(unit))}x\n" * (size * len(unit) // 300),
    "between fences": lambda unit, size: f"```{unit * size}`\n~~~{unit * size}`",
    "after code": lambda unit, size: f"def f():\n    return\n{unit * size}",
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("unit", UNITS)
def test_no_pattern_blows_up(unit, shape):
    """A long reply of any repeated unit ends within a test's time limit; `bench/extraction.py` measures the growth."""
    reply = SHAPES[shape](unit, 120_000 // len(unit))
    assert len(extract_code(reply, "f").code) <= len(reply)


def test_ten_megabytes_are_read_whole():
    """A huge reply is handled: one line of ten million characters, and a hundred thousand short ones."""
    huge = "x" * 10_000_000
    assert extract_code(huge).code == ""
    assert extract_code(fence(huge)).code == huge
    assert extract_code("word and word\n" * 100_000).code == ""
