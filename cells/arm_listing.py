"""The arms that are at hand: the registered ones, and those in folders; and an arm found by name, folder or file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import plugins
from harness.arm_acceptance import check_name, check_placebo
from harness.arm_check import ArmFinding, check_arm
from harness.arm_folder import CARD, FolderArm, folder_arm
from harness.briefing import wants_echo
from harness.canonical import digest_bytes
from harness.errors import UsageError, unknown_name
from harness.ports import Arm
from harness.text_arm import load_text_arm

__all__ = ["checked", "listed"]


def listed(folder: Path | None) -> list[dict[str, Any]]:
    """A row for every registered arm, and for every arm folder directly below `folder`."""
    rows = [
        _row(plugins.load("arms", name)(), f"{info.distribution} {info.version}")
        for name, info in plugins.table("arms").items()
    ]
    if folder is not None:
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder: expected one that holds arm folders")
        rows += [_row(arm, str(place)) for place, arm in _folders(folder)]
    return rows


def _row(arm: Arm, origin: str) -> dict[str, Any]:
    return {
        "name": arm.name,
        "sha256": digest_bytes(arm.content),
        "bytes": len(arm.content),
        "seats": sorted(arm.seats),
        "distribution": origin,
        "placebo_for": getattr(arm, "placebo_for", None),
        "nonce": wants_echo(arm),
    }


def _folders(folder: Path) -> Iterator[tuple[Path, FolderArm]]:
    for card in sorted(folder.glob(f"*/{CARD}")):
        yield card.parent, folder_arm(card.parent)


def checked(name: str) -> list[ArmFinding]:
    """
    All findings about the arm `name`: a folder with an `arm.toml`, a text file, or a registered arm. A placebo's
    treatment is looked for beside its folder first. Raises `UsageError` when there is no such arm, or it can't be made.
    """
    path = Path(name)
    beside: Mapping[str, Arm] = {}
    if path.is_dir():
        arm: Arm = folder_arm(path.resolve())
        wanted = getattr(arm, "placebo_for", None)
        treatment = path.resolve().parent / str(wanted)
        if wanted is not None and (treatment / CARD).is_file():
            beside = {wanted: folder_arm(treatment)}
    elif path.is_file():
        arm = load_text_arm(path.stem, path)
    elif name in plugins.table("arms"):
        arm = plugins.load("arms", name)()
    else:
        known = unknown_name("arm", name, plugins.table("arms"))
        raise UsageError(f"{known} Nor is there a folder or file {name!r}; `proctor arm new` writes a folder")
    placebo = check_placebo(arm, beside)
    findings = [*check_name(arm), *check_arm(arm), *placebo]
    order = ("error", "warning", "note")
    return sorted(findings, key=lambda finding: order.index(finding.level))
