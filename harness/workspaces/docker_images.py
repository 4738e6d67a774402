"""Brings an image of the store into a container engine, and says what an engine's image is made of."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import ImageError, WorkspaceError
from harness.workspaces.docker_engine import Engine, NotFoundError
from harness.workspaces.images import ImageStore, StoredImage, content_digest

__all__ = ["EngineImage", "archive", "engine_image"]

_CHUNK = 1 << 20


class EngineImage:
    """An image that the engine has: the engine's own id for it, and the digest of its content."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.id = str(facts["Id"])
        self.digest = content_digest(
            architecture=facts["Architecture"],
            os_name=facts["Os"],
            layers=list(facts["RootFS"].get("Layers") or []),
            config=facts.get("Config") or {},
        )


async def engine_image(engine: Engine, store: ImageStore, name: str) -> EngineImage:
    """
    The image called `name`: the store's, loaded into the engine if it isn't there yet, or else the engine's own.

    Raises `ImageError` when neither has it, and when it declares volumes: each would be a place on the engine's disk
    that a seat could fill.
    """
    stored = store.find(name)
    if stored is None:
        try:
            facts = await engine.call(lambda api: api.inspect_image(name))
            _check_volumes(name, facts)
            return EngineImage(facts)
        except NotFoundError:
            raise ImageError(
                f"there is no image {name!r}, neither in {store.folder} nor in the container engine. In the store: "
                f"{', '.join(store.names()) or 'none'}. Build it with `proctor image build --name {name}`."
            ) from None
    try:
        found = EngineImage(await engine.call(lambda api: api.inspect_image(stored.engine_id)))
    except NotFoundError:
        found = await _load(engine, store, stored)
    if found.digest != stored.digest:
        raise WorkspaceError(
            f"the container engine's image {found.id} is not the store's {name!r}: its digest is {found.digest[:12]}, "
            f"expected {stored.digest[:12]}. Remove it from the engine (`docker image rm`)."
        )
    return found


def _check_volumes(name: str, facts: Mapping[str, Any]) -> None:
    if volumes := sorted((facts.get("Config") or {}).get("Volumes") or {}):
        raise ImageError(
            f"image {name!r} declares volumes ({', '.join(volumes)}), which the engine would make writable and without "
            f"limits: put it into the store with a Dockerfile `FROM {name}` and `proctor image build --from dockerfile`"
        )


async def _load(engine: Engine, store: ImageStore, image: StoredImage) -> EngineImage:
    layer = store.layer(image)
    await engine.call(lambda api: _drain(api.load_image(archive(image, layer))))
    return EngineImage(await engine.call(lambda api: api.inspect_image(f"{image.name}:latest")))


def _drain(events: Iterator[Mapping[str, Any]]) -> None:
    for event in events:
        if "error" in event:
            raise WorkspaceError(f"the container engine did not load the image: {event['error']}")


def archive(image: StoredImage, layer: Path) -> Iterator[bytes]:
    """The image as `docker load` reads it, piece by piece: the layer is never held as a whole."""
    config_name = f"{image.engine_id.removeprefix('sha256:')}.json"
    layer_name = f"{image.layer}/layer.tar"
    manifest = [{"Config": config_name, "Layers": [layer_name], "RepoTags": [f"{image.name}:latest"]}]
    yield from _member(config_name, image.engine_config())
    yield from _member("manifest.json", json.dumps(manifest, sort_keys=True).encode())
    yield _head(layer_name, layer.stat().st_size)
    with layer.open("rb") as source:
        while chunk := source.read(_CHUNK):
            yield chunk
    yield _padding(layer.stat().st_size)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def _member(name: str, data: bytes) -> Iterator[bytes]:
    yield _head(name, len(data))
    yield data
    yield _padding(len(data))


def _head(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.GNU_FORMAT)


def _padding(size: int) -> bytes:
    return b"\0" * (-size % tarfile.BLOCKSIZE)
