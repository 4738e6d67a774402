"""Commands about the images that workspaces start from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cells.cli.door import print_json

if TYPE_CHECKING:
    from harness.workspaces.images import StoredImage

__all__ = ["image_build", "image_list", "image_lock", "image_remove"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Name = Annotated[str, typer.Option("--name", help="What experiments call the image.")]
Source = Annotated[str, typer.Option("--from", help="debian, host (files of this machine) or dockerfile.")]
Packages = Annotated[list[str] | None, typer.Option("--package", help="A Debian package more; may be repeated.")]
Suite = Annotated[str, typer.Option("--suite", help="The Debian release.")]
Mirror = Annotated[str, typer.Option("--mirror", help="Debian archive; default: this machine's own.")]
Folder = Annotated[Path | None, typer.Option("--folder", help="The folder of the Dockerfile.")]
PythonPackage = Annotated[
    list[str] | None, typer.Option("--python-package", help="A Python package more, with its commands.")
]
PythonLock = Annotated[
    Path | None, typer.Option("--python-lock", help="Their versions and hashes, from `proctor image lock`.")
]
PythonWithout = Annotated[
    list[str] | None, typer.Option("--python-without", help="A dependency of theirs that is left out.")
]


def image_build(
    name: Name = "proctor-seat",
    *,
    source: Source = "debian",
    package: Packages = None,
    suite: Suite = "bookworm",
    mirror: Mirror = "",
    folder: Folder = None,
    python_package: PythonPackage = None,
    python_lock: PythonLock = None,
    python_without: PythonWithout = None,
) -> None:
    """Build an image without a registry, or from a Dockerfile where one can be reached."""
    from harness.errors import UsageError
    from harness.workspaces.image_build import DEFAULT_PACKAGES, build_from_debian
    from harness.workspaces.image_host import build_from_host
    from harness.workspaces.image_python import PythonPackages

    python = PythonPackages.of(python_package or (), lock=python_lock, without=python_without or ())
    if source == "debian":
        packages = (*DEFAULT_PACKAGES, *(package or ()))
        image = build_from_debian(
            name, packages=packages, suite=suite, mirror=mirror or None, python=python, progress=_note
        )
    elif source == "host":
        image = build_from_host(name, python=python, progress=_note)
    elif source != "dockerfile":
        raise UsageError(f"--from {source!r}: expected debian, host or dockerfile")
    elif python.wishes:
        raise UsageError("--python-package goes with --from debian or host; a Dockerfile has its own `pip install`")
    else:
        image = _from_dockerfile(name, folder)
    typer.echo(f"{name} {image.digest}")


def _from_dockerfile(name: str, folder: Path | None) -> StoredImage:
    from harness.errors import UsageError
    from harness.workspaces.image_dockerfile import build_from_dockerfile

    if folder is None:
        raise UsageError("--from dockerfile needs --folder DIR, the folder that holds the Dockerfile")
    return build_from_dockerfile(name, folder, progress=_note)


def _note(text: str) -> None:
    typer.echo(text, err=True)


def image_list(*, as_json: AsJson = False) -> None:
    """List the images of this machine's store."""
    from harness.workspaces.images import ImageStore

    store = ImageStore()
    rows = [{"name": name, "digest": store.digest(name)} for name in store.names()]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        typer.echo(f"{row['name']} {row['digest']}")
    if not rows:
        typer.echo("no image yet: proctor image build")


def image_lock(name: Annotated[str, typer.Argument(help="The image's name.")]) -> None:
    """Print the Python packages of an image with their hashes, which --python-lock builds it from again."""
    from harness.errors import ImageError
    from harness.workspaces.images import ImageStore

    lock = ImageStore().get(name).made.get("python_lock")
    if lock is None:
        raise ImageError(f"image {name!r} was built without --python-package: it has no lock")
    typer.echo(lock, nl=False)


def image_remove(name: Annotated[str, typer.Argument(help="The image's name.")]) -> None:
    """Remove an image from the store."""
    from harness.workspaces.images import ImageStore

    ImageStore().remove(name)
    typer.echo(f"removed {name}")
