"""
The image store: root file systems that this machine built, known by a name and by the digest of their content.

Both backends start from it. A container engine gets an image as an archive, the embedded sandbox as a folder, and the
digest is the same for both, so that a registration made on one machine pins what another one runs.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness import environment
from harness.canonical import canonical_bytes, digest_bytes, digest_json
from harness.errors import ImageError, IntegrityError, unknown_name
from harness.workspaces.image_layer import pack, unpack

__all__ = ["DEFAULT_IMAGE", "KEEPER", "SEAT", "SEATS", "SEAT_PATH", "ImageStore", "StoredImage", "content_digest"]

DEFAULT_IMAGE = "proctor-seat"
"""The image that a workspace has unless the experiment names another."""

KEEPER = 20_000
"""The user that a container's first process runs as: the seat can neither kill it nor read its environment."""

SEAT = 20_001
"""The user that everything of a seat's runs as."""

SEATS = range(SEAT, SEAT + 512)
"""Users that images know, so that cells which run at once can each have one of their own."""

SEAT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def content_digest(*, architecture: str, os_name: str, layers: list[str], config: Mapping[str, Any]) -> str:
    """
    SHA-256 of what an image is: its platform, its layers (SHA-256 of each tar) and what of its configuration decides
    how programs in it run. Names, dates, history and labels have no part in it.
    """
    kept = {
        "Cmd": list(config.get("Cmd") or []),
        "Entrypoint": list(config.get("Entrypoint") or []),
        "Env": list(config.get("Env") or []),
        "User": config.get("User") or "",
        "WorkingDir": config.get("WorkingDir") or "",
    }
    bare = [layer.removeprefix("sha256:") for layer in layers]
    return digest_json({"architecture": architecture, "config": kept, "layers": bare, "os": os_name})


def _seat_config() -> dict[str, Any]:
    return {"Cmd": ["bash"], "Env": [f"PATH={SEAT_PATH}", "LANG=C.UTF-8"], "WorkingDir": "/"}


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredImage:
    """One image of the store. `layer` is the SHA-256 of its one layer's tar; `made` says how it was built."""

    name: str
    architecture: str
    layer: str
    size: int
    os: str = "linux"
    config: Mapping[str, Any] = field(default_factory=_seat_config)
    made: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of the image's content."""
        return content_digest(architecture=self.architecture, os_name=self.os, layers=[self.layer], config=self.config)

    def engine_config(self) -> bytes:
        """The image configuration that a container engine is given: its SHA-256 is the engine's own image id."""
        return canonical_bytes(
            {
                "architecture": self.architecture,
                "config": dict(self.config),
                "created": "1970-01-01T00:00:00Z",
                "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "proctor image build"}],
                "os": self.os,
                "rootfs": {"diff_ids": [f"sha256:{self.layer}"], "type": "layers"},
            }
        )

    @property
    def engine_id(self) -> str:
        """What a container engine calls this image."""
        return f"sha256:{digest_bytes(self.engine_config())}"


class ImageStore:
    """The images below `folder` (by default where the platform keeps such things). Making one touches nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else environment.state_home() / "images"

    def names(self) -> list[str]:
        """The names of all images, sorted."""
        return sorted(path.stem for path in (self.folder / "names").glob("*.json"))

    def get(self, name: str) -> StoredImage:
        """The image called `name`. Raises `ImageError` when there is none."""
        path = self.folder / "names" / f"{_checked(name)}.json"
        try:
            return StoredImage(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            raise ImageError(
                f"{unknown_name('image', name, self.names())} Build it with `proctor image build --name {name}`."
            ) from None
        except (TypeError, ValueError) as error:
            raise IntegrityError(f"{path} is not an image's description: {error}") from error

    def find(self, name_or_digest: str) -> StoredImage | None:
        """The image with this name, or else with this digest, or None."""
        if _NAME.fullmatch(name_or_digest) and (self.folder / "names" / f"{name_or_digest}.json").is_file():
            return self.get(name_or_digest)
        wanted = name_or_digest.removeprefix("sha256:")
        return next((image for image in map(self.get, self.names()) if image.digest == wanted), None)

    def digest(self, name: str) -> str:
        """SHA-256 of the content of image `name`. Raises `ImageError` when there is none."""
        return self.get(name).digest

    def layer(self, image: StoredImage) -> Path:
        """The tar of the image's layer. Raises `ImageError` when the file is gone."""
        path = self.folder / "layers" / f"{image.layer}.tar"
        if not path.is_file():
            raise ImageError(
                f"image {image.name!r} has lost its layer {path}: run `proctor image build --name {image.name}`"
            )
        return path

    def rootfs(self, name: str) -> Path:
        """
        A folder with the root file system of image `name`, unpacked once and readable by every user.

        Raises `ImageError` when there is no such image, `IntegrityError` when its layer is not what it was.
        """
        image = self.get(name)
        target = self.folder / "rootfs" / image.layer
        if not target.is_dir():
            self._check_layer(image)
            with self.scratch("rootfs") as scratch, self.layer(image).open("rb") as source:
                root = Path(scratch) / "root"
                root.mkdir()
                unpack(source, root)
                root.chmod(0o755)
                _move_into_place(root, target)
        return target

    def add(
        self, name: str, folder: Path, made: Mapping[str, str], *, config: Mapping[str, Any] | None = None
    ) -> StoredImage:
        """
        Put the root file system in `folder` into the store as `name`, in place of what had that name before.

        `config` is an OCI image configuration (Env, Cmd, WorkingDir); None is what every image of ours has.
        """
        _checked(name)
        with self.scratch("layers") as scratch:
            tar = Path(scratch) / "layer.tar"
            with tar.open("wb") as sink:
                layer = pack(folder, sink)
            tar.chmod(0o644)
            size = tar.stat().st_size
            tar.replace(self.folder / "layers" / f"{layer}.tar")
        image = StoredImage(
            name=name,
            architecture=_architecture(),
            layer=layer,
            size=size,
            config=dict(config) if config is not None else _seat_config(),
            made=dict(made),
        )
        self._name(image)
        return image

    def remove(self, name: str) -> None:
        """Forget image `name`, and its files unless another image has the same."""
        image = self.get(name)
        (self.folder / "names" / f"{name}.json").unlink()
        if all(self.get(other).layer != image.layer for other in self.names()):
            (self.folder / "layers" / f"{image.layer}.tar").unlink(missing_ok=True)
            shutil.rmtree(self.folder / "rootfs" / image.layer, ignore_errors=True)

    def check(self, name: str) -> None:
        """Raise `IntegrityError` unless the layer of `name`, and its folder if unpacked, still have their digest."""
        image = self.get(name)
        self._check_layer(image)
        root = self.folder / "rootfs" / image.layer
        if root.is_dir() and (found := pack(root, None)) != image.layer:
            raise IntegrityError(
                f"{root} was changed: it packs to {found[:12]}, expected {image.layer[:12]}. Delete it."
            )

    def _check_layer(self, image: StoredImage) -> None:
        path = self.layer(image)
        with path.open("rb") as source:
            found = hashlib.file_digest(source, "sha256").hexdigest()
        if found != image.layer:
            raise IntegrityError(f"{path} was changed: SHA-256 is {found[:12]}, expected {image.layer[:12]}")

    def _name(self, image: StoredImage) -> None:
        names = self.folder / "names"
        _make_folder(names)
        with self.scratch("names") as scratch:
            draft = Path(scratch) / "draft"
            draft.write_bytes(canonical_bytes(asdict(image)))
            draft.chmod(0o644)
            draft.replace(names / f"{image.name}.json")

    def scratch(self, part: str) -> tempfile.TemporaryDirectory[str]:
        """A folder for work in progress beside what it will become, gone when its `with` ends."""
        _make_folder(self.folder / part)
        return tempfile.TemporaryDirectory(prefix=".new-", dir=self.folder / part)


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ImageError(
            f"image name {name!r} is refused: expected 1 to 64 of a-z, 0-9, '.', '_' and '-', "
            "the first and the last a letter or digit"
        )
    return name


def _architecture() -> str:
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def _make_folder(folder: Path) -> None:
    """Make `folder` and what is missing above it, passable for the unprivileged user that a sandbox runs as."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)


def _move_into_place(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        # Another process unpacked the same layer in the meantime: one is as good as the other.
