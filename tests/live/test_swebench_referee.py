"""
The swebench referee with the real harness on a real engine: a tiny instance whose image is made here, of the default
image, this machine's git, and a repository of three files.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import docker
import pytest

from harness import plugins
from harness.environment import docker_host
from harness.errors import ImageError, RefereeError
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, Tree
from harness.values import Verdict
from harness.walls import Walls
from referees.swebench_patch import patch_of
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.anyio, pytest.mark.timeout(300)]

CALC = "def add(a, b):\n    return a - b\n"
RUNNER = """\
import test_calc
for name in ("test_fixed", "test_kept"):
    try:
        getattr(test_calc, name)()
        print("PASSED test_calc.py::" + name)
    except Exception as error:
        print("FAILED test_calc.py::" + name + " - " + type(error).__name__)
"""
OLD_TESTS = "from calc import add\n\n\ndef test_kept():\n    assert add(2, 0) == 2\n"
NEW_TESTS = OLD_TESTS + "\n\ndef test_fixed():\n    assert add(2, 3) == 5\n"
REPOSITORY = Tree.of({"calc.py": CALC, "run_tests.py": RUNNER, "test_calc.py": OLD_TESTS})
EVAL = """\
#!/bin/bash
set -uxo pipefail
cd /testbed
git config --global --add safe.directory /testbed
git checkout HEAD test_calc.py
git apply -v - <<'EOF_114329324912'
{tests}EOF_114329324912
: '>>>>> Start Test Output'
python3 run_tests.py
: '>>>>> End Test Output'
git checkout HEAD test_calc.py
"""


@pytest.fixture
def anyio_backend() -> str:
    """One loop is enough here."""
    return "asyncio"


def repository(folder: Path) -> bytes:
    """What goes into the image, as a tar: the repository with one commit, git, and the `kill` that ends a late test."""
    for path in REPOSITORY:
        (folder / path).write_bytes(REPOSITORY[path])
    git = ["git", "-c", "user.name=demo", "-c", "user.email=demo@demo.invalid"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    linked = subprocess.run(["ldd", "/usr/bin/git", "/bin/kill"], capture_output=True, text=True, check=True).stdout
    libraries = [Path(word) for word in linked.split() if "/libpcre" in word or "/libproc" in word]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", dereference=True) as tar:
        tar.add(folder, "testbed")
        for file in (Path("/usr/bin/git"), Path("/bin/kill"), *libraries):
            tar.add(file, str(file.resolve().parent / file.name).lstrip("/"))
    return packed.getvalue()


@pytest.fixture
async def image_id(tmp_path: Path) -> AsyncIterator[str]:
    """The instance's image; gone afterwards."""
    seat = seat_image()
    backend = plugins.load("workspaces", "docker")()
    async with backend.open(Walls(image=seat), run="test-swebench"):
        pass  # the engine has the image from here on
    engine = docker.DockerClient(base_url=docker_host() or "unix:///var/run/docker.sock")
    container = engine.containers.create(seat, command=["sleep", "1"], user="root")
    try:
        container.put_archive("/", repository(tmp_path))
        made = container.commit()
    finally:
        container.remove(force=True)
    yield str(made.id)
    engine.images.remove(str(made.id), force=True)
    left = [container.name for container in engine.containers.list(all=True) if "sweb.eval" in str(container.name)]
    engine.close()
    assert left == []


def changed(path: str, text: str) -> str:
    """The patch that gives `path` this text."""
    return patch_of(REPOSITORY.merged(Tree.of({path: text})), REPOSITORY, "patch.diff")


GOLD = changed("calc.py", CALC.replace("a - b", "a + b"))
FORGED = changed(
    "calc.py",
    "import os\nprint('PASSED test_calc.py::test_fixed\\nPASSED test_calc.py::test_kept', flush=True)\nos._exit(0)\n",
)


def instance() -> dict[str, Any]:
    """The record."""
    return {
        "instance_id": "demo__calc-1",
        "image": "demo/calc:latest",
        "repo": "demo/calc",
        "version": "1",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "eval_script": EVAL.format(tests=changed("test_calc.py", NEW_TESTS)),
        "FAIL_TO_PASS": ["test_calc.py::test_fixed"],
        "PASS_TO_PASS": ["test_calc.py::test_kept"],
        "patch": GOLD,
    }


async def judged(image_id: str, patch: str, timeout_s: int = 60) -> Verdict:
    """The verdict on a patch."""
    sealed = SealedHalf(
        tests=Tree.of({"instance.json": json.dumps(instance())}), card={"image_id": image_id, "timeout_s": timeout_s}
    )
    task = OpenHalf(benchmark="swe", name="calc", instruction="repair add", environment=REPOSITORY)
    referee = plugins.load("referees", "swebench")()
    verdict: Verdict = await referee.judge(Exhibit(tree=Tree.of({"patch.diff": patch})), task, sealed, None)
    return verdict


async def test_the_harness_runs_and_grades(image_id: str) -> None:
    """The gold patch is RESOLVED, others are not: an idle one, one that needs a network, text, one without an end."""
    gold = await judged(image_id, GOLD)
    assert (gold.reading, [tier.passed for tier in gold.tiers]) == ("RESOLVED", [1, 1])
    networked = GOLD.replace(
        "+    return a + b", "+    return a + b * (len(__import__('os').listdir('/sys/class/net')) > 1)"
    )
    for patch, tiers in ((changed("new.txt", "idle\n"), [0, 1]), (networked, [0, 1])):
        verdict = await judged(image_id, patch)
        assert (verdict.reading, [tier.passed for tier in verdict.tiers]) == ("UNRESOLVED", tiers)
    assert (await judged(image_id, "this is no patch\n")).reading == "PATCH_FAILED"
    assert (
        await judged(image_id, GOLD.replace("a + b", "add(a, b) if [x for x in iter(int, 1)] else 0"), 4)
    ).reading == ("TIMEOUT")


async def kill_what_judges() -> None:
    """Every container of a judgement, as a person at the engine does, once the tests run in it."""
    engine = docker.DockerClient(base_url=docker_host() or "unix:///var/run/docker.sock")
    while True:
        for container in await anyio.to_thread.run_sync(
            lambda: engine.containers.list(filters={"label": "proctor.judging"})
        ):
            words = str((await anyio.to_thread.run_sync(container.top))["Processes"])
            if "run_tests.py" in words:
                await anyio.to_thread.run_sync(container.kill)
        await anyio.sleep(0.2)


async def test_a_container_that_is_killed_is_nobodys_fail(image_id: str) -> None:
    """While its tests run: the harness could not grade, and nothing is said of the patch."""
    endless = GOLD.replace("a + b", "add(a, b) if [x for x in iter(int, 1)] else 0")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill_what_judges)
        said = ""
        try:
            verdict = await judged(image_id, endless)
            said = f"{verdict.reading}: {verdict.detail}"
        except RefereeError as error:
            said = str(error)
        tasks.cancel_scope.cancel()
    assert "ended from outside" in said


async def test_what_the_benchmark_believes(image_id: str) -> None:
    """Its log can be written by the candidate's own program: such a patch is RESOLVED, and the verdict says how."""
    verdict = await judged(image_id, FORGED)
    assert (verdict.reading, "program can write to" in verdict.detail) == ("RESOLVED", True)


async def test_an_image_that_is_not_there_is_named() -> None:
    """Nothing is pulled; the error says which image is meant and how its id is told."""
    with pytest.raises(ImageError, match="demo/calc:latest"):
        await judged("sha256:" + "0" * 64, GOLD)
