"""
The host folder that one workspace is shown parts of, read-only: a file with names that resolve, and the gateway's own
folder. An engine on another machine can't show it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from harness.environment import state_home
from harness.workspaces.docker_owner import owner_gone

__all__ = ["GATEWAY_PART", "HOSTS_FILE", "folder_of", "make_folder", "reap_folders", "remove_folder"]

HOSTS_FILE = "hosts"
GATEWAY_PART = "gateway"
_HOSTS = "127.0.0.1\tlocalhost seat\n::1\tlocalhost ip6-localhost ip6-loopback\n"
_OWNER = ".owner"


def folder_of(name: str) -> str:
    """The path of the folder of workspace `name`."""
    return str(_base() / name)


def make_folder(name: str, owner: str) -> None:
    """
    Make the folder of workspace `name`, whose owner is `owner` by its label.

    Who passes through may do that and no more: names of workspaces can't be listed.
    """
    base = _base()
    for folder in reversed([path for path in (base, *base.parents) if not path.exists()]):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711 if folder == base else 0o755)
    # The owner first: whatever is left by a crash has one.
    (base / f"{name}{_OWNER}").write_text(owner)
    folder = base / name
    for path in (folder, folder / GATEWAY_PART):
        path.mkdir()
        path.chmod(0o711)
    hosts = folder / HOSTS_FILE
    hosts.write_text(_HOSTS)
    hosts.chmod(0o444)


def remove_folder(name: str) -> None:
    """Remove the folder of workspace `name`, if there is one."""
    with suppress(FileNotFoundError):
        shutil.rmtree(_base() / name)
    (_base() / f"{name}{_OWNER}").unlink(missing_ok=True)


def reap_folders(kept: Collection[str]) -> list[str]:
    """Remove the folders whose owner is dead, but for workspaces `kept`; returns the workspaces' names."""
    reaped = []
    for path in sorted(_base().glob(f"*{_OWNER}")):
        name = path.name.removesuffix(_OWNER)
        with suppress(FileNotFoundError):
            if owner_gone(path.read_text(), running=name in kept):
                remove_folder(name)
                reaped.append(name)
    return reaped


def _base() -> Path:
    return state_home() / "docker"
