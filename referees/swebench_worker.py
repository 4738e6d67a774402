"""
The program that has the `swebench` package run and grade one instance, in a process and a folder of its own.

It reads one order from its input and writes one answer. The package is used as it was released. Three modules that it
imports and that neither running nor grading calls are replaced: those for data sets and for its cloud, whose
dependencies are half a gigabyte, and one that would read a `.env` file into the environment. Before it cleans up, a
look is taken whether the container is still there: one that was killed leaves a log like that of failed tests. The
client that the package gets is the engine's own, but for what a container may be: one image by its id, no network, few
capabilities.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import sys
import types
from pathlib import Path
from typing import Any

__all__ = ["Client", "Containers", "Images", "graded", "main", "prepared", "ran", "swept"]

_REPLACED = {
    "datasets": ("Dataset", "load_dataset", "load_from_disk"),
    "dotenv": ("load_dotenv",),
    "swebench.harness.modal_eval": ("run_instances_modal", "validate_modal_credentials"),
}
_IF_MISSING = {"tqdm": ("tqdm",), "unidiff": ("PatchSet",), "yaml": ("safe_load",)}
_CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"]
"""What package managers and test runners need as a root of their own; no more than the engine's default set."""
_ROOM_BYTES = 64 << 20
"""Bytes on the engine's disk without which a failed run may be the disk's doing."""
_TOLD = 64 << 10
"""Characters of the package's own log that are told, from the end."""


def _nothing(*_: Any, **__: Any) -> None:
    """What a replaced name does."""


def prepared() -> None:
    """Put the replacements where the package will look for them."""
    missing = {name: names for name, names in _IF_MISSING.items() if importlib.util.find_spec(name) is None}
    for name, names in (_REPLACED | missing).items():
        module = types.ModuleType(name)
        module.__dict__.update(dict.fromkeys(names, _nothing))
        sys.modules[name] = module


class Images:
    """The engine's images, of which none is ever pulled, and one is meant whatever is asked for."""

    def __init__(self, images: Any, image_id: str) -> None:
        self._images, self._id = images, image_id

    def get(self, name: str) -> Any:
        """The pinned image; raises docker's `ImageNotFound`."""
        del name
        return self._images.get(self._id)

    def pull(self, name: str) -> None:
        """Never: a registry's tag may be another image today."""
        raise RuntimeError(f"{name} is not on this engine, and no image is pulled while judging")


class Containers:
    """Makes containers within bounds, and remembers them."""

    def __init__(self, containers: Any, order: dict[str, Any]) -> None:
        self._containers, self._order = containers, order
        self.made: list[Any] = []

    def get(self, name: str) -> Any:
        """A container by its name, as the engine has it."""
        return self._containers.get(name)

    def create(self, **asked: Any) -> Any:
        """What was asked for, but of the pinned image and within the judge's bounds."""
        bounds = {
            "image": self._order["image_id"],
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "cap_add": _CAPABILITIES,
            "security_opt": ["no-new-privileges:true"],
            "mem_limit": self._order["memory_bytes"],
            "pids_limit": self._order["pids"],
            "stop_signal": "SIGKILL",  # its first process heeds no other, and the package waits 15 s for it
            "labels": {"proctor.judging": self._order["nonce"]},
        }
        self.made.append(self._containers.create(**{**asked, **bounds}))
        return self.made[-1]

    def remove_all(self) -> None:
        """Whatever the package left; it cleans up by a command that this machine may not have."""
        for container in self.made:
            with contextlib.suppress(Exception):
                container.remove(force=True)


class Client:
    """The part of docker's client that the package uses."""

    def __init__(self, client: Any, order: dict[str, Any]) -> None:
        self.images = Images(client.images, order["image_id"])
        self.containers = Containers(client.containers, order)


def ran(order: dict[str, Any]) -> dict[str, Any]:
    """Run the instance with the patch, and say what came of it."""
    import docker
    from swebench.harness import run_evaluation
    from swebench.harness.utils import make_test_spec

    instance = order["instance"]
    engine = docker.DockerClient(base_url=order["engine"], version="auto", timeout=60 + order["timeout_s"])
    try:
        engine.images.get(order["image_id"])
    except docker.errors.ImageNotFound:
        return {"end": "no image"}
    client, outlived = Client(engine, order), []
    cleaned = run_evaluation.cleanup_container

    def looked_at(_client: Any, container: Any, logger: Any) -> None:
        outlived.append(_outlived(container))
        cleaned(_client, container, logger)

    run_evaluation.cleanup_container = looked_at
    said = io.StringIO()
    prediction = {
        "instance_id": instance["instance_id"],
        "model_name_or_path": "exhibit",
        "model_patch": order["patch"],
    }
    try:
        with contextlib.redirect_stdout(said):
            done = run_evaluation.run_instance(
                make_test_spec(instance), prediction, client, order["nonce"], timeout=order["timeout_s"]
            )
    finally:
        client.containers.remove_all()
    free = _free_bytes(engine)
    if False in outlived:
        return {"end": "failed", "log": "its container was ended from outside while it was judged"}
    folder = Path("logs/run_evaluation", order["nonce"], "exhibit", instance["instance_id"])
    return _on_disk(_told(done, said.getvalue(), folder, started=bool(client.containers.made)), free)


def _outlived(container: Any) -> bool:
    """
    Whether a container was still there when all was done. Nothing in it can end its first process but by running it out
    of its memory, which the engine tells.
    """
    if container is None:
        return True
    try:
        container.reload()
    except Exception:  # noqa: BLE001 - gone, or nobody is there to ask: either way not the patch's doing
        return False
    state = container.attrs["State"]
    return bool(state["Running"] or state["OOMKilled"])


def _on_disk(told: dict[str, Any], free: int | None) -> dict[str, Any]:
    """What is told, unless there is so little space that it may be the disk's doing."""
    if free is None or free >= _ROOM_BYTES or told["end"] == "failed":
        return told
    full = f"the engine's disk has {free} bytes free: expected {_ROOM_BYTES} or more, or no outcome can be trusted"
    return {"end": "failed", "log": full}


def _free_bytes(engine: Any) -> int | None:
    """
    What is free where the engine keeps its containers, once that of the run is removed with all that it wrote; None
    where that place is not on this machine.
    """
    place = Path(str(engine.info().get("DockerRootDir") or ""))
    return shutil.disk_usage(place).free if place.is_absolute() and place.is_dir() else None


def _told(done: Any, said: str, folder: Path, *, started: bool) -> dict[str, Any]:
    """
    How it ended, by what the package returned, what it said itself and which files it wrote: never by their text,
    in which the candidate's program has a voice.
    """
    instance_id = folder.name
    log = folder / "run_instance.log"
    facts = {"log": log.read_text("utf-8", "replace")[-_TOLD:] if log.exists() else ""}
    if done is not None:
        return {**facts, "end": "graded", "report": done[1][instance_id]}
    if not started or not said.startswith(f"Error in evaluation for {instance_id}: "):
        return {**facts, "end": "failed"}
    # It says so of itself in two places after the container was there: the patch, and the time.
    return {**facts, "end": "timeout" if (folder / "eval.sh").exists() else "patch failed"}


def graded(order: dict[str, Any]) -> dict[str, Any]:
    """Grade a log that is there already."""
    from swebench.harness.grading import get_eval_report
    from swebench.harness.utils import make_test_spec

    instance = order["instance"]
    Path("log.txt").write_text(order["log"], encoding="utf-8")
    prediction = {
        "instance_id": instance["instance_id"],
        "model_name_or_path": "exhibit",
        "model_patch": order["patch"],
    }
    report = get_eval_report(make_test_spec(instance), prediction, "log.txt", include_tests_status=True)
    return {"end": "graded", "report": report[instance["instance_id"]], "log": ""}


def swept(order: dict[str, Any]) -> dict[str, Any]:
    """Remove the containers that a worker which is gone has left."""
    import docker

    engine = docker.DockerClient(base_url=order["engine"], version="auto", timeout=30)
    left = engine.containers.list(all=True, filters={"label": f"proctor.judging={order['nonce']}"})
    for container in left:
        container.remove(force=True)
    return {"end": "swept", "removed": len(left)}


def main() -> None:
    """One order in, one answer out; what the package prints goes nowhere."""
    order = json.load(sys.stdin)
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if "sweep" in order:
        answer = swept(order)
    elif importlib.util.find_spec("swebench") is None:
        answer = {"end": "no package"}
    else:
        prepared()
        answer = graded(order) if "log" in order else ran(order)
    json.dump({**answer, "nonce": order["nonce"]}, channel)
    channel.close()


if __name__ == "__main__":
    main()
