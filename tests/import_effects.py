"""
Imports modules in a fresh interpreter and says what importing them did. Run as a program: ROOT MODULE...

Prints JSON: `effects` (a sentence each) and `loaded` (the distributions' top-level modules that came along).
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from pathlib import Path

WATCHED = {
    "os.mkdir": "makes a folder",
    "os.putenv": "sets an environment variable",
    "os.unsetenv": "drops an environment variable",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.symlink": "makes a link",
    "os.fork": "forks",
    "os.posix_spawn": "starts a program",
    "os.system": "starts a program",
    "subprocess.Popen": "starts a program",
    "socket.connect": "connects",
    "socket.bind": "binds a socket",
    "tempfile.mkdtemp": "makes a folder",
    "tempfile.mkstemp": "makes a file",
    "signal.set_wakeup_fd": "takes over signals",
}


def ours(root: str) -> bool:
    """Whether the code that acts is ours, or was called by ours: not another project's module as it is imported."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        # The environment that the gate makes lies inside the tree.
        if name.startswith(root) and "site-packages" not in name:
            return True
        if frame.f_code.co_name == "<module>" and Path(name).is_absolute():
            return False
        frame = frame.f_back
    return False


def main(root: str, names: list[str]) -> None:
    """Import each name and report."""
    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    effects: list[str] = []
    current = ""

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event == "open":
            path, mode, flags = args[0], args[1], args[2]
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and path != os.devnull and ours(root):
                effects.append(f"{current}: opens {path!r} for writing ({mode})")
        elif event in WATCHED and ours(root):
            effects.append(f"{current}: {WATCHED[event]}: {args[:1]!r}")

    before = dict(os.environ)
    threads = set(threading.enumerate())
    there = {name.partition(".")[0] for name in sys.modules}
    sys.addaudithook(hook)
    for name in names:
        current = name
        importlib.import_module(name)
        if dict(os.environ) != before:
            effects.append(f"{name}: changes the environment")
            before = dict(os.environ)
        new = set(threading.enumerate()) - threads
        effects.extend(f"{name}: starts thread {thread.name}" for thread in new)
        threads |= new
    loaded = sorted({name.partition(".")[0] for name in sys.modules} - there)
    print(json.dumps({"effects": effects, "loaded": loaded}))  # noqa: T201 - this is its answer


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
