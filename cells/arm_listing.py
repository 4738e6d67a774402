"""The arms that are at hand: the registered ones, and those in folders; and an arm found by name, folder or file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cells.arm_making import made_arm
from cells.arm_packets import check_packet
from cells.fire_rates import fire_lines, fire_rate
from cells.parts import SourceOrigin
from cells.pools.candidates import read_pool
from harness import plugins
from harness.arm_acceptance import check_name, check_placebo
from harness.arm_check import ArmFinding, check_arm
from harness.arm_folder import CARD, FolderArm, folder_arm
from harness.briefing import wants_echo
from harness.canonical import digest_bytes
from harness.errors import UsageError, unknown_name
from harness.experiment import load_experiment
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


def checked(name: str, *, experiment: Path | None = None, pool: Path | None = None) -> list[ArmFinding]:
    """
    All findings about the arm `name`: as the experiment file `experiment` makes it, if one is given; else a folder with
    an `arm.toml`, a text file, or a registered arm. A placebo's treatment is looked for in the experiment, or beside
    its folder, first. With `pool`, on how many of its candidates the arm's controller fires. Raises `UsageError` when
    there is no such arm, it can't be made, or it has no controller that a pool could be tried on.
    """
    arm, beside = _found(name) if experiment is None else _of_experiment(name, experiment)
    findings = [*check_arm(arm), *check_placebo(arm, beside), *check_packet(arm, beside)]
    if experiment is None:
        findings += check_name(arm)
    if pool is not None:
        findings.append(_fires(arm, pool))
    order = ("error", "warning", "note")
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _found(name: str) -> tuple[Arm, Mapping[str, Arm]]:
    """The arm that a name stands for, and the treatment beside its folder."""
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
    return arm, beside


def _of_experiment(name: str, place: Path) -> tuple[Arm, Mapping[str, Arm]]:
    """The arm of an experiment, made as it says, and its other arms."""
    source = (place / "experiment.toml" if place.is_dir() else place).resolve()
    entries = {one if isinstance(one, str) else one.name: one for one in load_experiment(source).arms}
    if name not in entries:
        raise UsageError(f"{source}: {unknown_name('arm', name, entries)}")
    arms = {known: made_arm(entry, SourceOrigin(source.parent)) for known, entry in entries.items()}
    return arms[name], arms


def _fires(arm: Arm, file: Path) -> ArmFinding:
    """On how many of a pool's candidates the arm's controller fires; a warning where it is none."""
    pool = read_pool(file)
    rate = fire_rate(arm, pool, pool.lines)
    if rate is None:
        raise UsageError(f"arm {arm.name!r} has no controller: leave out --pool, or name an arm that has one")
    detail = ". ".join(line.strip() for line in fire_lines([rate.to_json()]))
    return ArmFinding(rule="fires", level="note" if rate.fires else "warning", detail=detail)
