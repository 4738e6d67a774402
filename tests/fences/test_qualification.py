"""A table is taken once and used again for the very same receipt; for anything else, and when it is damaged, it isn't."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace

import pytest

from fences import qualification as module
from fences.policy import FencePolicy
from fences.qualification import Qualification, QualificationShelf, qualify
from fences.receipt import Receipt
from fences.rows import ProbeRow
from harness.clock import SystemClock
from harness.errors import StorageError
from harness.views import Attempt, Finding
from tests.fake_workspace import FakeBackend as PlainBackend
from tests.fake_workspace import ran


class FakeBackend(PlainBackend):
    """A fake whose programs all say that they did their work."""

    def __init__(self):
        super().__init__(programs={"python3": lambda call: ran(stdout=b"ok")})


DENIED, ABSENT, SERVED = Finding.DENIED, Finding.ABSENT, Finding.SERVED
POLICY = FencePolicy(must_work=(), tools=(), requires=())
RECEIPT = Receipt(
    policy="p", walls="w", image="i", backend="fake", engine={"v": "1"}, guarantees={"cpu": None}, node="n",
    probes="q", code="c",
)  # fmt: skip


def row(name="net", up=DENIED, down=SERVED):
    """A row of a table."""
    return ProbeRow.of(
        probe=name, language="python", expected=[DENIED], up=(up, "EPERM"), down=(down, "x"), weakening="w"
    )


def kept(*rows, receipt=RECEIPT):
    """A qualification."""
    return Qualification(receipt=receipt, rows=rows or (row(),), taken_at="2026-11-30T10:00:00.000Z")


@pytest.fixture
def shelf(tmp_path):
    """A shelf of this test's own."""
    return QualificationShelf(tmp_path / "qualifications")


def test_a_kept_table_comes_back_as_it_was(shelf):
    """All of it, with its digest; and the shelf holds nothing but it."""
    path = shelf.keep(kept())
    assert shelf.find(RECEIPT, POLICY, ["net"]) == kept()
    assert [item.name for item in shelf.root.iterdir()] == [path.name] == [f"{RECEIPT.digest}.json"]


@pytest.mark.parametrize("field", [item.name for item in fields(Receipt)])
def test_another_receipt_has_no_table(shelf, field):
    """A change of any one thing that the table was taken for, and it counts no more."""
    shelf.keep(kept())
    other = {"engine": {"v": "2"}, "guarantees": {"cpu": "no control groups"}}.get(field, "other")
    assert "no table was kept" in shelf.find(replace(RECEIPT, **{field: other}), POLICY, ["net"])


def test_a_table_under_another_receipts_name_does_not_count(shelf):
    """A file that was moved is not the table of what it is named after."""
    path = shelf.keep(kept())
    other = replace(RECEIPT, node="other")
    path.rename(shelf.path(other))
    assert "taken for another node" in shelf.find(other, POLICY, ["net"])


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda data: data["rows"][0].update(evidence_up="EACCES"), "SHA-256"),
        (lambda data: data.update(taken_at="2027-01-01T00:00:00.000Z"), "SHA-256"),
        (lambda data: data["rows"][0].update(holds=False), "damaged"),
        (lambda data: data.pop("rows"), "damaged"),
        (lambda data: data.update(note="x"), "damaged"),
        (lambda data: data.update(schema="other/1"), "damaged"),
        (lambda data: data["receipt"].update(extra="x"), "damaged"),
        (lambda data: data["rows"][0].update(ms=float("nan")), "damaged"),
    ],
)
def test_a_damaged_table_does_not_count(shelf, edit, said):
    """Whatever was changed in it, it is not what was kept."""
    path = shelf.keep(kept())
    data = json.loads(path.read_text("utf-8"))
    edit(data)
    path.write_text(json.dumps(data), "utf-8")
    assert said in shelf.find(RECEIPT, POLICY, ["net"])


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff", b'{"sha256": 1}'])
def test_a_torn_file_does_not_count(shelf, raw):
    """A cut or empty file is none."""
    shelf.keep(kept()).write_bytes(raw)
    assert isinstance(shelf.find(RECEIPT, POLICY, ["net"]), str)


def a_link(path):
    """To a table of the very same words."""
    path.rename(path.with_name("other"))
    path.symlink_to(path.with_name("other"))


def a_fifo(path):
    """Nobody writes to it."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("plant", [a_link, a_fifo, lambda path: path.chmod(0o666), lambda path: path.chmod(0o620)])
def test_a_table_that_somebody_else_may_have_written_does_not_count(shelf, plant):
    """A link, no file, and one that others can write to."""
    plant(shelf.keep(kept()))
    assert "can't be read" in shelf.find(RECEIPT, POLICY, ["net"])


def test_a_table_of_another_user_does_not_count(shelf, monkeypatch):
    """Whoever put it there has not measured what we would."""
    shelf.keep(kept())
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert "a regular file of user 4242" in shelf.find(RECEIPT, POLICY, ["net"])


def test_a_table_without_a_registered_probe_does_not_count(shelf):
    """A probe that was registered since has no row in it."""
    shelf.keep(kept())
    assert "other: it has no row" in shelf.find(RECEIPT, POLICY, ["net", "other"])


def test_a_table_that_does_not_hold_does_not_count(shelf):
    """However it got onto the shelf."""
    shelf.keep(kept(row(up=SERVED)))
    assert "does not hold: net: with the fence up it was SERVED" in shelf.find(RECEIPT, POLICY, ["net"])


def test_a_shelf_that_can_not_be_written_is_an_error_with_the_next_step(tmp_path):
    """A full or closed disk is the machine's owner's affair, and nothing half-written stays."""
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(StorageError, match="PROCTOR_HOME"):
        QualificationShelf(tmp_path / "file").keep(kept())


class NetProbe:
    """A probe that holds as long as `up` says so."""

    name, language, threat, holds = "net", "python", "a test's", frozenset({DENIED})
    up = DENIED

    def weaken(self, fence, site):
        """The host's network."""
        return replace(fence, walls=replace(fence.walls, network="host"))

    async def attempt(self, workspace, fence, site):
        """Served where there is a network."""
        return Attempt(finding=SERVED if workspace.walls.network == "host" else self.up, evidence="x")


@pytest.fixture
def probe(monkeypatch):
    """The one registered probe, and its digest with it."""
    only = NetProbe()
    monkeypatch.setattr(module, "registered_probes", lambda: (only,))
    monkeypatch.setattr("fences.table.registered_probes", lambda: (only,))
    return only


async def qualified(shelf, backend, **more):
    """A qualification on fakes."""
    return await qualify(backend, POLICY, "img", run="r", clock=SystemClock(), shelf=shelf, **more)


@pytest.mark.anyio
async def test_a_second_qualification_takes_nothing(shelf, probe):
    """Nothing is opened for it; `again` opens everything."""
    first = await qualified(shelf, FakeBackend())
    assert (first.reused, first.faults) == (False, ())
    quiet = FakeBackend()
    second = await qualified(shelf, quiet)
    assert (second.reused, quiet.opened) == (True, [])
    assert second.qualification == first.qualification
    assert not (await qualified(shelf, busy := FakeBackend(), again=True)).reused
    assert busy.opened


@pytest.mark.anyio
async def test_a_table_that_is_taken_anew_says_what_was_wrong_with_the_kept_one(shelf, probe):
    """A kept one that does not count is named; where there was none, or another was asked for, nothing is."""
    first = await qualified(shelf, FakeBackend())
    assert first.passed_over is None
    path = shelf.path(first.qualification.receipt)
    path.write_bytes(path.read_bytes()[:500])
    assert path.name in (await qualified(shelf, FakeBackend())).passed_over
    assert (await qualified(shelf, FakeBackend(), again=True)).passed_over is None


@pytest.mark.anyio
async def test_a_table_that_does_not_hold_is_not_kept(shelf, probe):
    """It is reported with its faults, and the next one is taken anew."""
    probe.up = SERVED
    first = await qualified(shelf, FakeBackend())
    assert "with the fence up it was SERVED" in first.faults[0]
    assert not shelf.root.exists()
    probe.up = DENIED
    assert not (await qualified(shelf, FakeBackend())).reused


@pytest.mark.anyio
async def test_what_the_backend_does_not_enforce_is_not_tried(shelf, probe):
    """The row says why and vouches for nothing; the run may start, since its session says it too."""

    class Weak(FakeBackend):
        async def guarantees(self):
            return {"network": "there is no wall here"}

    probe.guarantee = "network"
    probe.up = SERVED
    found = await qualified(shelf, weak := Weak())
    (only,) = [item for item in found.qualification.rows if item.kind == "breach"]
    assert (only.finding_up, only.finding_down, only.holds) == (None, None, None)
    assert only.evidence_up == "not enforced here: there is no wall here"
    assert found.faults == ()
    assert {room.walls.network for room in weak.opened} == {"none"}
    probe.guarantee = "another"
    assert (await qualified(shelf, FakeBackend())).faults


@pytest.mark.anyio
async def test_a_probe_that_is_alone_has_a_room_of_its_own(shelf, probe):
    """With the fence up too: one that uses its room up would spoil the others' attempts."""
    await qualified(shelf, together := FakeBackend())
    probe.alone = True
    await qualified(shelf, apart := FakeBackend(), again=True)
    assert len(apart.opened) == len(together.opened) + 1
