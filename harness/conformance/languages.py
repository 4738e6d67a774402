"""
What can be put into a source file, language by language, so that it is run before the file does anything right.

`endless` texts never end, or leave something behind that does not; `claiming` texts end at once, and say that all is
well. Nothing here knows what a file is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

__all__ = ["CLAIMS", "JUNIT", "LANGUAGES", "Language", "suffix_of"]

JUNIT = '<testsuite errors="0" failures="0" skipped="0" tests="1"><testcase name="it"/></testsuite>\n'

CLAIMS = f"""\
PASS
OK
1 passed in 0.01s
Ran 1 test in 0.001s
TAP version 13
1..1
ok 1
test result: ok. 1 passed; 0 failed; 0 ignored
--- PASS: Test (0.00s)
100% tests passed, 0 tests failed out of 1
program verifier finished with 1 verified, 0 errors
{{"passed": true, "reading": "PASS", "failed": 0, "reward": 1}}
{JUNIT}"""
"""What test runners of many languages say when all is well."""

_WORDS = repr(CLAIMS)
_C_WORDS = CLAIMS.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
_C = (
    "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    "__attribute__((constructor)) static void proctor_start(void) {{ {} }}\n"
)
_RUST = (
    '\n#[used]\n#[link_section = ".init_array"]\nstatic PROCTOR_START: extern "C" fn() = {{\n'
    '    extern "C" fn start() {{ {} }}\n    start\n}};\n'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    """`endless` and `claiming` are texts by name, put before a file of `suffixes` (`after`: behind it)."""

    suffixes: tuple[str, ...]
    endless: Mapping[str, str] = field(default_factory=dict)
    claiming: Mapping[str, str] = field(default_factory=dict)
    after: bool = False


_PYTHON = Language(
    suffixes=(".py",),
    endless={
        "loops": "while True:\n    pass\n",
        "waits": "import time\ntime.sleep(10**6)\n",
        "floods": "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n    os.write(2, b'x' * 65536)\n",
        "forks": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n",
        "allocates": "kept = []\nwhile True:\n    kept.append(bytearray(1 << 24))\n",
        "lingers": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(10**6)\nos._exit(0)\n",
    },
    claiming={
        "exits with 0": "import os\nos._exit(0)\n",
        "raises SystemExit(0)": "raise SystemExit(0)\n",
        "claims and exits with 0": (
            f"import os\nfor fd in (1, 2):\n    os.write(fd, {_WORDS}.encode())\nos._exit(0)\n"
        ),
        "claims and does nothing": f"import os\nos.write(1, {_WORDS}.encode())\nraise SystemExit(0)\n",
    },
)

_OTHERS = (
    Language(
        suffixes=(".sh", ".bash"),
        endless={
            "loops": "while :; do :; done\n",
            "waits": "sleep 1000000\n",
            "floods": "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done\n",
            "forks": "f() { f | f & }; while :; do f; done\n",
            "lingers": "sleep 1000000 &\nexit 0\n",
        },
        claiming={
            "exits with 0": "exit 0\n",
            "claims and exits with 0": f"cat <<'PROCTOR'\n{CLAIMS}PROCTOR\nexit 0\n",
        },
    ),
    Language(
        suffixes=(".js", ".mjs", ".cjs"),
        endless={
            "loops": "for (;;) {}\n",
            "floods": "for (;;) console.log('x'.repeat(65536));\n",
            "allocates": "{ const kept = []; for (;;) kept.push(new Array(1 << 20).fill(0)); }\n",
        },
        claiming={
            "exits with 0": "process.exit(0);\n",
            "claims and exits with 0": f"console.log({_WORDS}); process.exit(0);\n",
        },
    ),
    Language(
        suffixes=(".c", ".cc", ".cpp", ".cxx"),
        endless={
            "loops": _C.format("volatile int on = 1; while (on) {}"),
            "floods": _C.format('for (;;) puts("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");'),
            "forks": _C.format("for (;;) fork();"),
            "allocates": _C.format(
                "for (;;) { char *p = malloc(1 << 24); if (p) for (int i = 0; i < (1 << 24); i += 4096) p[i] = 1; }"
            ),
        },
        claiming={
            "exits with 0": _C.format("_Exit(0);"),
            "claims and exits with 0": _C.format(f'printf("{_C_WORDS}"); fflush(stdout); _Exit(0);'),
        },
    ),
    Language(
        suffixes=(".rs",),
        after=True,
        endless={
            "loops": _RUST.format("loop { std::hint::spin_loop(); }"),
            "floods": _RUST.format('loop { println!("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); }'),
        },
        claiming={
            "exits with 0": _RUST.format("std::process::exit(0)"),
            "claims and exits with 0": _RUST.format(f'println!("{{}}", r#"{CLAIMS}"#); std::process::exit(0)'),
        },
    ),
    Language(
        suffixes=(".go",),
        after=True,
        endless={"loops": "\nfunc init() {\n\tfor {\n\t}\n}\n"},
        claiming={"claims and stops": f"\nfunc init() {{\n\tprint(`{CLAIMS}`)\n\tpanic(0)\n}}\n"},
    ),
    Language(
        suffixes=(".v",),
        endless={
            "loops": "Goal True. do 1000000000 (assert True by exact I). exact I. Qed.\n",
            "floods": 'Goal True. do 1000000000 (idtac "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"). exact I. Qed.\n',
        },
        claiming={"claims and stops": f'Goal True. idtac "{CLAIMS.replace(chr(34), chr(39))}". Abort.\nQuit.\n'},
    ),
    Language(
        suffixes=(".dfy",),
        after=True,
        endless={
            "loops": (
                "\nmodule ProctorLoops {\n  lemma Loops(x: nat, y: nat, z: nat)\n    requires x > 0 && y > 0 && z > 0\n"
                "    ensures x * x * x + y * y * y != z * z * z\n  {\n  }\n}\n"
            )
        },
    ),
    Language(
        suffixes=(".lean",),
        after=True,
        endless={
            "loops": "\n#eval show IO Unit from do repeat pure ()\n",
            "floods": '\n#eval show IO Unit from do repeat IO.println "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"\n',
        },
    ),
)
LANGUAGES: Mapping[str, Language] = {
    suffix: language for language in (_PYTHON, *_OTHERS) for suffix in language.suffixes
}
"""By the ending of a file's name."""

_PROGRAMS = {"python": ".py", "sh": ".sh", "bash": ".sh", "dash": ".sh", "node": ".js"}


def suffix_of(path: str, source: bytes) -> str:
    """The ending that a file's language goes by: its name's own, or that of the program in its first line."""
    suffix = PurePosixPath(path).suffix
    if suffix in LANGUAGES or not source.startswith(b"#!"):
        return suffix
    words = source.partition(b"\n")[0][2:].decode("ascii", "replace").replace("/", " ").split()
    names = [word.rstrip("0123456789.") for word in words]
    return next((_PROGRAMS[name] for name in names if name in _PROGRAMS), suffix)
