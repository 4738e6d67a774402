"""What is running, compared with what was asked for: an accepted option is not yet one that was carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fences.policy import FencePolicy
from fences.rows import RUNNING, ProbeRow
from harness.errors import FenceError
from harness.views import Finding
from harness.walls import GATEWAY_FOLDER, GATEWAY_SOURCE, Namespace, Walls

__all__ = ["RunningFact", "check_running", "compare_running", "running_rows"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningFact:
    """
    One fact about a running workspace: what was asked, what the engine says of it, and whether that agrees. None is an
    engine that does not say, which confirms nothing.
    """

    name: str
    asked: str
    running: str
    agrees: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Check:
    """A fact by the key that a backend reports it under, and what the walls ask of it."""

    key: str
    asked: Callable[[Walls], Any]


def _mounts(walls: Walls) -> list[dict[str, Any]]:
    """What is shown of the host: what the walls name, and with the gateway its own folder, read-only."""
    shown = [{"source": item.source, "target": item.target, "read_only": item.read_only} for item in walls.mounts]
    if walls.network == "gateway":
        shown.append({"source": GATEWAY_SOURCE, "target": GATEWAY_FOLDER, "read_only": True})
    return shown


def _namespace(name: Namespace) -> _Check:
    return _Check(key=f"{name}_mode", asked=lambda walls: "host" if name in walls.host_namespaces else "private")


_CHECKS = (
    _Check(key="network_mode", asked=lambda walls: walls.network),
    _Check(key="network_disabled", asked=lambda walls: walls.network in ("none", "gateway")),
    _Check(key="privileged", asked=lambda _: False),
    _Check(key="cap_add", asked=lambda walls: sorted(walls.capabilities)),
    _Check(key="cap_drop", asked=lambda walls: [] if walls.keep_capabilities else ["ALL"]),
    _Check(key="no_new_privileges", asked=lambda walls: not walls.new_privileges),
    _Check(key="seccomp", asked=lambda walls: walls.system_calls in ("listed", "traced")),
    _Check(key="read_only_root", asked=lambda walls: walls.read_only_root),
    _Check(key="mounts", asked=_mounts),
    _Check(key="devices", asked=lambda _: []),
    _namespace("cgroup"),
    _namespace("ipc"),
    _namespace("pid"),
    _namespace("uts"),
    _Check(key="pids_limit", asked=lambda walls: walls.caps.pids),
    _Check(key="memory_bytes", asked=lambda walls: walls.caps.memory_bytes),
    _Check(key="memory_and_swap_bytes", asked=lambda walls: walls.caps.memory_bytes),
    _Check(key="nano_cpus", asked=lambda walls: round(walls.caps.cpus * 1e9)),
    _Check(key="shm_bytes", asked=lambda walls: walls.caps.shm_bytes),
    _Check(key="file_bytes", asked=lambda walls: walls.caps.file_bytes),
    _Check(key="core_bytes", asked=lambda walls: walls.caps.core_bytes),
    _Check(key="open_files", asked=lambda walls: walls.caps.open_files),
)


def compare_running(walls: Walls, facts: Mapping[str, Any]) -> tuple[RunningFact, ...]:
    """Every fact that a fence rests on; one that `facts` (a workspace's own) does not have is unconfirmed."""
    found = [_compared(check.key, check.asked(walls), facts) for check in _CHECKS]
    return (*found, _user(walls, facts), _keeper(walls, facts))


def _compared(key: str, asked: Any, facts: Mapping[str, Any]) -> RunningFact:
    if key not in facts or facts[key] is None:
        return RunningFact(name=key, asked=str(asked), running="not told", agrees=None)
    return RunningFact(name=key, asked=str(asked), running=str(facts[key]), agrees=_same(asked, facts[key]))


def _same(asked: Any, told: Any) -> bool:
    """Whether two values are the same; the order of a list (of mounts, say) is the engine's own."""
    if isinstance(asked, list) and isinstance(told, list):
        return sorted(map(str, asked)) == sorted(map(str, told))
    return bool(told == asked)


def _keeper(walls: Walls, facts: Mapping[str, Any]) -> RunningFact:
    """Whether the first process of the workspace is run as another user than the seat."""
    asked = "another user than the seat" if walls.keeper_apart else "the seat's own user"
    keeper, seat = facts.get("user"), facts.get("exec_user")
    if keeper is None or seat is None:
        return RunningFact(name="keeper_apart", asked=asked, running="not told", agrees=None)
    apart = str(keeper).partition(":")[0] != str(seat).partition(":")[0]
    return RunningFact(
        name="keeper_apart", asked=asked, running=f"{keeper}, the seat {seat}", agrees=apart == walls.keeper_apart
    )


def _user(walls: Walls, facts: Mapping[str, Any]) -> RunningFact:
    """Which user it is stays the backend's own choice; that it is root, or is not, is the fence's."""
    asked = "root" if walls.run_as_root else "a user that is not root"
    user = facts.get("exec_user")
    if user is None:
        return RunningFact(name="exec_user", asked=asked, running="not told", agrees=None)
    is_root = str(user).partition(":")[0] in {"", "0", "root"}
    return RunningFact(name="exec_user", asked=asked, running=str(user), agrees=is_root == walls.run_as_root)


def check_running(policy: FencePolicy, walls: Walls, facts: Mapping[str, Any]) -> tuple[RunningFact, ...]:
    """
    The facts of a workspace that runs behind `walls`. Raises `FenceError` that names every one that is not as asked,
    and every one that the backend does not tell though the policy requires it (`probe:running-NAME`). Others that it
    does not tell are returned as unconfirmed.
    """
    found = compare_running(walls, facts)
    wrong = [_evidence(fact) for fact in found if _is_wrong(fact, policy)]
    if wrong:
        raise FenceError("the workspace is not what the fence asks for: " + "; ".join(wrong))
    return found


def _is_wrong(fact: RunningFact, policy: FencePolicy) -> bool:
    return fact.agrees is False or (fact.agrees is None and _row_name(fact) in policy.measured)


def _row_name(fact: RunningFact) -> str:
    return RUNNING + fact.name.replace("_", "-")


def running_rows(facts: Iterable[RunningFact]) -> tuple[ProbeRow, ...]:
    """The facts as rows of the probe table: SERVED as asked, DENIED otherwise, INCONCLUSIVE where it is not told."""
    return tuple(
        ProbeRow.of(
            probe=_row_name(fact),
            language="engine",
            kind="running",
            expected=[Finding.SERVED],
            up=(_finding(fact), _evidence(fact)),
        )
        for fact in facts
    )


def _finding(fact: RunningFact) -> Finding:
    if fact.agrees is None:
        return Finding.INCONCLUSIVE
    return Finding.SERVED if fact.agrees else Finding.DENIED


def _evidence(fact: RunningFact) -> str:
    said = f"{fact.name}: asked for {fact.asked}, running with {fact.running}"
    # A seat's user is its cell's own: what agrees is told in the words of what was asked, which are every run's.
    return f"{fact.name}: {fact.asked}" if fact.agrees else said
