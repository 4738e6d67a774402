"""What the `command` referee sends into its rooms: two programs and the text of the command `subject`."""

from __future__ import annotations

from functools import cache
from importlib import resources

from harness.canonical import digest_bytes, digest_json

__all__ = ["command", "runner_digest", "sources", "stub"]

_SENT = {
    "judge": ("pytest_wire", "pytest_confine", "command_wire", "command_witness", "command_judge"),
    "subject": (
        *("pytest_wire", "pytest_confine", "pytest_watch"),
        *("command_wire", "command_witness", "command_program", "command_subject"),
    ),
}
_DECIDE = (
    *("command", "command_bridge", "command_bundle", "command_card", "command_screen", "command_stub"),
    *("command_subject_line", "frame_line"),
    *(
        "command_report",
        "command_readers",
        "command_cargo",
        "command_counts",
        "command_go",
        "command_junit",
        "command_tap",
    ),
)

_BOOT = """\
import sys, types
sys.modules["referees"] = package = types.ModuleType("referees")
package.__path__ = []
for name, text in {sources!r}.items():
    module = types.ModuleType("referees." + name)
    sys.modules[module.__name__] = module
    exec(compile(text, name + ".py", "exec"), module.__dict__)
module.main(sys.argv[1])
"""

_CLEAN = ("env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8")


@cache
def _source(name: str) -> str:
    return resources.files("referees").joinpath(f"{name}.py").read_text(encoding="utf-8")


def command(program: str) -> tuple[str, ...]:
    """The command of `judge` or `subject`: an isolated Python in a cleared environment, its program an argument."""
    text = _BOOT.format(sources={name: _source(name) for name in _SENT[program]})
    return (*_CLEAN, "python3", "-I", "-S", "-c", text, "/workspace")


def stub() -> str:
    """The text of the command `subject`, but for the call that ends it."""
    return _source("command_stub")


@cache
def runner_digest() -> str:
    """SHA-256 over the sources of everything of ours that takes part in a judgement."""
    return digest_json({f"referees/{name}.py": digest_bytes(_source(name).encode()) for name in sources()})


def sources() -> list[str]:
    """The modules of ours that take part in a judgement."""
    return sorted({*_DECIDE, *_SENT["judge"], *_SENT["subject"]})
