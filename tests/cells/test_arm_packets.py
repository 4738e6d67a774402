"""What `proctor arm check` shows of an arm that mirrors another: its packet on a sample task, and its audit's word."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from arms.packets_facts import GENERIC, PacketCFSF
from cells.arm_packets import check_packet
from cells.cli import app
from harness import plugins
from harness.views import RoundView
from tests.cells.doctored_arms import OtherFacts, Telling

FACTS = "- middle([3, 1, 2]) must equal 2\n- middle([1, 3, 2]) must equal 2"


def checked(name: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the findings."""
    done = CliRunner().invoke(app, ["arm", "check", name, "--json"])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("name", "shown", "hidden"),
    [
        ("TC", FACTS, "numbers[1]"),
        ("CF-SF", FACTS, GENERIC[0]),
        ("P-FACTS", FACTS, GENERIC[0]),
        ("GR-SHAPE", f"{GENERIC[0]}\n{GENERIC[1]}", "must equal"),
        ("PAD", FACTS, "numbers[1]"),
    ],
)
def test_a_maintainer_sees_the_packet_and_its_audit(name: str, shown: str, hidden: str) -> None:
    """The packet of a round whose earlier solution failed, rendered with the state that it copies."""
    code, findings = checked(name)
    assert code == 0
    (packet,) = [item["detail"] for item in findings if item["rule"] == "packet"]
    assert shown in packet
    assert hidden not in packet
    audits = [item["detail"] for item in findings if item["rule"] == "mirror"]
    assert [text.partition(":")[2].partition(";")[0] for text in audits] == [" its audit passes"] * 2
    assert "round 1" in audits[0]
    assert "with 2 bullets" in audits[1]


@pytest.mark.parametrize(
    ("name", "silent"),
    [("TRACE", False), ("TRACE-DECOY", False), ("KERNEL", True), ("KERNEL-SHAPE", True), ("TC", False)],
)
def test_a_packet_without_a_word_of_its_controller_is_told_as_that(name: str, silent: bool) -> None:
    """No constraint tells the sample's wrong values apart: the packet that is shown is P's, and says why."""
    (packet,) = [item["detail"] for item in checked(name)[1] if item["rule"] == "packet"]
    assert packet.startswith("round 2 of a sample task")
    assert ("on which the controller of 'KERNEL' does not fire:\n" in packet) is silent


def test_the_packet_is_printed_as_it_is() -> None:
    """On a terminal too, code and fence and all."""
    done = CliRunner().invoke(app, ["arm", "check", "CF-SF"])
    assert "```python\ndef middle(numbers):\n    return numbers[1]\n```" in done.stdout


@pytest.mark.parametrize(
    ("arm", "said"), [(OtherFacts(), "its fact block has SHA-256"), (Telling(), "a generic bullet has 'middle'")]
)
def test_a_packet_that_its_audit_refuses_is_an_error(arm: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a run meets it: it names the round, and the command ends as a gate that refused."""
    real = plugins.load
    arm.render = lambda view, render=arm.render: render(view).replace("must equal 2", "must equal 3")
    monkeypatch.setattr(plugins, "load", lambda kind, name: (lambda: arm) if name == arm.name else real(kind, name))
    code, findings = checked(arm.name)
    assert code == 3
    (error,) = [item["detail"] for item in findings if item["level"] == "error"]
    assert said in error
    assert "round 2 of TC's" in error


class Raising(PacketCFSF):
    """A packet that can't be rendered from a state."""

    def render(self, view: RoundView) -> str:
        """Nothing."""
        return super().render(view) if view.mirrored is None else {}["state"]


def test_a_packet_that_raises_is_an_error() -> None:
    """What a plugin raises is a finding."""
    (finding,) = check_packet(Raising(), {})
    assert (finding.level, finding.detail) == ("error", "the sample can't be rendered: KeyError: 'state'")


def test_an_arm_that_keeps_nothing_has_no_sample() -> None:
    """B and P show no facts, and mirror nothing."""
    for name in ("B", "BI", "P"):
        assert check_packet(plugins.load("arms", name)(), {}) == []
