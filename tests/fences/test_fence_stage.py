"""The stage sets real decoys out, each answers the host with its canary, and nothing of it is left."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import pytest

from fences.decoy_files import Home
from fences.decoy_process import _PROGRAM
from fences.stage import set_the_stage
from fences.witnesses import ask, dns_query, vouch
from harness import environment
from harness.clock import SystemClock, fresh_token
from harness.errors import WorkspaceError
from harness.views import Site
from tests.fake_workspace import FakeWorkspace, ran

ANSWERING = {
    "loopback": "loopback",
    "dns": "dns",
    "abstract": "abstract",
    "engine-socket": "engine-socket",
    "host-file": "host-file",
    "sealed-file": "sealed-file",
    "sealed-solution": "sealed-file",
    "neighbour-file": "neighbour-file",
    "process": "process",
}


def processes_with(text):
    """The command lines of this host's processes that hold `text`."""
    lines = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                lines.append((folder / "cmdline").read_bytes())
            except OSError:
                continue
    return [line for line in lines if text.encode() in line]


@pytest.mark.anyio
async def test_every_decoy_answers_the_host():
    """Each listener and file hands its own canary to the host, and the canaries differ."""
    async with set_the_stage() as site:
        for place, canary in ANSWERING.items():
            assert await vouch(site, (place,), canary) is None, place
        others = {"address": "address", "loopback6": "loopback6", "dns-address": "dns", "key": "key"}
        others |= {"segment": "shared-memory", "shared-file": "shared-memory"}
        for place, canary in others.items():
            if place in site.places:
                assert await vouch(site, (place,), canary) is None, place
        assert len(set(site.canaries.values())) == len(site.canaries)
        assert not set(site.canaries.values()) & set(site.places.values())


@pytest.mark.anyio
async def test_the_environment_and_the_process_list_hold_decoys():
    """While the stage stands, the harness's environment has the decoy variable, and a host process the marker."""
    async with set_the_stage() as site:
        marked = processes_with(site.places["marker"])
        assert any(site.canaries["process"].encode() in line for line in marked)
        assert os.environ[site.places["variable"]] == site.canaries["variable"]


@pytest.mark.anyio
async def test_nothing_is_left():
    """After the stage its folder, listeners, process and variable are gone."""
    async with set_the_stage() as site:
        pass
    assert not await anyio.Path(site.places["home"]).exists()
    assert site.places["variable"] not in os.environ
    assert processes_with(site.places["marker"]) == []
    for place in ("loopback", "abstract", "engine-socket"):
        with pytest.raises((ConnectionRefusedError, FileNotFoundError)):
            await anyio.to_thread.run_sync(ask, site.places[place])


@pytest.mark.anyio
async def test_an_error_comes_out_as_it_is_and_nothing_is_left():
    """What is raised on the stage comes up unwrapped, and the stage is cleared all the same."""
    with pytest.raises(WorkspaceError, match=r"^down$"):
        async with set_the_stage() as site:
            raise WorkspaceError("down")
    assert not await anyio.Path(site.places["home"]).exists()
    assert site.places["variable"] not in os.environ


@pytest.mark.anyio
async def test_a_cancelled_stage_is_cleared():
    """Cancellation clears the stage too."""
    with anyio.CancelScope() as scope:
        async with set_the_stage() as site:
            scope.cancel()
            await anyio.sleep(30)
    assert not await anyio.Path(site.places["home"]).exists()
    assert processes_with(site.places["marker"]) == []


@pytest.mark.anyio
async def test_a_neighbour_writes_its_own_canary():
    """The neighbour gets one more mount, and writes the canary itself; one that can't write stops the probing."""
    from contextlib import asynccontextmanager

    opened = []

    def writes(status):
        @asynccontextmanager
        async def open_neighbour(mounts):
            opened.append(mounts)
            yield FakeWorkspace(programs={"python3": lambda call: asked.append(call) or ran(status=status)})

        return open_neighbour

    asked = []
    async with set_the_stage(writes(0)) as site:
        assert [mount.source for mount in opened[0]] == [site.places["neighbour-path"]]
        assert asked[0].stdin.decode() == site.canaries["neighbour-file"]
        assert site.canaries["neighbour-file"] not in " ".join(asked[0].argv)
    with pytest.raises(WorkspaceError, match="neighbour"):
        async with set_the_stage(writes(1)):
            pass


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda place: (_ for _ in ()).throw(ConnectionRefusedError()), "down outside too"),
        (lambda place: b"something else", "does not answer with its canary"),
    ],
)
async def test_a_decoy_that_is_down_is_not_vouched_for(answer, said):
    """A decoy that doesn't answer the host, or answers something else, can't be vouched for; nor can none at all."""
    site = Site(canaries={"loopback": "c"}, places={"loopback": "tcp 127.0.0.1 1"})
    assert said in await vouch(site, ("loopback",), "loopback", asking=answer)
    assert "no decoy" in await vouch(site, ("loopback6",), "loopback", asking=answer)


def test_what_a_killed_process_left_is_taken_away(tmp_path):
    """An old stage that nobody holds is removed when the next is made; whatever else there is, is let be."""
    old, fresh, other = (tmp_path / name for name in ("proctor-stage-old", "proctor-stage-new", "something"))
    for folder in (old, fresh, other):
        (folder / "sealed").mkdir(parents=True)
    link = tmp_path / "proctor-stage-link"
    link.symlink_to(other)
    standing = Home(SystemClock(), place=tmp_path)
    for path in (old, other, standing.path):
        os.utime(path, (0, 0))
    os.utime(link, (0, 0), follow_symlinks=False)
    made = Home(SystemClock(), place=tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([made.path, standing.path, fresh, other, link])
    assert (other / "sealed").is_dir()
    for home in (made, standing):
        home.remove()
    assert sorted(tmp_path.iterdir()) == sorted([fresh, other, link])


@pytest.mark.anyio
async def test_the_stage_takes_what_an_older_one_left():
    """Setting the stage is what clears the place of those that were killed."""
    left = Path(tempfile.mkdtemp(prefix="proctor-stage-"))
    (left / "sealed").mkdir()
    os.utime(left, (0, 0))
    async with set_the_stage() as site:
        assert not await anyio.Path(left).exists()
        assert await anyio.Path(site.places["home"]).exists()


STANDING = """
import anyio, json, os
from fences.stage import set_the_stage
async def main():
    async with set_the_stage() as site:
        print(json.dumps(dict(site.places)), flush=True)
        await anyio.sleep(600)
anyio.run(main)
"""


def test_a_killed_harness_leaves_nothing():
    """After a SIGKILL the process of decoys takes away the folder, the shared memory, the key and itself."""
    argv = [sys.executable, "-c", STANDING]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as harness:
        places = json.loads(harness.stdout.readline())
        harness.kill()
    held = [place for name, place in places.items() if name in ("segment", "key")]
    patience = time.monotonic() + 15
    while time.monotonic() < patience and Path(places["home"]).exists():
        time.sleep(0.02)
    assert not Path(places["home"]).exists()
    while time.monotonic() < patience and processes_with(places["marker"]):
        time.sleep(0.02)
    assert processes_with(places["marker"]) == []
    for place in held:
        with pytest.raises(OSError):  # noqa: PT011 - which one depends on the kind of place
            ask(place)
    if "shared-file" in places:
        assert not Path(places["shared-file"].split(" ")[1]).exists()


@pytest.mark.anyio
async def test_listeners_answer_after_a_bad_caller():
    """Callers that break off, send nothing or send rubbish take no listener down."""
    async with set_the_stage() as site:
        for _ in range(20):
            for name in ("loopback", "engine-socket", "dns"):
                await anyio.to_thread.run_sync(break_off, site.places[name])
        for name in ("loopback", "engine-socket", "dns"):
            assert await vouch(site, (name,), name) is None


def break_off(place):
    """Connect and leave at once, with a reset where there can be one."""
    kind, rest = place.split(" ", 1)
    if kind == "unix":
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(rest)
            client.sendall(b"x")
        return
    host, port = rest.split(" ")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as client:
        if kind == "tcp":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.connect((host, int(port)))
        client.send(b"x" * 30)


def test_the_query_is_one_question():
    """The toy query asks one TXT question, so that any name server would take it for one."""
    query = dns_query()
    assert query[2:12] == bytes.fromhex("0100 0001 0000 0000 0000")
    assert query[12:] == b"\x06canary\x07invalid\x00\x00\x10\x00\x01"


def test_a_lent_variable_is_taken_back():
    """A decoy variable stands for the block only, also when it fails, and never replaces a real one."""
    with environment.lent("PROCTOR_TEST_DECOY", "x"):
        assert os.environ["PROCTOR_TEST_DECOY"] == "x"
        with pytest.raises(ValueError, match="set already"), environment.lent("PROCTOR_TEST_DECOY", "y"):
            pass
    with pytest.raises(KeyError), environment.lent("PROCTOR_TEST_DECOY", "x"):
        raise KeyError
    assert "PROCTOR_TEST_DECOY" not in os.environ


@pytest.mark.anyio
@pytest.mark.parametrize("line", [b"", b"{}\n", None], ids=["nothing", "half", "whole"])
async def test_a_process_of_decoys_that_nobody_hears_leaves_nothing(tmp_path, line):
    """One whose starter is gone before it could say what it made takes all of it away, or has made nothing."""
    home = tmp_path / "home"
    home.mkdir()
    told = {
        "segment": 0x50524F43,
        "file": f"proctor-{fresh_token(8)}",
        "shared": "x" * 32,
        "key": "y",
        "home": str(home),
    }
    argv = [sys.executable, "-I", "-S", "-c", _PROGRAM, "marker=canary"]
    process = await anyio.open_process(argv, stderr=subprocess.DEVNULL)
    await process.stdout.aclose()
    await process.stdin.send(json.dumps(told).encode() + b"\n" if line is None else line)
    await process.stdin.aclose()
    with anyio.fail_after(15):
        await process.wait()
    assert not await anyio.Path("/dev/shm", told["file"]).exists()
    with pytest.raises(OSError, match="segment"):
        await anyio.to_thread.run_sync(ask, f"segment {told['segment']}")
    assert home.exists() == (line is not None)
