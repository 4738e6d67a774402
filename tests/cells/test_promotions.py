"""Promotions: an effect goes to one confirmation, once, and what does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cells.audit.auditing import audit_run
from cells.promotion.effect import effect_of, seen_in
from cells.promotion.fitting import Discovered, unfit
from cells.promotion.links import line_of_file
from cells.promotion.promoted import promotions_in, read_promotion
from cells.verifying import verify_run
from harness.confirmation import ConfirmsEntry
from harness.errors import BusyError, ExperimentError, GateRefused, IntegrityError, UsageError
from harness.record import Record
from harness.registration import load_registration
from tests.cells.audited import changed, rechained, reregistered, without
from tests.cells.linked import Linked, as_fisher, both, discovery, house, linked, original
from tests.cells.promoted import confirmation_of, effect, frozen_at, promoted
from tests.cells.test_cli import proctor

__all__ = ["both", "discovery", "house", "linked", "original", "proctor"]


def test_both_ends_name_each_other_and_are_clean(linked: Linked) -> None:
    """The discovery's last line says where the effect went, the registration pins that line, and both runs hold."""
    (found,) = promotions_in(linked.discovery)
    registration = load_registration(linked.confirmation)
    pin = registration.pins["promotion effect.promotion.json"]
    assert (pin["discovery"], pin["line"]) == (linked.discovery.name, (linked.discovery / "head").read_text().strip())
    assert found.content.confirmation.seed_namespace == registration.experiment["seat"]["seed_namespace"] == "again"
    assert found.content.figures.label == "discovery"
    assert found.content.effect.units == ("tasks|m|Fake/0", "tasks|m|Fake/1", "tasks|m|Fake/2")
    for folder in (linked.discovery, linked.confirmation):
        assert verify_run(folder).problems == ()
        assert audit_run(folder).findings == ()
    counts = audit_run(linked.confirmation).counts["discovery-apart"]
    assert counts["outputs equal to the discovery's, to an equal prompt"] == 12


def test_the_file_is_the_line_and_proves_itself(linked: Linked) -> None:
    """It is read back as the promotion; one changed byte, or another line of the record, is told."""
    data = (linked.target.parent / "effect.promotion.json").read_bytes()
    lines = (linked.discovery / "record.jsonl").read_bytes().splitlines(keepends=True)
    assert data == lines[-1]
    assert read_promotion(data, "it").line == (linked.discovery / "head").read_text().strip()
    with pytest.raises(IntegrityError, match="its bytes are not the ones"):
        read_promotion(data.replace(b"greater", b"smaller"), "it")
    with pytest.raises(ValueError, match=r"a line session.closed: expected effect.promoted"):
        line_of_file(lines[-2])


def test_a_dry_run_writes_nothing_and_the_same_promotion_again_is_harmless(discovery: Path, tmp_path: Path) -> None:
    """The record is as it was after either; a lost file is written again."""
    target = confirmation_of(discovery.name, tmp_path)
    record = discovery / "record.jsonl"
    before = record.read_bytes()
    tried = promoted(discovery, target, dry_run=True)
    assert (tried.promoted, record.read_bytes(), tried.file.exists()) == (None, before, False)
    first = promoted(discovery, target)
    assert first.promoted is not None
    after = record.read_bytes()
    assert after.startswith(before)
    assert len(after.splitlines()) == len(before.splitlines()) + 1
    first.file.unlink()
    again = promoted(discovery, target)
    assert (again.again, again.promoted, record.read_bytes()) == (True, first.promoted, after)
    assert again.file.read_bytes() == after.splitlines(keepends=True)[-1]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "the discovery's namespace": ({"namespace": "fake"}, "'fake' is the discovery's own: expected one of its own"),
    "one too like it": ({"namespace": "fake-2"}, r"too like the discovery's 'fake' \(one begins with the other\)"),
    "the arms' sides": (
        {"change": lambda text: text.replace('"P"\ncontrol = "B"', '"B"\ncontrol = "P"')},
        "treatment 'B' is not the discovery's 'P', byte for byte",
    ),
    "another test": ({"change": as_fisher}, "test is 'fisher': the discovery's is 'mcnemar', expected the same"),
    "no verdict": (
        {"change": lambda text: text.replace('control = "B"\n', 'control = "B"\nfamily = "descriptive"\n', 1)},
        "is descriptive and gets no verdict",
    ),
    "shared units declared disjoint": (
        {"more": "disjoint = true"},
        r"declared disjoint, and 3 are the discovery's: tasks\|m\|Fake/0",
    ),
    "another direction": (
        {"change": lambda text: text.replace('control = "B"\n', 'control = "B"\nalternative = "two-sided"\n', 1)},
        "to confirm another direction, say why in `direction`",
    ),
    "an idle direction": ({"more": 'direction = "for fun"'}, "nothing turns"),
}
"""What is written of a confirmation, and how it is refused."""


@pytest.mark.parametrize("what", REFUSED)
def test_an_experiment_that_does_not_fit_is_refused(what: str, discovery: Path, tmp_path: Path) -> None:
    """With what was expected, by the gate; nothing is appended."""
    changes, words = REFUSED[what]
    before = (discovery / "record.jsonl").read_bytes()
    with pytest.raises(GateRefused, match=words) as caught:
        promoted(discovery, confirmation_of(discovery.name, tmp_path, **changes))
    assert caught.value.gate == "promotion"
    assert (discovery / "record.jsonl").read_bytes() == before


def test_other_bytes_of_an_arm_are_another_arm(discovery: Path, tmp_path: Path) -> None:
    """By the same name: what is compared is what a seat was shown."""
    registration = load_registration(discovery)
    pins = {**registration.pins, "arm P": {**registration.pins["arm P"], "sha256": "0" * 64}}
    reregistered(discovery, pins=pins)
    other = load_registration(discovery)
    assert effect_of(other, "P over B").digest != effect_of(registration, "P over B").digest
    entry = ConfirmsEntry(discovery="d", effect="P over B", contrast="P over B", promotion="p")
    found = Discovered(effect=effect_of(other, "P over B"), seen="none", seed_namespace="elsewhere")
    (fault,) = unfit(found, entry, registration)
    assert fault.startswith("treatment 'P' is not the discovery's 'P', byte for byte")


@pytest.mark.parametrize(
    "case",
    [
        ("greater", "greater", "greater", None, None),
        ("greater", "none", "greater", None, None),
        ("two-sided", "less", "two-sided", None, None),
        ("greater", "less", "greater", None, "say why"),
        ("greater", "less", "greater", "It was noise.", None),
        ("two-sided", "greater", "greater", None, "say why"),
        ("two-sided", "greater", "greater", "P was ahead.", None),
        ("greater", "less", "less", None, "say why"),
        ("greater", "less", "less", "It harmed.", None),
        ("less", "less", "two-sided", "Both ways matter.", None),
        ("two-sided", "greater", "less", "Why not?", "nothing of it to confirm"),
        ("greater", "greater", "less", "Why not?", "nothing of it to confirm"),
        ("two-sided", "none", "greater", "Why not?", "nothing of it to confirm"),
        ("greater", "greater", "greater", "Why not?", "nothing turns"),
    ],
)
def test_a_direction_is_the_registered_one_or_is_named(
    case: tuple[str, Any, str, str | None, str | None], original: Path
) -> None:
    """
    What was registered and not contradicted needs no word, what follows or defies the data does, all else is none. A
    case is what was registered, seen and claimed, the sentence, and words of the refusal.
    """
    registered, seen, claimed, direction, words = case
    registration = load_registration(original)
    analysis = dict(registration.experiment["analysis"])
    first = {**analysis["contrasts"][0], "alternative": claimed}
    experiment = {**registration.experiment, "analysis": {**analysis, "contrasts": [first]}}
    other = replace(registration, experiment=experiment)
    was = effect_of(registration, "P over B").model_copy(update={"alternative": registered})
    entry = ConfirmsEntry(discovery="d", effect="e", contrast="P over B", promotion="p", direction=direction)
    faults = unfit(Discovered(effect=was, seen=seen, seed_namespace="elsewhere"), entry, other)
    assert len(faults) == (words is not None)
    assert words is None or words in faults[0]


def test_the_side_seen_is_that_of_the_pairs_or_of_the_shares() -> None:
    """Also where the arms have unlike numbers of judged cells: more passes need not be the larger share."""
    pairs = {"treatment_only": 2, "control_only": 1}
    assert seen_in({"groups": None, "pairs": pairs}) == "greater"
    assert seen_in({"groups": None, "pairs": {**pairs, "treatment_only": 1}}) == "none"
    groups = {"passed": [6, 5], "failed": [6, 1]}
    assert seen_in({"groups": groups, "pairs": pairs}) == "less"


def test_one_effect_under_any_name_side_and_direction() -> None:
    """Arms, test and population make an effect; another test, unit or arm makes another."""
    swapped = {"treatment_sha256": "2" * 64, "control_sha256": "1" * 64}
    for change in ({"contrast": "x"}, {"alternative": "less"}, swapped, {"family": "f"}, {"qualifiers": ("q",)}):
        assert effect(**change).digest == effect().digest
    for change in ({"test": "fisher"}, {"units": ("b|m|1",)}, {"control_sha256": "3" * 64}, {"extras": "statement"}):
        assert effect(**change).digest != effect().digest


def test_an_effect_is_promoted_once_whatever_its_contrast_is_called(linked: Linked, tmp_path: Path) -> None:
    """The refusal names the first promotion; an effect of another test is another one."""
    for name, change in (("P over B", {}), ("B under P", {"effect": "B under P"})):
        target = confirmation_of(linked.discovery.name, tmp_path, name="third", namespace="third", **change)
        words = r"promoted already, as 'P over B' to again \(namespace 'again'\) by promotion 1 of .*, line 21"
        with pytest.raises(GateRefused, match=words):
            promoted(linked.discovery, target, contrast=name)
    target = confirmation_of(
        linked.discovery.name, tmp_path, name="third", namespace="third", effect="unpaired", change=as_fisher
    )
    assert promoted(linked.discovery, target, contrast="unpaired").content.number == 2
    assert audit_run(linked.discovery).findings == ()


def test_what_is_not_there_is_told_with_what_is(discovery: Path, tmp_path: Path) -> None:
    """A contrast, a table that names it, a promotion's file that is somebody else's."""
    target = confirmation_of(discovery.name, tmp_path)
    with pytest.raises(UsageError, match=r"unknown contrast 'P under B'.*B under P"):
        promoted(discovery, target, contrast="P under B")
    with pytest.raises(UsageError, match=r"does not confirm 'unpaired' of fake-.*: expected a table"):
        promoted(discovery, target, contrast="unpaired")
    (target.parent / "effect.promotion.json").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="is there already and isn't this promotion"):
        promoted(discovery, target)
    target = confirmation_of(discovery.name, tmp_path, name="nowhere", file="missing/effect.promotion.json")
    with pytest.raises(
        UsageError, match=r"missing is no folder: expected the one that .*effect.promotion.json goes to"
    ):
        promoted(discovery, target)
    assert list(promotions_in(discovery)) == []


def test_a_damaged_file_is_written_anew_once_it_is_out_of_the_way(linked: Linked, proctor: Callable[..., Any]) -> None:
    """Another name for it would be another experiment, so the message doesn't ask for one; a dry run says that it wrote nothing."""
    file = linked.target.parent / "effect.promotion.json"
    data = file.read_bytes()
    file.write_text("damaged", "utf-8")
    try:
        with pytest.raises(UsageError, match=r"isn't this promotion: move it away, then promote again"):
            promoted(linked.discovery, linked.target)
        file.unlink()
        result = proctor("promote", linked.discovery, "P over B", "--to", linked.target, "--dry-run")
        assert "it was promoted already: line 21 of the record" in result.out
        assert ("written to" in result.out, "nothing was written" in result.out) == (False, True)
        assert not file.exists()
        promoted(linked.discovery, linked.target)
        assert file.read_bytes() == data
    finally:
        file.write_bytes(data)


def test_a_discovery_must_be_finished_and_clean(discovery: Path, tmp_path: Path) -> None:
    """Not while cells are without an outcome, not with an audit's finding, and not while somebody writes to it."""
    target = confirmation_of(discovery.name, tmp_path)
    registration = load_registration(discovery)
    with (
        Record(discovery, registration_digest=registration.digest),
        pytest.raises(BusyError),
    ):
        promoted(discovery, target)
    rechained(discovery, without("control.judged", which=0))
    with pytest.raises(GateRefused, match=r"AUDIT-FAILURE: expected CLEAN, see `proctor audit`\n  controls-held: "):
        promoted(discovery, target)
    for name in ("record.jsonl", "head"):
        (discovery / name).unlink()
    with pytest.raises(UsageError, match="has no record: run it first"):
        promoted(discovery, target)


def test_a_run_that_was_cut_off_is_not_promoted_from(discovery: Path, tmp_path: Path) -> None:
    """The audit says so: cells without an outcome are a finding."""
    rechained(discovery, lambda entries: without("cell.ended", which=-1)(without("cell.started", which=-1)(entries)))
    with pytest.raises(GateRefused, match="cells-complete"):
        promoted(discovery, confirmation_of(discovery.name, tmp_path))


def test_a_freeze_needs_the_promotion_to_this_very_experiment(linked: Linked, tmp_path: Path) -> None:
    """None, a damaged one, one to another content, one whose line the discovery does not have: each is refused."""
    target = confirmation_of(linked.discovery.name, tmp_path)
    with pytest.raises(ExperimentError, match=r"can't be read .*`proctor promote fake-\w+ 'P over B' --to FILE`"):
        frozen_at(target, linked.runs)
    data = (linked.target.parent / "effect.promotion.json").read_bytes()
    file = target.parent / "effect.promotion.json"
    file.write_bytes(data.replace(b'"number":1', b'"number":2'))
    with pytest.raises(IntegrityError, match=r"effect.promotion.json: its bytes are not"):
        frozen_at(target, linked.runs)
    file.write_bytes(data)
    frozen_at(target, tmp_path / "elsewhere")  # the discovery is not at hand there
    text = target.read_text("utf-8")
    target.write_text(text.replace("Does the house hold?", "Does it hold?"), "utf-8")
    with pytest.raises(GateRefused, match="it is to another experiment than this one"):
        frozen_at(target, tmp_path / "elsewhere")
    target.write_text(f"# said anew\n{text}", "utf-8")
    frozen_at(target, tmp_path / "elsewhere")
    rechained(linked.discovery, changed("effect.promoted", lambda body: {**body, "number": 7}))
    with pytest.raises(GateRefused, match=r"line 21 of the record of fake-\w+ is not this promotion"):
        frozen_at(target, linked.runs)
