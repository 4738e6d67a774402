"""The swebench referee around the harness: records, patches, and the bounds of the container that it may make."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import ExperimentError, RefereeError, TaskError
from harness.tasks.task import OpenHalf, SealedHalf
from harness.tree import Exhibit, File, Tree
from referees import swebench, swebench_worker
from referees.swebench import SweBenchReferee
from referees.swebench_patch import patch_of
from referees.swebench_run import answered
from tests.referees.folder_room import folder_rooms

RECORD = {
    "instance_id": "demo__demo-1",
    "image": "registry/demo:1",
    "repo": "demo/demo",
    "version": "1",
    "log_parser": "parse_log_pytest",
    "eval_type": "pass_and_fail",
    "eval_script": "#!/bin/bash\n",
    "FAIL_TO_PASS": '["t.py::a"]',
    "PASS_TO_PASS": ["t.py::b"],
    "patch": "the reference",
    "hints_text": "",
}
OPEN = OpenHalf(benchmark="swe", name="demo", instruction="repair", environment=Tree.of({"a.py": "x = 1\n"}))
SEALED = SealedHalf(
    tests=Tree.of({"instance.json": json.dumps(RECORD)}), card={"image_id": "sha256:" + "0" * 64, "image": ""}
)


async def judged(monkeypatch: pytest.MonkeyPatch, tree: Tree, *answers: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The verdict where the harness answers so, and the orders that it got."""
    orders: list[Any] = []
    left = list(answers)

    async def answer(order: dict[str, Any]) -> dict[str, Any]:
        orders.append(order)
        return left.pop(0)

    monkeypatch.setattr(swebench, "answered", answer)
    return await SweBenchReferee().judge(Exhibit(tree=tree), OPEN, SEALED, folder_rooms), orders


REPORT = {
    "resolved": True,
    "tests_status": {
        "FAIL_TO_PASS": {"success": ["t.py::a"], "failure": []},
        "PASS_TO_PASS": {"success": ["t.py::b"], "failure": []},
    },
}
TIMEOUT = {"end": "timeout", "log": ""}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answers", "reading", "standing"),
    [
        ([{"end": "graded", "report": REPORT}], "RESOLVED", "accepted"),
        ([{"end": "graded", "report": {"resolved": False}}], "UNRESOLVED", "rejected"),
        # Only the truth value of the package's own report is a yes.
        ([{"end": "graded", "report": {**REPORT, "resolved": "yes"}}], "UNRESOLVED", "rejected"),
        ([{"end": "patch failed", "log": "no"}] * 2, "PATCH_FAILED", "rejected"),
        ([{"end": "patch failed", "log": "no"}, {"end": "graded", "report": REPORT}], "RESOLVED", "accepted"),
        ([TIMEOUT, TIMEOUT], "TIMEOUT", "rejected"),
        ([TIMEOUT, {"end": "graded", "report": REPORT}], "RESOLVED", "accepted"),
    ],
)
async def test_classes(
    monkeypatch: pytest.MonkeyPatch, answers: list[dict[str, Any]], reading: str, standing: str
) -> None:
    """Each end has its class; a time-out, and a patch that is not applied, count if they come twice."""
    verdict, orders = await judged(monkeypatch, Tree.of({"patch.diff": "a patch"}), *answers)
    assert (verdict.reading, verdict.standing, len(orders)) == (reading, standing, len(answers))
    if reading == "RESOLVED":
        assert "log that the candidate's own program can write to" in verdict.detail
        assert [(tier.tier, tier.passed, tier.total) for tier in verdict.tiers] == [
            ("FAIL_TO_PASS", 1, 1),
            ("PASS_TO_PASS", 1, 1),
        ]


@pytest.mark.anyio
async def test_no_patch_never_reaches_the_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty patch, and an exhibit that is the environment, are NO_PATCH; a changed file is a patch."""
    for tree in (Tree.of({"patch.diff": "\n"}), OPEN.environment):
        verdict, orders = await judged(monkeypatch, tree)
        assert (verdict.reading, orders) == ("NO_PATCH", [])
    graded = {"end": "graded", "report": REPORT}
    _, (order,) = await judged(monkeypatch, Tree.of({"a.py": "x = 2\n"}), graded)
    assert "-x = 1\n+x = 2\n" in order["patch"]


def test_patches_apply(tmp_path: Path) -> None:
    """What is made here is what git takes: changed, new, deleted, without a last newline, with odd separators."""
    import subprocess

    old = Tree.of({"a.py": "x = 1\ny = 2", "gone/b.txt": "b\n", "c.txt": "1\f2\n\u2028x\n", "d.bin": b"\xff\n"})
    new = Tree.of({"a.py": "x = 1\ny = 3\n", "new/d.py": "d = 1\n", "c.txt": "1\f3\n\u2028x\n", "d.bin": b"\xfe\n"})
    for path in old:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(old[path])
    patch = patch_of(new, old, "patch.diff")
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    left = Tree.from_folder(tmp_path)
    assert {path: left[path] for path in left if path != "d.bin"} == {p: new[p] for p in new if p != "d.bin"}
    assert patch_of(old, old, "patch.diff") == ""


def test_patches_keep_what_is_executable(tmp_path: Path) -> None:
    """A new file's bit, one that is lost and one that is won, of a text as of what is none; git gives it back."""
    import subprocess

    def tree(**files: tuple[bytes, bool]) -> Tree:
        return Tree({name: File(data=data, executable=bit) for name, (data, bit) in files.items()})

    old = tree(
        kept=(b"a\n", True), won=(b"b\n", False), lost=(b"c\n", True), binary=(b"\xff", False), gone=(b"d\n", True)
    )
    new = tree(kept=(b"A\n", True), won=(b"b\n", True), lost=(b"C\n", False), binary=(b"\xff", True), new=(b"e\n", True),
               empty=(b"", True))  # fmt: skip
    for path, file in old.files.items():
        (tmp_path / path).write_bytes(file.data)
        (tmp_path / path).chmod(0o755 if file.executable else 0o644)
    patch = patch_of(new, old, "patch.diff")
    done = subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert Tree.from_folder(tmp_path) == new


def test_a_full_disk_of_the_engine_is_nobodys_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is free is looked up where the engine keeps its containers; an engine elsewhere is not asked."""
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=len(str(path))))
    told = [{"DockerRootDir": str(tmp_path)}, {"DockerRootDir": "/nowhere/at/all"}, {}]
    found = [swebench_worker._free_bytes(SimpleNamespace(info=lambda facts=facts: facts)) for facts in told]
    assert found == [len(str(tmp_path)), None, None]
    for end, free, kept in (
        ("graded", 1, False),
        ("graded", 1 << 30, True),
        ("graded", None, True),
        ("failed", 1, True),
    ):
        answer = {"end": end, "log": "said"}
        assert (swebench_worker._on_disk(answer, free) == answer) is kept


def gone() -> None:
    """What the engine's client raises for a container that is not there."""
    raise KeyError("no such container")


def test_a_container_that_was_ended_from_outside() -> None:
    """It runs when all is done, or ran out of its own memory; else somebody ended it."""
    for running, oom, outlived in ((True, False, True), (False, True, True), (False, False, False)):
        state = {"Running": running, "OOMKilled": oom}
        container = SimpleNamespace(reload=lambda: None, attrs={"State": state})
        assert swebench_worker._outlived(container) is outlived
    assert swebench_worker._outlived(SimpleNamespace(reload=gone)) is False
    assert swebench_worker._outlived(None) is True


class FakeContainers:
    """Takes note of what it was asked to create."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.removed = 0

    def create(self, **asked: Any) -> FakeContainers:
        """What was made is this object too."""
        self.asked = asked
        return self

    def remove(self, *, force: bool) -> None:
        """Counted."""
        self.removed += force


def test_a_container_is_made_within_bounds() -> None:
    """Whatever the harness asks for, it gets the pinned image, no network, and no capability to administer."""
    engine = FakeContainers()
    order = {"image_id": "sha256:1", "memory_bytes": 1 << 30, "pids": 99, "nonce": "n"}
    containers = swebench_worker.Containers(engine, order)
    containers.create(image="registry/demo:latest", user="root", cap_add=["SYS_ADMIN"], command="tail -f /dev/null")
    assert (engine.asked["image"], engine.asked["network_mode"], engine.asked["user"]) == ("sha256:1", "none", "root")
    assert "SYS_ADMIN" not in engine.asked["cap_add"]
    assert engine.asked["cap_drop"] == ["ALL"]
    assert engine.asked["labels"] == {"proctor.judging": "n"}
    containers.remove_all()
    assert engine.removed == 1
    with pytest.raises(RuntimeError, match="no image is pulled"):
        swebench_worker.Images(engine, "sha256:1").pull("registry/demo:latest")


def test_how_a_run_ended_is_told_by_files_and_not_by_text(tmp_path: Path) -> None:
    """The harness's own words and files decide; the same words in its log, where a candidate may write, do not."""
    folder = tmp_path / "demo__demo-1"
    folder.mkdir()
    (folder / "run_instance.log").write_text("Error in evaluation for demo__demo-1: >>>>> Patch Apply Failed\n")

    def end(done: Any, said: str, *, started: bool = True) -> str:
        return str(swebench_worker._told(done, said, folder, started=started)["end"])

    own = "Error in evaluation for demo__demo-1: it did not apply"
    assert end(None, "") == "failed"
    assert end(None, own, started=False) == "failed"
    assert end(None, own) == "patch failed"
    assert end(("demo__demo-1", {"demo__demo-1": {"resolved": True}}), own) == "graded"
    (folder / "eval.sh").write_text("true")
    assert end(None, own) == "timeout"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("change", "error"),
    [({"engine": "unix:///nowhere.sock"}, RefereeError), ({"within": 0.01}, RefereeError)],
)
async def test_what_the_harness_fails_at_is_no_reading(change: dict[str, Any], error: type[Exception]) -> None:
    """An engine that does not answer, and a worker that does not come to its end."""
    order = {
        "instance": RECORD,
        "patch": "a patch",
        "image_id": "sha256:1",
        "timeout_s": 1,
        "memory_bytes": 1,
        "pids": 1,
        "engine": "unix:///nowhere.sock",
        "nonce": "n",
    }
    with pytest.raises(error):
        await answered(order | change, within_s=change.get("within", 60))


@pytest.mark.parametrize(
    ("card", "tests", "said"),
    [
        ({"image_id": "demo:latest"}, RECORD, "image_id"),
        ({"timeout_s": 0}, RECORD, "timeout_s"),
        ({"instance": "other.json"}, RECORD, "no other.json"),
        ({}, {"instance_id": "x"}, "no SWE-bench record"),
        ({}, {**RECORD, "FAIL_TO_PASS": "a"}, "no SWE-bench record"),
        ({}, {**RECORD, "PASS_TO_PASS": [1]}, "a list of tests"),
    ],
)
def test_cards_and_records_that_are_none(card: dict[str, Any], tests: dict[str, Any], said: str) -> None:
    """Each is refused with what was expected."""
    sealed = replace(SEALED, card={**SEALED.card, **card}, tests=Tree.of({"instance.json": json.dumps(tests)}))
    with pytest.raises(TaskError, match=said):
        SweBenchReferee().suite(sealed)


def test_controls_and_options() -> None:
    """The reference is the record's own patch; three degenerate candidates; an unknown option is refused."""
    referee = SweBenchReferee()
    assert referee.reference(SEALED).text("patch.diff") == "the reference"
    assert set(referee.battery(OPEN, SEALED)) == {"empty", "no_patch_at_all", "idle"}
    assert referee.suite(SEALED)["ids"] == ["t.py::a", "t.py::b"]
    with pytest.raises(ExperimentError, match="referee 'swebench'"):
        SweBenchReferee({"network": True})
