"""Getting what an experiment needs onto this machine: the image and the model, where they are missing."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from cells.backends import candidates
from harness import plugins
from harness.errors import Blamed, ImageError, ProctorError, UsageError
from harness.experiment import Experiment, ModelEntry
from harness.messages import ModelSpec
from harness.ports import WorkspaceBackend

__all__ = ["build_image", "fetch_model", "prepare"]

Say = Callable[[str], None]


async def prepare(experiment: Experiment, *, say: Say) -> None:
    """
    Build the plain image if no usable backend has it, and fetch an embedded model if none of a model's choices answers.

    Raises `UsageError` when no backend can be used, or an image of another name or a model can't be got, saying what to
    do.
    """
    await _prepare_image(experiment, say)
    for entry in experiment.models:
        await _prepare_model(entry, say)


async def _prepare_image(experiment: Experiment, say: Say) -> None:
    image, wanted = experiment.workspace.image, experiment.workspace.backend
    reasons = []
    for name in candidates(wanted):
        backend = plugins.load("workspaces", name)()
        try:
            await backend.engine()
        except Blamed as error:
            reasons.append(f"{name}: {error}")
            say(f"workspace {name}: not used ({error})")
            continue
        try:
            digest = await backend.image_digest(image)
        except ImageError:
            _check_plain(image)
            await anyio.to_thread.run_sync(build_image, image, say)
            digest = await backend.image_digest(image)
        say(f"workspace {name}: image {image} ({digest[:12]})")
        await _judging_image_here(backend, experiment.referee.image)
        return
    raise UsageError(
        "no workspace backend can be used:\n  " + "\n  ".join(reasons) + "\nInstall and start Docker, or install "
        "bubblewrap (Debian: apt-get install bubblewrap), then try again."
    )


async def _judging_image_here(backend: WorkspaceBackend, image: str) -> None:
    if image:
        try:
            await backend.image_digest(image)
        except ImageError:
            _check_plain(image)
            raise


def _check_plain(image: str) -> None:
    """What is in an image of another name is not known here: a plain one in its place would not have it."""
    from harness.workspaces.images import DEFAULT_IMAGE

    if image != DEFAULT_IMAGE:
        raise UsageError(
            f"image {image!r} is not here, and what it holds is not known here: build it with `proctor image build "
            f"--name {image}` and what belongs in it (--package, --python-package, --from dockerfile), then try again"
        )


def build_image(image: str, say: Say) -> None:
    """Build an image: from Debian's packages where that can be done here, else from the files of this host."""
    from harness.workspaces.image_build import build_from_debian
    from harness.workspaces.image_host import build_from_host

    say(f"image {image}: building it from Debian's packages (a minute or two, once)")
    try:
        build_from_debian(image, progress=_sparse(say))
    except ImageError as error:
        say(f"image {image}: not from Debian's packages ({error}); copying this host's Python instead")
        build_from_host(image, progress=_sparse(say))


def _sparse(say: Say, every: int = 40) -> Callable[[str], None]:
    """Pass on one line in `every`, so that a build shows that it goes on and no more."""
    count = 0

    def line(text: str) -> None:
        nonlocal count
        count += 1
        if count % every == 1:
            say(f"  {text.strip()[:100]}")

    return line


async def _prepare_model(entry: ModelEntry, say: Say) -> None:
    from harness.models.catalogue import catalogue

    reasons = []
    for way in entry.ways():
        spec = ModelSpec(name=entry.name, **way.model_dump())
        try:
            identity = await plugins.load("models", way.provider)().identify(spec)
        except ProctorError as error:
            reasons.append(f"{way.provider} {way.model}: {error}")
            if way.provider == "local" and way.model in catalogue():
                await anyio.to_thread.run_sync(fetch_model, way.model, say)
                return
            continue
        say(f"model {entry.name}: {way.provider} serves {identity.served}")
        return
    raise UsageError(f"model {entry.name!r} can't be reached:\n  " + "\n  ".join(reasons))


def fetch_model(name: str, say: Say) -> None:
    """Fetch a catalogue model, saying from where, how large it is and how far it has come."""
    from harness.models.catalogue import entry
    from harness.models.fetch import fetch, sources

    wanted = entry(name)
    say(
        f"model {name}: fetching {wanted.bytes / 1e6:.0f} MB ({wanted.licence}), looking in: {'; '.join(sources(name))}"
    )
    shown = -1

    def progress(what: str, done: int, total: int) -> None:
        nonlocal shown
        tenth = 10 * done // total if total else 0
        if tenth != shown:
            shown = tenth
            say(f"  {what}: {done / 1e6:.0f} of {total / 1e6:.0f} MB")

    path = fetch(name, progress)
    say(f"model {name}: {path}")
