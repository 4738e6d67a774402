"""
An arm in a folder: `arm.toml`, the text or the Python class, and whatever else its rendering is made of.

The folder may stand beside an experiment, in Proctor's `arms/`, or in a package of a third party's; it is read once,
whole, and what is used is what was read. A class is run from those bytes and is handed the folder's files: it is its
author's own code, trusted as a plugin is, and it runs where the experiment is frozen and run, never in a workspace.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.briefing import with_code
from harness.canonical import digest_bytes, digest_json
from harness.errors import PluginError
from harness.placebo import Limits
from harness.ports import Arm
from harness.table_faults import explain
from harness.text_arm import TextArm
from harness.views import RoundView
from harness.written import toml_of

__all__ = ["CARD", "ArmCard", "FolderArm", "arm_from_files", "files_of", "folder_arm", "read_arm_folder"]

CARD = "arm.toml"
_MOST_FILES = 64
_MOST_BYTES = 1 << 20
_CLASS = re.compile(r"[A-Za-z_]\w*:[A-Za-z_]\w*")


class ArmCard(BaseModel):
    """An arm's `arm.toml`."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    """The arm's name, which is its folder's too."""
    kind: Literal["text", "packet"]
    """`text`: the text stands before the task in every round. `packet`: a class renders each round."""
    text: str | None = None
    """A text arm's file in the folder."""
    renderer: str | None = None
    """A packet's class, as `module:Class`; the module is a file of the folder."""
    seats: Annotated[list[str], Field(min_length=1)] | None = None
    """The seats that it may run in; left out: all for a text, `oneshot` for a packet."""
    placebo_for: str | None = None
    """The arm that this one is a placebo for; it is then measured against that arm's text."""
    forbidden: list[Annotated[str, Field(min_length=1)]] = []
    """Words that must not be in what is pinned of it, beside those that no arm should use."""
    nonce: bool = False
    """Whether its prompts carry a code whose echo must come back."""
    placebo: Limits = Limits()
    """How near to its treatment a placebo must be, and how far from its words."""

    @model_validator(mode="after")
    def _of_one_kind(self) -> ArmCard:
        wanted, other = ("text", "renderer") if self.kind == "text" else ("renderer", "text")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"a {self.kind} arm needs `{wanted}` and has no `{other}`")
        if self.renderer is not None and not _CLASS.fullmatch(self.renderer):
            raise ValueError(f"`renderer` is {self.renderer!r}: expected `module:Class`, as `packet:Mine`")
        if self.kind == "packet" and self.placebo_for is not None:
            raise ValueError("`placebo_for` is for a text: a packet's placebo is a packet that mirrors it")
        if self.placebo_for is None and "placebo" in self.model_fields_set:
            raise ValueError("[placebo] has limits, and `placebo_for` names no treatment to hold to them")
        if self.placebo_for == self.name:
            raise ValueError(f"`placebo_for` is {self.name!r}, the arm itself: expected its treatment")
        return self


class FolderArm:
    """An arm of a folder: its card, the bytes of every file, and the text or the packet that they make."""

    def __init__(self, card: ArmCard, files: Mapping[str, bytes], inner: Arm) -> None:
        self.card = card
        self.files = dict(files)
        self.name = card.name
        self.seats = frozenset(card.seats) if card.seats is not None else inner.seats
        self.nonce = card.nonce
        self.forbidden = tuple(card.forbidden)
        self.placebo_for = card.placebo_for
        self._inner = inner

    @property
    def inner(self) -> Arm:
        """The text or the packet itself, without what the folder adds to it."""
        return self._inner

    @property
    def content(self) -> bytes:
        """The text's bytes, or what the packet says is pinned of it."""
        return self._inner.content

    def render(self, view: RoundView) -> str:
        """The round's prompt; with a nonce, below the sentence that gives its code."""
        prompt = self._inner.render(view)
        return with_code(view.nonce, prompt) if self.nonce else prompt

    def __getattr__(self, name: str) -> Any:
        """What else a packet says of itself (what it mirrors, say) is said by its folder's arm too."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return f"FolderArm({self.name!r}, {self.card.kind}, {len(self.files)} files)"


def folder_arm(folder: Traversable) -> FolderArm:
    """
    The arm of a folder, for the function that an entry point names: `folder_arm(files("my_arms") / "diet")`.

    Raises `PluginError` for whatever of the folder can't be used.
    """
    return arm_from_files(folder.name, read_arm_folder(folder))


def arm_from_files(name: str, files: Mapping[str, bytes]) -> FolderArm:
    """The arm that the files of the folder `name` make. Raises `PluginError` for whatever of them can't be used."""
    card = _card(name, files)
    if card.kind == "text":
        assert card.text is not None
        inner: Arm = _text(card.name, card.text, files)
    else:
        assert card.renderer is not None
        inner = _packet(card.name, card.renderer, files)
    return FolderArm(card, files, inner)


def files_of(arm: object) -> Mapping[str, bytes] | None:
    """The bytes of every file of an arm that is a folder; None for one that isn't."""
    return arm.files if isinstance(arm, FolderArm) else None


def read_arm_folder(folder: Traversable) -> dict[str, bytes]:
    """
    Every file below `folder` by path. Raises `PluginError` for a folder that isn't there, for links and special files
    (no digest would cover what they lead to), and for more than 64 files or 1 MiB.
    """
    if not folder.is_dir():
        raise PluginError(f"{folder} is no folder: expected one with an {CARD}; `proctor arm new NAME` writes one")
    files: dict[str, bytes] = {}
    for path, file in _walk(folder, ""):
        files[path] = file.read_bytes()
        if len(files) > _MOST_FILES or sum(map(len, files.values())) > _MOST_BYTES:
            raise PluginError(f"{folder}: expected at most {_MOST_FILES} files and {_MOST_BYTES} bytes in an arm")
    return files


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name == "__pycache__":
            continue
        if (isinstance(entry, Path) and entry.is_symlink()) or not (entry.is_dir() or entry.is_file()):
            raise PluginError(f"{entry} is a link or a special file: expected regular files and folders in an arm")
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry


def _card(name: str, files: Mapping[str, bytes]) -> ArmCard:
    where = f"arm {name!r}: {CARD}"
    if CARD not in files:
        raise PluginError(f"{where} is missing: the folder has {_listed(files)}; `proctor arm new NAME` writes one")
    try:
        card = ArmCard.model_validate(toml_of(files[CARD].decode("utf-8")))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PluginError(f"{where} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise PluginError(explain(error, where, ArmCard)) from None
    if card.name != name:
        raise PluginError(f"{where} says name = {card.name!r}, and the folder is called {name!r}: expected the same")
    return card


def _text(name: str, file: str, files: Mapping[str, bytes]) -> TextArm:
    if file not in files:
        raise PluginError(f"arm {name!r}: text = {file!r} is not in its folder, which has {_listed(files)}")
    try:
        arm = TextArm(name, files[file])
    except PluginError as error:
        raise PluginError(f"{error} (read from {file})") from None
    if not files[file].strip():
        raise PluginError(f"arm {name!r}: {file} is blank; for an arm without a text name the registered arm 'plain'")
    return arm


def _packet(name: str, renderer: str, files: Mapping[str, bytes]) -> Arm:
    """Make the packet: its class, run from the bytes that are pinned, with the folder's files."""
    stem, _colon, cls = renderer.partition(":")
    where = f"arm {name!r}: {renderer}"
    if f"{stem}.py" not in files:
        raise PluginError(f"{where}: {stem}.py is not in its folder, which has {_listed(files)}")
    module = _module(where, f"{stem}.py", files)
    maker = getattr(module, cls, None)
    if not callable(maker):
        known = ", ".join(sorted(key for key, value in vars(module).items() if isinstance(value, type))) or "none"
        raise PluginError(f"{where}: {stem}.py has no class {cls!r}; its classes: {known}")
    try:
        made: Any = maker(dict(files))
        content: object = made.content
    except Exception as error:  # whatever a packet's own code raises, the answer is the same: say which one
        raise PluginError(f"{where} can't be made of its folder's files: {type(error).__name__}: {error}") from error
    if not isinstance(content, bytes) or not callable(getattr(made, "render", None)):
        raise PluginError(f"{where} is no packet: expected `content`, the bytes that are pinned, and `render(view)`")
    return _Named(name, made)


class _Named:
    """A folder's packet with the name and the seats that its card leaves it."""

    seats = frozenset({"oneshot"})

    def __init__(self, name: str, packet: Any) -> None:
        self.name = name
        self._packet = packet

    @property
    def content(self) -> bytes:
        """What the packet says is pinned of it."""
        content: bytes = self._packet.content
        return content

    @property
    def render(self) -> Callable[[RoundView], str]:
        """The packet's own, so that what it asks for can be looked at."""
        own: Callable[[RoundView], str] = self._packet.render
        return own

    def __getattr__(self, name: str) -> Any:
        """What else the packet says of itself."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._packet, name)


def _module(where: str, file: str, files: Mapping[str, bytes]) -> ModuleType:
    """Run a module from its bytes, under a name that only these bytes have."""
    digest = digest_json({path: digest_bytes(data) for path, data in files.items()})
    module = ModuleType(f"proctor_arm_{digest[:16]}")
    sys.modules[module.__name__] = module  # dataclasses look their module up by its name
    try:
        exec(compile(files[file], f"<{where}>", "exec"), vars(module))  # noqa: S102 - the arm's own, pinned code
    except Exception as error:
        raise PluginError(f"{where}: {file} does not load: {type(error).__name__}: {error}") from error
    return module


def _listed(files: Mapping[str, bytes]) -> str:
    return ", ".join(sorted(files)[:8]) or "no files"
