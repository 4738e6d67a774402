"""
The probes of the collection: what a seat may leave is really laid out, and taken by the harness's own collector or by
the careless one; and what came out is judged by what it is.
"""

from __future__ import annotations

import tempfile

import anyio
import pytest

from fences.policy import FencePolicy
from fences.probes_archive import (
    _CAPS,
    ArchiveEnvironmentProbe,
    ArchiveLinksProbe,
    ArchiveManyProbe,
    ArchiveNamesProbe,
    ArchiveSizeProbe,
    ArchiveSpecialProbe,
    Taken,
)
from fences.rendering import render
from fences.stage import set_the_stage
from harness.views import Finding
from tests.fake_workspace import FakeWorkspace, ran
from tests.fences.unwalled import UnwalledRoom

STRICT = render(FencePolicy(), "img")
PROBES = [
    ArchiveLinksProbe(), ArchiveEnvironmentProbe(), ArchiveSpecialProbe(), ArchiveSizeProbe(), ArchiveManyProbe(),
    ArchiveNamesProbe(),
]  # fmt: skip


@pytest.fixture
def anyio_backend():
    """Real processes are started here; that the room's code runs on both loops is shown by tests without them."""
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
async def test_the_harness_own_collector_holds(probe):
    """What is laid out is dropped and named, or kept within the caps."""
    async with set_the_stage() as site:
        found = await probe.attempt(UnwalledRoom(), STRICT, site)
        assert found.finding is Finding.DENIED, found.evidence
        assert not [value for value in site.canaries.values() if value in found.evidence]


@pytest.mark.anyio
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
async def test_the_careless_collector_does_not(probe, monkeypatch, tmp_path):
    """Unpacked as it is, each brings its evidence, and the host keeps nothing of it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with set_the_stage() as site:
        weak = probe.weaken(STRICT, site)
        assert (weak.walls, weak.lifted) == (STRICT.walls, ("archive-filter",))
        found = await probe.attempt(UnwalledRoom(), weak, site)
        assert found.finding is Finding.SERVED, found.evidence
        assert not [value for value in site.canaries.values() if value in found.evidence]
    assert [path for path in tmp_path.iterdir() if "careless" in path.name] == []


@pytest.mark.anyio
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
async def test_what_was_not_laid_or_not_taken_says_nothing(probe):
    """A program that can't lay it out, and an archive that can't be made, are INCONCLUSIVE."""
    async with set_the_stage() as site:
        missing = FakeWorkspace(programs={"python3": lambda call: ran(status=127)})
        found = await probe.attempt(missing, STRICT, site)
        assert (found.finding, "laid out" in found.evidence) == (Finding.INCONCLUSIVE, True)
        laid = ran(stdout=b'{"tries": [{"what": "lay", "fact": "laid"}]}')
        unpacked = FakeWorkspace(programs={"python3": lambda call: laid, "tar": lambda call: ran(status=127)})
        found = await probe.attempt(unpacked, probe.weaken(STRICT, site), site)
        assert (found.finding, found.evidence) == (Finding.INCONCLUSIVE, "no archive could be made (exit 127)")


async def judged(probe, site, files=(), dropped=(), waiting=()):
    """The signatures and facts of what came out."""
    taken = Taken(files=dict(files), dropped=dict.fromkeys(dropped, "why"), waiting=waiting)
    return [item.fact or item.signature or item.got for item in probe.judge(taken, site)]


@pytest.mark.anyio
async def test_what_came_out_is_judged_by_what_it_is():
    """Silence about a thing is no wall, and caps, names and places outside are looked at themselves."""
    async with set_the_stage() as site:
        canary = site.canaries["host-file"].encode()
        assert await judged(ArchiveLinksProbe(), site, {"folder/a": canary}) == [canary]
        assert await judged(ArchiveLinksProbe(), site) == ["NOTHING"] * 4
        assert await judged(ArchiveLinksProbe(), site, {"absolute": b"x"}, ("relative", "folder", "second")) == [
            b"x", "DROPPED", "DROPPED", "DROPPED",
        ]  # fmt: skip
        own = await anyio.Path("/proc/self/environ").read_bytes()
        assert "environment of the harness" in (await judged(ArchiveEnvironmentProbe(), site, {"environ": own}))[0]
        assert "are not" in (await judged(ArchiveEnvironmentProbe(), site, {"environ": b"A=1"}))[0]
        assert await judged(ArchiveSpecialProbe(), site, waiting=("fifo",)) == [
            "a reader on the host would wait for it for ever"
        ]
        assert await judged(ArchiveSpecialProbe(), site, dropped=("fifo", "device")) == ["DROPPED", "DROPPED"]
        large = {"part-1": b"x" * (_CAPS.file_bytes + 1)}
        assert await judged(ArchiveSizeProbe(), site, large) == ["more came out than the caps allow"]
        assert await judged(ArchiveSizeProbe(), site, {"part-1": b"x"}, ("hole",)) == [
            "DROPPED", "nothing says what was left out",
        ]  # fmt: skip
        deep = {"/".join(["d"] * (_CAPS.depth + 2)): b""}
        assert "deeper" in (await judged(ArchiveManyProbe(), site, deep))[0]
        assert await judged(ArchiveManyProbe(), site, {"heap/1": b""}) == ["nothing says what was left out"]
        split = {"two": b"content", "lines": b"content"}
        assert await judged(ArchiveNamesProbe(), site, split) == ["a name came out that nobody laid"]
        assert await judged(ArchiveNamesProbe(), site, {"..hidden": b"content"}) == ["1 of 4 were told of"]
        await anyio.Path(site.places["outside-path"], "written").write_text("x")
        assert "outside of the exhibit" in (await judged(ArchiveNamesProbe(), site))[0]
