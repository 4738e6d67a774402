"""Wheels made by hand, for tests that install packages without an index."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["write_wheel"]


def write_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    tag: str = "py3-none-any",
    needs: Sequence[str] = (),
    commands: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
) -> Path:
    """A wheel of one module that says its name; `files` are put in beside it as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-{tag}.whl"
    held = {f"{name}.py": f"def main():\n    print({name!r})\n", **(files or {})}
    title = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    held[f"{facts}/METADATA"] = title + "".join(f"Requires-Dist: {need}\n" for need in needs)
    held[f"{facts}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
    if commands:
        lines = "".join(f"{command} = {target}\n" for command, target in commands.items())
        held[f"{facts}/entry_points.txt"] = f"[console_scripts]\n{lines}"
    held[f"{facts}/RECORD"] = "".join(f"{entry},,\n" for entry in held)
    with zipfile.ZipFile(path, "w") as archive:
        for entry, text in held.items():
            archive.writestr(zipfile.ZipInfo(entry), text)
    return path
