"""A content-addressed store: a blob's name is the SHA-256 of its bytes, so it can be checked but never changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.canonical import Json, canonical_bytes, digest_bytes
from harness.clock import fresh_token
from harness.errors import IntegrityError
from harness.tree import File, Tree

__all__ = ["BlobStore"]


@dataclass(frozen=True, slots=True)
class BlobStore:
    """The folder `root`; `ab/cdef...` holds the blob whose SHA-256 is `abcdef...`."""

    root: Path

    def _path(self, digest: str) -> Path:
        return self.root / digest[:2] / digest[2:]

    def put(self, data: bytes) -> str:
        """Keep `data` and return its SHA-256. The bytes are on the disk before this returns."""
        digest = digest_bytes(data)
        path = self._path(digest)
        if path.exists():
            return digest
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.parent / f".{fresh_token(8)}.new"
        with scratch.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of a blob. Raises `IntegrityError` if it is missing or not what its name says."""
        try:
            data = self._path(digest).read_bytes()
        except FileNotFoundError:
            raise IntegrityError(f"blob {digest} is missing from {self.root}") from None
        if digest_bytes(data) != digest:
            raise IntegrityError(
                f"blob {digest} in {self.root} is damaged: its bytes have SHA-256 {digest_bytes(data)}"
            )
        return data

    def put_json(self, value: Json) -> str:
        """Keep the canonical bytes of `value`."""
        return self.put(canonical_bytes(value))

    def put_tree(self, tree: Tree) -> str:
        """Keep every file of a tree and its manifest; the manifest's digest is the tree's digest."""
        for path in tree:
            self.put(tree[path])
        return self.put_json(tree.manifest())

    def get_tree(self, digest: str) -> Tree:
        """The tree whose manifest is the blob `digest`, every file checked."""
        import json

        manifest = json.loads(self.get(digest))
        return Tree(
            {path: File(data=self.get(row["sha256"]), executable=row["executable"]) for path, row in manifest.items()}
        )

    def __iter__(self) -> Iterator[str]:
        for folder in sorted(self.root.glob("??")):
            yield from (folder.name + path.name for path in sorted(folder.iterdir()) if not path.name.startswith("."))
