"""Starts the worker that has `swebench` run or grade an instance, and takes its answer."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import anyio

from harness import environment
from harness.errors import ImageError, RefereeError
from referees.swebench_card import SweBenchCard, SweBenchOptions

__all__ = ["answered", "order_for", "worker_path"]

_SOCKET = "unix:///var/run/docker.sock"
_GRACE_S = 600.0
"""Seconds beyond the tests' own that the engine may need, all together."""
_SWEEP_S = 60.0


def worker_path() -> Path:
    """The worker's file."""
    return Path(str(resources.files("referees").joinpath("swebench_worker.py")))


def order_for(
    card: SweBenchCard, instance: dict[str, Any], patch: str, options: SweBenchOptions, nonce: str
) -> dict[str, Any]:
    """What the worker is asked to run."""
    return {
        "instance": instance,
        "patch": patch,
        "image_id": card.image_id,
        "timeout_s": card.timeout_s,
        "memory_bytes": options.memory_bytes,
        "pids": options.pids,
        "engine": environment.docker_host() or _SOCKET,
        "nonce": nonce,
    }


async def answered(order: dict[str, Any], *, within_s: float | None = None) -> dict[str, Any]:
    """
    The worker's answer to an order. No container of it lives on.

    Raises `RefereeError` where the worker fails, and `ImageError` where package or image are missing.
    """
    answer: dict[str, Any] | None = None
    try:
        answer = await _asked(order, within_s or order["timeout_s"] + _GRACE_S)
    finally:
        if answer is None and "engine" in order:
            with anyio.CancelScope(shield=True), contextlib.suppress(RefereeError):
                await _asked({"sweep": True, "engine": order["engine"], "nonce": order["nonce"]}, _SWEEP_S)
    instance = order["instance"]
    if answer["end"] == "no package":
        raise ImageError(
            "the package swebench is missing: `pip install --no-deps swebench==5.0.2` is all that it takes"
        )
    if answer["end"] == "no image":
        raise ImageError(
            f"the engine has no image {order['image_id']} for {instance['instance_id']}: expected the one that the "
            f"record names, {instance['image']}; pull it from the registry that you use for SWE-bench, or load it from "
            "a file, and see that its id is the card's `image_id`"
        )
    if answer["end"] == "failed":
        raise RefereeError(f"swebench could not run {instance['instance_id']}: {answer['log'][-600:]}")
    return answer


async def _asked(order: dict[str, Any], within_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="proctor-swebench-") as folder:
        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": folder,
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with anyio.move_on_after(within_s) as scope:
            done = await anyio.run_process(
                [sys.executable, "-I", str(worker_path())],
                input=json.dumps(order).encode(),
                cwd=folder,
                env=env,
                check=False,
                stderr=subprocess.PIPE,
            )
    if scope.cancelled_caught:
        raise RefereeError(f"swebench did not come to its end within {within_s:g} s")
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode("utf-8", "replace")[-600:]
        raise RefereeError(f"swebench ended with status {done.returncode} and no answer: {said}") from None
    if answer.get("nonce") != order["nonce"]:
        raise RefereeError("swebench gave no answer to this order")
    return answer
