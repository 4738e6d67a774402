"""
Degenerate candidates that a suite must reject before it judges anything: each does nothing right, and some say in every
way they can that all is well. The programs are written in the language of the card's `main` file, by its suffix, so
that they are built as the task has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from xml.sax.saxutils import quoteattr

from harness.tree import File, Tree
from referees.command_card import CommandCard

__all__ = ["LANGUAGES", "battery", "forged"]

_C = "#include <stdio.h>\nint main(int argc, char **argv) {{\n    (void)argc; (void)argv;\n{0}    return 0;\n}}\n"
_GO = "package main\n\nimport (\n{1})\n\nfunc main() {{\n{0}}}\n"

LANGUAGES: Mapping[str, Mapping[str, Callable[[str], str]]] = {
    ".c": {
        "silent": lambda _: _C.format(""),
        "echo": lambda _: _C.format("    for (int c; (c = getchar()) != EOF;) putchar(c);\n"),
        "forged_report": lambda text: _C.format(f"    fputs({_quoted(text)}, stdout);\n"),
        "endless": lambda _: _C.format('    for (;;) puts("ok");\n'),
    },
    ".go": {
        "silent": lambda _: "package main\n\nfunc main() {}\n",
        "echo": lambda _: _GO.format("\tio.Copy(os.Stdout, os.Stdin)\n", '\t"io"\n\t"os"\n'),
        "forged_report": lambda text: _GO.format(f"\tos.Stdout.WriteString({_quoted(text)})\n", '\t"os"\n'),
        "endless": lambda _: _GO.format('\tfor {\n\t\tos.Stdout.WriteString("ok\\n")\n\t}\n', '\t"os"\n'),
    },
    ".js": {
        "silent": lambda _: "",
        "echo": lambda _: "process.stdin.pipe(process.stdout);\n",
        "forged_report": lambda text: f"process.stdout.write({_quoted(text)});\n",
        "endless": lambda _: "for (;;) process.stdout.write('ok\\n');\n",
    },
    ".pl": {
        "silent": lambda _: "#!/usr/bin/perl\n",
        "echo": lambda _: "#!/usr/bin/perl\nprint while <STDIN>;\n",
        "forged_report": lambda text: f"#!/usr/bin/perl\nprint <<'END';\n{text}END\n",
        "endless": lambda _: '#!/usr/bin/perl\nprint "ok\\n" while 1;\n',
    },
    ".py": {
        "silent": lambda _: "#!/usr/bin/env python3\n",
        "echo": lambda _: "#!/usr/bin/env python3\nimport sys\n\nsys.stdout.write(sys.stdin.read())\n",
        "forged_report": lambda text: f"#!/usr/bin/env python3\nprint({_quoted(text)}, end='')\n",
        "endless": lambda _: "#!/usr/bin/env python3\nwhile True:\n    print('ok')\n",
    },
    ".rs": {
        "silent": lambda _: "fn main() {}\n",
        "echo": lambda _: (
            "fn main() {\n    std::io::copy(&mut std::io::stdin(), &mut std::io::stdout()).unwrap();\n}\n"
        ),
        "forged_report": lambda text: f'fn main() {{\n    print!("{{}}", {_quoted(text)});\n}}\n',
        "endless": lambda _: 'fn main() {\n    loop {\n        println!("ok");\n    }\n}\n',
    },
    ".sh": {
        "silent": lambda _: "#!/bin/sh\nexit 0\n",
        "echo": lambda _: "#!/bin/sh\nexec cat\n",
        "forged_report": lambda text: f"#!/bin/sh\ncat <<'END'\n{text}END\n",
        "endless": lambda _: "#!/bin/sh\nexec yes ok\n",
    },
}
"""By suffix: the text of each program; `forged_report` is made from what it is to print."""

_SAME = {"": ".sh", ".mjs": ".js", ".cjs": ".js"}


def _quoted(text: str) -> str:
    """A literal that C, Go, JavaScript, Python and Rust read alike: ASCII, with the escapes that they share."""
    return json.dumps("".join(letter if " " <= letter <= "~" or letter == "\n" else "?" for letter in text))


def forged(ids: list[str]) -> str:
    """A text that claims PASS in the format of every runner."""
    count = len(ids)
    tap = "".join(f"ok {number} - {name}\n" for number, name in enumerate(ids, 1))
    cargo = "".join(f"test {name} ... ok\n" for name in ids)
    go = "".join(json.dumps({"Action": "pass", "Package": "suite", "Test": name}) + "\n" for name in ids)
    return (
        f"TAP version 13\n1..{count}\n{tap}\nrunning {count} tests\n{cargo}\n"
        f"test result: ok. {count} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n"
        f"{go}{_junit(ids)}{count} passed, 0 failed\n"
    )


def _junit(ids: list[str]) -> str:
    cases = "".join(f"<testcase name={quoteattr(name)}/>" for name in ids)
    return f'<testsuite name="suite" tests="{len(ids)}" failures="0" errors="0" skipped="0">{cases}</testsuite>\n'


def _written(card: CommandCard, text: str) -> Tree:
    return Tree({card.main: File(data=text.encode(), executable=True)})


def battery(card: CommandCard, environment: Tree) -> Mapping[str, Tree]:
    """The candidates by name, each laid over what the seat was given; programs where the card names a `main` file."""
    claim = forged(card.declared)
    planted = Tree.of(
        {
            **dict.fromkeys(("report", "stdout", "out/report", "out/stdout", "report.tap", "test.log"), claim),
            **dict.fromkeys(("report.xml", "junit.xml", "build/report.xml"), _junit(card.declared)),
            "bin/subject": "#!/bin/sh\nexit 0\n",
        }
    )
    made = {"untouched": environment, "planted_reports": planted}
    suffix = PurePosixPath(card.main).suffix
    for name, text in LANGUAGES.get(_SAME.get(suffix, suffix), {}).items():
        if card.main:
            made[name] = _written(card, text(claim))
    if "silent" in made:
        made["planted_reports"] = planted.merged(made["silent"])
    return {"empty": Tree(), **{name: environment.merged(tree) for name, tree in made.items()}}
