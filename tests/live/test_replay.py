"""
An auditor's replay of a finished run: identical on the machine it ran on, every difference named in another image, and an
image that is not here is an error that says what to do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness import plugins
from harness.clock import fresh_token
from tests.cells.houses import write_experiment
from tests.live.images import seat_image

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

BUSY = "others used this machine"
"""Why a probe that measures CPU time may have no finding on one side: it is said, and nothing is made up."""


def proctor(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command, as an auditor gives it."""
    command = [sys.executable, "-c", "from cells.cli import main; main()", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on Docker."""
    seat_image()
    folder = tmp_path_factory.mktemp("run")
    write_experiment(folder / "experiment")
    ran = proctor(folder, "run", "experiment", "--json")
    assert ran.returncode == 0, ran.stderr
    return Path(json.loads(ran.stdout)["folder"])


@pytest.fixture(scope="module")
def other_image() -> Iterator[str]:
    """The seat's image with one variable more, by a name of its own in the engine."""
    import docker

    async def loaded() -> None:
        await plugins.load("workspaces", "docker")().image_digest("proctor-seat")

    seat_image()
    anyio.run(loaded)
    api: Any = docker.from_env(timeout=60).api
    name = f"proctor-other-{fresh_token(4)}"
    made = api.create_container(api.inspect_image("proctor-seat")["Id"], ["true"])["Id"]
    try:
        api.commit(made, repository=name, changes=["ENV OTHER=yes"])
        yield name
        api.remove_image(name)
    finally:
        api.remove_container(made, force=True)
        api.close()


def told(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The differences between rows, but for those that a busy machine made of what measures time."""
    busy = {item["probe"] for item in found["differences"] if BUSY in f"{item['recorded']} {item['replayed']}"}
    return [item for item in found["differences"] if item["probe"] not in busy]


def test_on_the_same_machine_it_is_identical(finished: Path) -> None:
    """The same engine, image and probes find the same, row by row."""
    replayed = proctor(finished.parent, "fence", "replay", str(finished), "--json")
    found = json.loads(replayed.stdout)
    assert found["receipt_differences"] == []
    assert told(found) == []
    assert found["rows"] > 100
    assert (replayed.returncode, found["identical"]) == ((4, False) if found["differences"] else (0, True))


def test_in_another_image_the_differences_are_named(finished: Path, other_image: str) -> None:
    """The image is named as what differs; a row that differs is explained by it; it is not called identical."""
    replayed = proctor(finished.parent, "fence", "replay", str(finished), "--image", other_image, "--json")
    found = json.loads(replayed.stdout)
    assert replayed.returncode == 4, replayed.stderr
    assert found["identical"] is False
    assert {item["part"] for item in found["receipt_differences"]} == {"image", "walls"}
    assert found["image"] == other_image
    for item in found["differences"]:
        assert "image" in item["explained_by"], item


def test_an_image_that_is_not_here_is_an_error_with_the_next_step(finished: Path) -> None:
    """Nothing is guessed, and nothing is taken in some other image by itself."""
    replayed = proctor(finished.parent, "fence", "replay", str(finished), "--image", "proctor-nowhere")
    assert replayed.returncode == 2
    assert "there is no image 'proctor-nowhere'" in replayed.stderr
    assert "--image NAME" in replayed.stderr


def test_a_record_that_was_taken_elsewhere(finished: Path, tmp_path: Path) -> None:
    """
    A record of another engine and kernel, with a row that finds something else: the conditions are named one by one, and
    the row is explained by them. With `--node` the conditions do not count, and the finding still does.
    """
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "registration.json").write_bytes((finished / "registration.json").read_bytes())
    rewrite(finished / "record.jsonl", folder / "record.jsonl")
    replayed = proctor(tmp_path, "fence", "replay", str(folder), "--node", "--json")
    found = json.loads(replayed.stdout)
    assert replayed.returncode == 4
    assert {"engine.kernel", "node"} <= {item["part"] for item in found["receipt_differences"]}
    # What a busy machine could not measure has no finding on one side; which words say so is not compared here.
    unmeasured = {item["probe"] for item in found["differences"] if "None" in (item["recorded"], item["replayed"])}
    assert unmeasured <= {"cpu-hog"}
    findings = [item for item in found["differences"] if item["field"] == "finding_up"]
    differing = {item["probe"]: item for item in findings if item["probe"] not in unmeasured}
    assert set(differing) == {"vsock"}
    assert (differing["vsock"]["recorded"], differing["vsock"]["replayed"]) == ("ABSENT", "DENIED")
    assert {"engine.kernel", "node"} <= set(differing["vsock"]["explained_by"])
    assert {item["field"] for item in found["differences"]} <= {"finding_up", "finding_down", "holds", "rows"}


def rewrite(source: Path, target: Path) -> None:
    """The record as another machine would have written it, with a chain of its own."""
    from harness.canonical import canonical_bytes, digest_bytes

    prev, lines = None, []
    for line in source.read_text("utf-8").splitlines():
        entry = json.loads(line)
        if entry["kind"] == "fence.probed":
            entry["body"]["receipt"]["engine"]["kernel"] = "5.4.0-other"
            entry["body"]["receipt"]["node"] = "other Linux 5.4.0-other x86_64"
            (row,) = [row for row in entry["body"]["rows"] if row["probe"] == "vsock"]
            row["finding_up"] = "ABSENT"
        entry = {key: value for key, value in entry.items() if key != "sha256"}
        entry["prev"] = prev or entry["prev"]
        prev = digest_bytes(canonical_bytes(entry))
        lines.append(canonical_bytes({**entry, "sha256": prev}) + b"\n")
    target.write_bytes(b"".join(lines))


def test_its_audit_is_clean(finished: Path) -> None:
    """A real fence's receipts, probes repeated at the end, controls, seeds and prices: no invariant finds anything."""
    told = proctor(finished.parent, "audit", str(finished), "--json")
    found = json.loads(told.stdout)
    assert (told.returncode, found["verdict"], found["findings"]) == (0, "CLEAN", []), told.stderr
    assert found["counts"]["session-pins"] == {"sessions": 1}
