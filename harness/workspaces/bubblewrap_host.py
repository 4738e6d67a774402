"""What the embedded sandbox rests on: bwrap itself, the kernel, and the host's own Python where that is the image."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from harness import environment
from harness.canonical import digest_bytes, digest_json
from harness.errors import ImageError, WorkspaceError

__all__ = ["engine_facts", "find_bwrap", "host_digest"]

_PYTHON = Path("/usr/bin/python3")
_TRY = (
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    # Not the whole of /: a mount of somebody else's that goes while bwrap makes it read-only would be our failure.
    *("--ro-bind", "/usr", "/usr"),
    *(word for name in ("bin", "lib", "lib32", "lib64") for word in ("--ro-bind-try", f"/{name}", f"/{name}")),
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--",
    "/bin/true",
)


def find_bwrap() -> str:
    """The path of bwrap. Raises `WorkspaceError` when there is none."""
    found = shutil.which("bwrap", path=environment.terminal_env()["PATH"])
    if found is None:
        raise WorkspaceError(
            "there is no bwrap on this machine: install the package bubblewrap, 0.8 or later, or use docker"
        )
    return found


def engine_facts(user: int | None) -> Mapping[str, str]:
    """
    Versions of what a sandbox here rests on, after one has been made as `user` (None is who we are).

    Raises `WorkspaceError` when none can be made.
    """
    bwrap = find_bwrap()
    version = subprocess.run([bwrap, "--version"], capture_output=True, text=True, check=False).stdout.split()
    tried = subprocess.run(
        [bwrap, *_TRY],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        env={"PATH": "/usr/bin:/bin"},
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    if tried.returncode != 0:
        raise WorkspaceError(
            f"bwrap can't make a sandbox on this machine: {tried.stderr.strip()[:300]!r}. User namespaces must be "
            "allowed (sysctls user.max_user_namespaces, kernel.unprivileged_userns_clone, AppArmor's bwrap profile), "
            "and /proc mountable: not every container lets that be. Or use the docker backend."
        )
    return {
        "engine": "bubblewrap",
        "version": version[-1] if version else "unknown",
        "kernel": platform.release(),
        "machine": platform.machine(),
        "root": "no" if user is None else "yes",
    }


@cache
def host_digest() -> str:
    """SHA-256 over the version and the bytes of the host's `/usr/bin/python3`. Raises `ImageError` without one."""
    if not _PYTHON.exists():
        raise ImageError(f"this host has no {_PYTHON}, so it can't be an image: build one with `proctor image build`")
    said = subprocess.run(
        [str(_PYTHON), "-I", "-S", "-c", "import sys; print(sys.version)"], capture_output=True, check=True
    )
    return digest_json(
        {"image": "host", "python": digest_bytes(_PYTHON.read_bytes()), "version": said.stdout.decode().strip()}
    )
