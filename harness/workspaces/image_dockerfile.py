"""Builds an image from a Dockerfile, on the container engine, and keeps it as one layer like every other image."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from harness import environment
from harness.errors import ImageError
from harness.workspaces.image_layer import unpack
from harness.workspaces.image_rootfs import furnish
from harness.workspaces.images import ImageStore, StoredImage

__all__ = ["build_from_dockerfile"]

_PATIENCE_S = 600


class _Chunks(io.RawIOBase):
    """A stream of byte chunks as a file that can be read once."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def build_from_dockerfile(
    name: str, folder: Path, *, store: ImageStore | None = None, progress: Callable[[str], None] = lambda _line: None
) -> StoredImage:
    """
    Build the Dockerfile in `folder` on the container engine and keep the result as one layer under `name`.

    Its environment, command and working folder are kept; its user and entry point are not, since a workspace has its
    own. Raises `ImageError` when there is no Dockerfile, no engine, or when the build fails.
    """
    import docker
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    store = store if store is not None else ImageStore()
    if not (folder / "Dockerfile").is_file():
        raise ImageError(f"{folder} has no Dockerfile")
    try:
        with closing(docker.APIClient(base_url=environment.docker_host(), version="auto", timeout=_PATIENCE_S)) as api:
            return _docker_build(api, name, folder, store, progress)
    except (DockerException, RequestException) as error:
        raise ImageError(f"the container engine could not build {folder}: {error}") from error


def _docker_build(api: Any, name: str, folder: Path, store: ImageStore, progress: Callable[[str], None]) -> StoredImage:
    built = None
    for event in api.build(path=str(folder), rm=True, forcerm=True, decode=True):
        if "error" in event:
            raise ImageError(f"{folder / 'Dockerfile'} does not build: {event['error']}")
        if line := str(event.get("stream", event.get("status", ""))).strip():
            progress(line)
        built = event.get("aux", {}).get("ID", built)
    if built is None:
        raise ImageError(f"the container engine did not say what it built from {folder / 'Dockerfile'}")
    config = api.inspect_image(built)["Config"]
    kept = {key: config[key] for key in ("Env", "Cmd", "WorkingDir") if config.get(key)}
    container = api.create_container(built, ["true"])["Id"]
    try:
        with store.scratch("layers") as scratch:
            root = Path(scratch) / "root"
            root.mkdir()
            progress("packing the layer")
            unpack(io.BufferedReader(_Chunks(api.export(container))), root)
            furnish(root)
            return store.add(name, root, {"by": "Dockerfile"}, config=kept)
    finally:
        api.remove_container(container, force=True, v=True)
        # What the store keeps is all that is needed of it; one that has a name is somebody's own.
        if not api.inspect_image(built)["RepoTags"]:
            api.remove_image(built)
