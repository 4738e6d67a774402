"""Making the arms that an experiment names: registered ones, with options or without, texts, and folders."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from harness import plugins
from harness.arm_entries import ArmChoice, ArmEntry, ArmFolderEntry, ArmOptionsEntry
from harness.arm_folder import arm_from_files
from harness.errors import ExperimentError, PluginError, unknown_name
from harness.ports import Arm
from harness.text_arm import TextArm

__all__ = ["MAX_CORPUS_BYTES", "ArmOrigin", "made_arm", "read_corpus", "registered_names"]

MAX_CORPUS_BYTES = 1 << 20
"""The longest corpus that an arm may have, in bytes."""


class ArmOrigin(Protocol):
    """Where the bytes of an experiment's arms are read from."""

    def arm_text(self, entry: ArmEntry) -> bytes:
        """The bytes of an arm of the experiment's own."""
        ...

    def arm_files(self, entry: ArmFolderEntry) -> Mapping[str, bytes]:
        """The bytes of every file of an arm's folder, by path."""
        ...

    def arm_corpus(self, entry: ArmOptionsEntry) -> bytes:
        """The bytes of the file that a registered arm works with."""
        ...


def made_arm(entry: ArmChoice, origin: ArmOrigin) -> Arm:
    """The arm that an experiment names or brings. Raises `PluginError` or `ExperimentError` when it can't be made."""
    if isinstance(entry, str):
        return _registered(entry, {})
    if isinstance(entry, ArmOptionsEntry):
        _more_than_a_name(entry)
        return _registered(entry.name, _options(entry, origin))
    if entry.name in plugins.table("arms"):
        raise ExperimentError(f"arm {entry.name!r}: the name is taken by a registered arm; choose another")
    if isinstance(entry, ArmFolderEntry):
        return arm_from_files(entry.name, origin.arm_files(entry))
    return TextArm(entry.name, origin.arm_text(entry))


def _more_than_a_name(entry: ArmOptionsEntry) -> None:
    """Refuse a table with a name alone that no registered arm has: an arm of the experiment's own may be meant."""
    registered = plugins.table("arms")
    if entry.name in registered or entry.options or entry.corpus is not None:
        return
    raise ExperimentError(
        f"arm {entry.name!r} is not registered and names no text: one of your own is "
        f'{{ name = "{entry.name}", file = "FILE" }}. {unknown_name("arm", entry.name, registered)}'
    )


def _registered(name: str, options: Mapping[str, Any]) -> Arm:
    arm: Arm = plugins.load("arms", name)(**options)
    if arm.name != name:
        raise PluginError(f"arm {name!r} calls itself {arm.name!r}: expected its registered name")
    return arm


def _options(entry: ArmOptionsEntry, origin: ArmOrigin) -> dict[str, Any]:
    """The keyword arguments of a registered arm. Raises `ExperimentError` for one that it does not have."""
    parameters = inspect.signature(plugins.load("arms", entry.name)).parameters
    known = [name for name in parameters if name != "corpus"]
    for name in entry.options:
        if name not in known:
            raise ExperimentError(f"arm {entry.name!r}: options: {unknown_name('option', name, known)}")
    if entry.corpus is None:
        return dict(entry.options)
    if "corpus" not in parameters:
        raise ExperimentError(f"arm {entry.name!r}: corpus is {entry.corpus!r}, and the arm takes none: leave it out")
    return {**entry.options, "corpus": origin.arm_corpus(entry)}


def read_corpus(entry: ArmOptionsEntry, folder: Path) -> bytes:
    """A corpus beside the experiment file. Raises `PluginError` that names the path and what to do."""
    path = folder / str(entry.corpus)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PluginError(
            f"arm {entry.name!r}: its corpus {path} can't be read ({error.strerror}): put the file there, or name "
            f'another, {{ name = "{entry.name}", corpus = "FILE" }}, relative to the experiment file'
        ) from None
    if len(data) > MAX_CORPUS_BYTES:
        raise PluginError(f"arm {entry.name!r}: its corpus {path} has {len(data)} bytes: expected {MAX_CORPUS_BYTES}")
    return data


def registered_names(entries: list[ArmChoice]) -> list[str]:
    """The registered arms among the entries, those with options too."""
    named = (one if isinstance(one, str) else one.name for one in entries if isinstance(one, str | ArmOptionsEntry))
    return list(named)
