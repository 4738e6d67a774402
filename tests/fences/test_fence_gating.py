"""The gate says no, for each reason that it has, and names the probe; and it says yes only when there is none."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from pydantic import ValidationError

from fences.gate import gate, refusals
from fences.policy import FencePolicy
from fences.receipt import Receipt, probes_digest, registered_probes, take_receipt
from fences.replay import FINDINGS, compare_receipts, compare_rows, explained
from fences.rows import ProbeRow, row_line, rows_from_json, rows_to_json
from harness import plugins
from harness.canonical import canonical_bytes
from harness.errors import GateRefused, PluginError
from harness.views import Finding
from tests.fake_workspace import FakeBackend

DENIED, ABSENT, SERVED, UNCLEAR = Finding.DENIED, Finding.ABSENT, Finding.SERVED, Finding.INCONCLUSIVE
POLICY = FencePolicy(tools=("read", "submit"), requires=("network", "probe:net"), must_work=("read-task",))
RECEIPT = Receipt(
    policy="p", walls="w", image="i", backend="fake", engine={"v": "1"}, guarantees={"cpu": None}, node="n",
    probes="q", code="c",
)  # fmt: skip
PROBES = ("net", "tool-read")


def row(probe="net", *, language="python", up=(DENIED, "door: EPERM"), down=(SERVED, "canary"), **more):
    """A row that holds, unless the test says otherwise."""
    expected = more.pop("expected", (DENIED,))
    return ProbeRow.of(
        probe=probe, language=language, expected=expected, up=up, down=down, weakening="network=host", **more
    )


def rows(*others):
    """A table that the gate lets pass, with `others` in place of the rows of their names."""
    good = [
        row(),
        row("tool-read", language="tool:read"),
        row(
            "must-work-read-task", language="seat", kind="ability", expected=(SERVED,), up=(SERVED, ""), down=(None, "")
        ),
    ]
    names = {other.probe for other in others}
    return [item for item in good if item.probe not in names] + list(others)


def refused(table, *, policy=POLICY, probes=PROBES, taken_for=RECEIPT, now=RECEIPT):
    """The gate's refusal as text."""
    with pytest.raises(GateRefused) as caught:
        gate(table, policy, probes=probes, taken_for=taken_for, now=now)
    return str(caught.value)


def test_a_fence_that_holds_lets_the_run_start():
    """Every row there, every row holding, everything still as it was: yes."""
    assert refusals(rows(), POLICY, probes=PROBES, taken_for=RECEIPT, now=RECEIPT) == ()
    assert gate(rows(), POLICY, probes=PROBES, taken_for=RECEIPT, now=RECEIPT) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"up": (SERVED, "canary")}, "net: with the fence up it was SERVED (canary): expected DENIED"),
        ({"up": (UNCLEAR, "timed out")}, "net: with the fence up it was INCONCLUSIVE (timed out)"),
        ({"up": (ABSENT, "door: ENOENT")}, "net: with the fence up it was ABSENT"),
        ({"down": (DENIED, "door: EPERM")}, "net: with network=host it was DENIED (door: EPERM): expected SERVED"),
        ({"down": (ABSENT, "nothing")}, "can't be seen to succeed"),
        ({"down": (UNCLEAR, "exit 127")}, "net: with network=host it was INCONCLUSIVE (exit 127)"),
        ({"down": (None, "no such wall here")}, "net: not measured: no such wall here, and fence.requires asks for it"),
    ],
)
def test_each_way_not_to_hold_refuses(changed, said):
    """A probe that was served, unclear, or other than expected, and a control that did not succeed, each refuse."""
    assert said in refused(rows(row(**changed)))


def test_absent_counts_where_the_probe_says_so():
    """ABSENT holds for a probe that expects it, and INCONCLUSIVE for none, whatever it expects."""
    assert row(up=(ABSENT, ""), expected=(DENIED, ABSENT)).holds is True
    assert row(up=(UNCLEAR, ""), expected=tuple(Finding)).holds is False


def test_a_row_that_nobody_requires_may_be_unmeasured():
    """Without `probe:NAME` in the policy a row may say 'not measured', as long as the fence held it."""
    policy = replace(POLICY, requires=("network",))
    table = rows(row(down=(None, "no such wall here")))
    assert refusals(table, policy, probes=PROBES, taken_for=RECEIPT, now=RECEIPT) == ()
    assert row(up=(SERVED, ""), down=(None, "no such wall here")).holds is False


def test_a_seat_that_can_not_work_refuses():
    """An ability that does not work refuses the run, and is named."""
    broken = row(
        "must-work-read-task",
        language="seat",
        kind="ability",
        expected=(SERVED,),
        up=(DENIED, "EACCES"),
        down=(None, ""),
    )
    assert "must-work-read-task: with the fence up it was DENIED" in refused(rows(broken))


@pytest.mark.parametrize("name", ["net", "tool-read", "must-work-read-task"])
def test_a_missing_row_refuses(name):
    """A registered probe or an ability without a row was not probed, and a gate does not skip what it can't see."""
    assert f"{name}: it has no row" in refused([item for item in rows() if item.probe != name])


def test_a_row_that_stands_twice_refuses():
    """Which of two rows counts can't be told."""
    assert "net: it is in the table 2 times" in refused([*rows(), row()])


def test_an_empty_table_refuses():
    """No probe, no rows: nothing is vouched for."""
    assert "an empty table vouches for nothing" in refused([], policy=replace(POLICY, tools=()), probes=())


def test_a_tool_without_a_probe_of_its_language_refuses():
    """A tool that can reach something must be probed in its own language; `submit` reaches nothing."""
    assert "no probe speaks its language (tool:write)" in refused(
        rows(), policy=replace(POLICY, tools=("read", "write"))
    )


def test_a_required_probe_that_nobody_knows_refuses():
    """A misspelt requirement is not one that holds."""
    policy = replace(POLICY, requires=("probe:nett",))
    assert "Did you mean 'net'" in refused(rows(), policy=policy)


@pytest.mark.parametrize("field", [item.name for item in fields(Receipt)])
def test_rows_of_something_else_refuse(field):
    """Rows count for this very policy, image, engine, node and set of probes; the part that differs is named."""
    other = {"engine": {"v": "2"}, "guarantees": {"cpu": "no control groups"}}.get(field, "other")
    text = refused(rows(), now=replace(RECEIPT, **{field: other}))
    assert f"the rows were taken for another {field}: {other!r}, not" in text
    assert replace(RECEIPT, **{field: other}).digest != RECEIPT.digest


def test_all_reasons_are_told_at_once():
    """The refusal lists every reason, not the first."""
    text = refused(rows(row(up=(SERVED, "canary")), row("tool-read", language="tool:read", up=(UNCLEAR, "cut"))))
    assert "2 reasons" in text
    assert "net:" in text
    assert "tool-read:" in text


def test_a_row_can_not_claim_to_hold():
    """`holds` is worked out from the findings, and a record's row that says otherwise is refused."""
    data = rows_to_json(rows(row(up=(SERVED, "canary"))))
    assert rows_from_json(data)[-1].holds is False
    data[-1]["holds"] = True
    with pytest.raises(ValidationError, match="holds=True"):
        rows_from_json(data)


def test_rows_survive_the_record():
    """Rows written to a record and read from it are the same rows; an unknown key is refused."""
    table = rows(row(down=(None, "x")), row("extra", up=(ABSENT, "y")))
    data = rows_to_json(table)
    canonical_bytes(data)
    assert rows_from_json(data) == tuple(table)
    with pytest.raises(ValidationError, match="note"):
        rows_from_json([{**data[0], "note": "x"}])


def test_a_replay_that_agrees_has_no_difference():
    """Order and time say nothing."""
    table = rows()
    again = [replace(item, ms=item.ms + 5) for item in reversed(table)]
    assert compare_rows(table, again) == ()


def test_a_replay_names_what_differs():
    """Each field that differs is named with both sides; so is a row that one side lacks or has twice."""
    recorded = [*rows(), row("gone"), row("twice"), row("twice")]
    replayed = [*rows(row(up=(SERVED, "canary"))), row("new"), row("twice")]
    found = {(item.probe, item.field): (item.recorded, item.replayed) for item in compare_rows(recorded, replayed)}
    assert found == {
        ("net", "finding_up"): ("DENIED", "SERVED"),
        ("net", "evidence_up"): ("door: EPERM", "canary"),
        ("net", "holds"): ("True", "False"),
        ("gone", "rows"): ("1 of it", None),
        ("new", "rows"): (None, "1 of it"),
        ("twice", "rows"): ("2 of it", "1 of it"),
    }


def test_a_condition_that_differs_is_named_fact_by_fact():
    """Of an engine and of what it does not enforce, each fact by itself; equal conditions have no difference."""
    other = replace(RECEIPT, image="j", engine={"v": "2", "kernel": "6"}, guarantees={"cpu": "no control groups"})
    found = {item.part: (item.recorded, item.replayed) for item in compare_receipts(RECEIPT, other)}
    assert found == {
        "image": ("i", "j"),
        "engine.v": ("1", "2"),
        "engine.kernel": (None, "6"),
        "guarantees.cpu": ("enforced", "no control groups"),
    }
    assert compare_receipts(RECEIPT, RECEIPT) == ()


def test_a_difference_is_explained_by_what_can_account_for_it():
    """A finding by another image, a row that is gone by other probes; without such a condition nothing explains it."""
    recorded, replayed = [*rows(), row("gone")], rows(row(up=(SERVED, "canary")))
    differences = compare_rows(recorded, replayed)
    image = compare_receipts(RECEIPT, replace(RECEIPT, image="j"))
    by = {(item.probe, item.field): item.explained_by for item in explained(differences, image)}
    assert by["net", "finding_up"] == ("image",)
    assert by["gone", "rows"] == ()
    probes = compare_receipts(RECEIPT, replace(RECEIPT, probes="r"))
    by = {(item.probe, item.field): item.explained_by for item in explained(differences, probes)}
    assert by["gone", "rows"] == ("probes",)
    (gone,) = [item for item in explained(differences, ()) if item.probe == "gone"]
    assert "unexplained" in str(gone)
    assert gone.to_json()["explained_by"] == ["unexplained"]
    assert {item.field for item in differences} & FINDINGS == {"finding_up", "holds", "rows"}


LANGUAGES = {"archive", "gateway", "output", "python", "shell"}


def test_every_registered_probe_is_what_it_is_called():
    """The table of plugins and the probes' own names agree, and each probe is whole."""
    probes = registered_probes()
    assert [probe.name for probe in probes] == list(plugins.table("probes"))
    assert len(probes) >= 15
    for probe in probes:
        assert probe.threat
        assert probe.language in LANGUAGES or probe.language.startswith("tool:")
        assert probe.holds <= {DENIED, ABSENT}


def test_a_probe_under_a_false_name_is_refused(monkeypatch):
    """A probe that calls itself something else than its entry point stops the run."""
    info = plugins.PluginInfo(
        kind="probes", name="other", target="fences.probes_network:VsockProbe", distribution="d", version="1"
    )
    monkeypatch.setattr(plugins, "table", lambda kind: {"other": info})
    monkeypatch.setattr("fences.receipt.table", lambda kind: {"other": info})
    with pytest.raises(PluginError, match="calls itself 'vsock'"):
        registered_probes()


@pytest.mark.anyio
async def test_a_receipt_is_taken_of_what_is_there():
    """The receipt holds the policy's, the image's and the probes' digests, and what the engine says."""
    receipt = await take_receipt(FakeBackend(), POLICY, "img")
    assert (receipt.policy, receipt.image) == (POLICY.digest, "sha256:fake-img")
    assert (receipt.engine["engine"], receipt.probes) == ("fake", probes_digest())
    assert receipt.differences(receipt) == ()
    other = await take_receipt(FakeBackend(), POLICY, "img2")
    assert [item.split(":")[0] for item in receipt.differences(other)] == ["walls", "image"]


@pytest.mark.parametrize(
    ("kind", "up", "down", "line"),
    [
        ("breach", Finding.DENIED, Finding.SERVED, "probe p: DENIED with the fence up, SERVED with it down"),
        ("breach", Finding.DENIED, None, "probe p: DENIED with the fence up, not measured with it down"),
        ("ability", Finding.SERVED, None, "p: works"),
        ("ability", Finding.DENIED, None, "p: DOES NOT WORK: why"),
        ("running", Finding.SERVED, None, "p: as asked for"),
        ("running", Finding.DENIED, None, "p: why"),
        ("running", Finding.INCONCLUSIVE, None, "p: the engine does not say"),
    ],
)
def test_a_row_is_told_in_the_words_of_its_kind(kind, up, down, line):
    """A fact that is as asked for is no breach that was served."""
    expected = (Finding.DENIED,) if kind == "breach" else (Finding.SERVED,)
    row = ProbeRow.of(
        probe="p",
        language="shell",
        kind=kind,
        expected=expected,
        up=(up, "why"),
        down=(down, "why"),
        weakening="w",
        ms=1.0,
    )
    assert row_line(row) == line
