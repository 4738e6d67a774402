"""Promotions: an effect goes to one confirmation, both ends say so, and nothing of the discovery goes with it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.audit.auditing import audit_run, keep_audit
from cells.declared.opening import read_declared
from cells.freeze import reopen
from cells.freeze_view import freeze_lines
from cells.promotion.effect import contrast_of, effect_of, seen_in
from cells.promotion.fitting import Discovered, unfit
from cells.promotion.links import line_of_file
from cells.promotion.promoted import promotions_in, read_promotion
from cells.promotion.unpooled import refuse_pooled
from cells.report import document_of
from cells.report_facts import facts_to_json, run_facts
from cells.report_files import write_document
from cells.report_markdown import markdown_report
from cells.verifying import verify_run
from harness.clock import SystemClock
from harness.confirmation import ConfirmsEntry
from harness.errors import BusyError, DeclarationError, ExperimentError, GateRefused, IntegrityError, UsageError
from harness.experiment import load_experiment
from harness.record import Record
from harness.registration import load_registration
from tests.cells.audited import changed, rechained, reregistered, without
from tests.cells.promoted import confirmation_of, discovery_in, effect, frozen_at, played, promoted, workshop
from tests.cells.test_cli import proctor

__all__ = ["proctor"]


@dataclass(frozen=True, kw_only=True)
class Linked:
    """A discovery and a confirmation in one folder of runs, and the confirmation's experiment file."""

    runs: Path
    discovery: Path
    confirmation: Path
    target: Path


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in whose workshop everything of this file is played."""
    folder = tmp_path_factory.mktemp("promotions")
    with workshop(folder):
        yield folder


@pytest.fixture(scope="module")
def original(house: Path) -> Path:
    """A finished discovery; what changes it works on a copy."""
    return discovery_in(house)


@pytest.fixture(scope="module")
def both(original: Path, house: Path) -> Linked:
    """A discovery of which an effect was promoted, and the confirmation that was played then."""
    runs = house / "both"
    discovery = Path(shutil.copytree(original, runs / original.name))
    target = confirmation_of(original.name, house / "of-both")
    promoted(discovery, target)
    confirmation = played(target, runs)
    keep_audit(confirmation, audit_run(confirmation), clock=SystemClock())
    return Linked(runs=runs, discovery=discovery, confirmation=confirmation, target=target)


@pytest.fixture
def discovery(original: Path, tmp_path: Path) -> Path:
    """The finished discovery, in a folder of runs of the test's own."""
    return Path(shutil.copytree(original, tmp_path / "runs" / original.name))


@pytest.fixture
def linked(both: Linked, tmp_path: Path) -> Linked:
    """Both runs, in a folder of the test's own."""
    runs = Path(shutil.copytree(both.runs, tmp_path / "runs"))
    return Linked(
        runs=runs,
        discovery=runs / both.discovery.name,
        confirmation=runs / both.confirmation.name,
        target=both.target,
    )


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


def as_fisher(text: str) -> str:
    """The confirmation tests without pairs."""
    return text.replace('control = "B"\n', 'control = "B"\ntest = "fisher"\n', 1)


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


def problems(folder: Path) -> str:
    """What `proctor verify` finds wrong."""
    return "\n".join(f"{item.where}: {item.what}" for item in verify_run(folder).problems)


def findings(folder: Path) -> str:
    """What the audit finds."""
    return "\n".join(f"{item.invariant}: {item.what}" for item in audit_run(folder).findings)


def test_either_end_tells_that_the_other_is_another(linked: Linked) -> None:
    """A promotion that was taken out of the discovery, and one that was changed there: both runs say so."""
    rechained(linked.discovery, without("effect.promoted"))
    words = "line 21 of the record of"
    assert words in problems(linked.confirmation)
    assert words in problems(linked.discovery)
    assert re.search(f"^promotions: {words}", findings(linked.confirmation))


def test_a_lost_promotion_and_a_changed_pin_are_told(linked: Linked) -> None:
    """The line is among the confirmation's blobs, and is the one that its registration names."""
    registration = load_registration(linked.confirmation)
    name = "promotion effect.promotion.json"
    pin = registration.pins[name]
    reregistered(linked.confirmation, pins={**registration.pins, name: {**pin, "line": "3:" + "0" * 64}})
    assert "and 3:000" in problems(linked.confirmation)
    assert "the pin says otherwise" in findings(linked.confirmation)
    reregistered(linked.confirmation, pins={**registration.pins, name: {**pin, "sha256": "0" * 64}})
    assert "is missing" in problems(linked.confirmation)
    assert "is missing" in findings(linked.confirmation)
    reregistered(linked.confirmation, pins={key: value for key, value in registration.pins.items() if key != name})
    assert "it is not pinned, and 'P over B' is registered to confirm by it" in findings(linked.confirmation)


CHANGED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "number": (lambda body: {**body, "number": 2}, "it calls itself number 2"),
    "discovery": (lambda body: {**body, "discovery": "another"}, "it is of another"),
    "head": (lambda body: {**body, "head": "1:" + "0" * 64}, "it was made on head 1:0"),
    "effect": (
        lambda body: {**body, "effect": {**body["effect"], "units": ["tasks|m|Fake/0"]}},
        "'P over B' is registered as another effect",
    ),
    "figures": (
        lambda body: {
            **body,
            "figures": {**body["figures"], "reading": {**body["figures"]["reading"], "p_value": 0.01}},
        },
        "p_value are not what the record gives",
    ),
    "form": (lambda body: {**body, "more": 1}, "is none"),
}
"""What is changed of a promotion's line, whose digests are made to fit again, and what the audit says."""


@pytest.mark.parametrize("what", CHANGED)
def test_a_line_that_was_changed_is_found_by_the_audit(what: str, linked: Linked) -> None:
    """The chain holds, and what the line says does not."""
    change, words = CHANGED[what]
    rechained(linked.discovery, changed("effect.promoted", change))
    found = audit_run(linked.discovery)
    assert {item.invariant for item in found.findings} == {"promotions"}
    assert words in found.findings[0].what


def test_an_effect_that_was_promoted_twice_is_found(linked: Linked) -> None:
    """Whoever writes the line by hand gets round the command, not round the audit."""
    rechained(
        linked.discovery,
        lambda entries: [*entries, entries[-1]],
    )
    assert "its effect was promoted already, by promotion 1" in findings(linked.discovery)


def test_a_promotion_that_two_registrations_played_is_found(linked: Linked) -> None:
    """One effect, one confirmation: the second is seen where both are at hand, and only once it was played."""
    second = Path(shutil.copytree(linked.confirmation, linked.runs / "second"))
    reregistered(second, question="again?")
    assert "promotion 1 was played 2 times" in findings(linked.discovery)
    (second / "record.jsonl").unlink()
    assert findings(linked.discovery) == ""


def test_a_confirmation_that_was_frozen_before_is_found(linked: Linked) -> None:
    """Its outputs may have been seen when the effect was promoted."""
    reregistered(linked.confirmation, frozen_at="2020-01-01T00:00:00.000Z")
    assert "the confirmation was frozen before, at 2020-" in findings(linked.confirmation)


def declared(linked: Linked, folder: Path, readings: dict[str, list[Path]]) -> Path:
    """A declaration of readings over all cells of these runs."""
    text = 'question = "Again?"\n[[analysis.contrasts]]\nname = "P over B"\ntreatment = "P"\ncontrol = "B"\n'
    for name, folders in readings.items():
        cells = [f"{run.name}/{cell}" for run in folders for cell in load_registration(run).cells]
        text += f'[[readings]]\nname = "{name}"\ncells = {json.dumps(cells)}\n'
    path = folder / "declaration.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_reading_over_both_runs_is_refused(linked: Linked, tmp_path: Path) -> None:
    """Side by side they are read; as one set they are not, whichever of the two folders tells of the link."""
    places = [linked.discovery, linked.confirmation]
    apart = declared(linked, tmp_path, {"discovery": places[:1], "confirmation": places[1:]})
    assert read_declared(apart, runs=places).final
    pooled = declared(linked, tmp_path, {"discovery": places[:1], "both": places})
    for given in (places, places[:1], places[1:]):
        with pytest.raises(DeclarationError, match=r"reading 'both' has cells of the discovery fake-\w+ and of again-"):
            read_declared(pooled, runs=given)


@dataclass(frozen=True, kw_only=True)
class Set:
    """A declared set of these runs' cells."""

    cells: list[tuple[str, str]]
    name: str = "pooled"


def test_a_confirmation_of_a_confirmation_is_not_pooled_with_the_first(tmp_path: Path) -> None:
    """Links are followed; two confirmations of one discovery are nobody's evidence twice, and may be read together."""
    for run, discoveries in {"second": ["first"], "third": ["second"], "other": ["first"], "broken": None}.items():
        pins = {f"promotion {name}.json": {"discovery": name} for name in discoveries or []}
        (tmp_path / run).mkdir()
        text = json.dumps({"id": run, "pins": pins}) if discoveries else '{"promotion '
        (tmp_path / run / "registration.json").write_text(text, "utf-8")
    refuse_pooled([Set(cells=[("second", "1"), ("other", "1")])], [tmp_path / "second"])
    refuse_pooled([Set(cells=[("first", "1"), ("third", "1")])], [])
    with pytest.raises(DeclarationError, match="cells of the discovery first and of third, which confirms an effect"):
        refuse_pooled([Set(cells=[("first", "1"), ("third", "1")])], [tmp_path / "third", tmp_path / "other"])


def test_a_sample_that_is_disjoint_says_so_by_itself(original: Path) -> None:
    """The population's own word counts as the table's."""
    registration = load_registration(original)
    experiment = {**registration.experiment, "population": {"sample": "disjoint"}}
    entry = ConfirmsEntry(discovery="d", effect="e", contrast="P over B", promotion="p")
    was = effect_of(registration, "P over B")
    found = Discovered(effect=was, seen="none", seed_namespace="elsewhere")
    assert unfit(found, entry, registration) == []
    (fault,) = unfit(found, entry, replace(registration, experiment=experiment))
    assert "declared disjoint, and 3 are the discovery's" in fault
    others = Discovered(effect=was.model_copy(update={"units": ("b|m|t",)}), seen="none", seed_namespace="elsewhere")
    assert unfit(others, entry, replace(registration, experiment=experiment)) == []


def test_a_confirmation_goes_on_without_its_source(linked: Linked, tmp_path: Path) -> None:
    """The promotion is among the run's blobs; where the source is there, the file must be the one that was pinned."""
    target = confirmation_of(linked.discovery.name, tmp_path)
    file = target.parent / "effect.promotion.json"
    file.write_bytes((linked.target.parent / file.name).read_bytes())
    folder = frozen_at(target, tmp_path / "elsewhere")
    lines = list(freeze_lines(anyio.run(partial(reopen, folder, clock=SystemClock()))))
    assert any(
        line.startswith(f"  confirms an effect of {linked.discovery.name}, promoted by line 20:") for line in lines
    )
    file.unlink()
    with pytest.raises(ExperimentError, match="can't be read"):
        anyio.run(partial(reopen, folder, clock=SystemClock()))
    target.unlink()
    assert anyio.run(partial(reopen, folder, clock=SystemClock())).registration.id == folder.name


def test_the_report_has_both_verdicts_side_by_side(linked: Linked, tmp_path: Path) -> None:
    """In the confirmation's, as Markdown and as a page; the discovery's tells where the effect went."""
    written = write_document(document_of(run_facts(linked.confirmation)), tmp_path)
    for path in written.values():
        text = path.read_text("utf-8")
        assert "Effect P over B: discovery and confirmation" in text
        assert "no figure is taken over both runs" in text
    text = written["md"].read_text("utf-8")
    assert f"| run | {linked.discovery.name} | {linked.confirmation.name} |" in text
    assert "| pairs | 3 | 3 |" in text
    assert "| verdict | not supported | not supported |" in text
    assert "| audit verdict | CLEAN | CLEAN |" in text
    assert "units 3 are among the discovery's 3; seeds are of 'fake' there and of 'again' here" in text
    (row,) = facts_to_json(run_facts(linked.confirmation))["confirms"]
    assert row["figures"]["label"] == "discovery"
    there = write_document(document_of(run_facts(linked.discovery)), tmp_path)["md"].read_text("utf-8")
    assert "## Discovery" not in there
    assert re.search(
        r"## Promotions\n\n### Effects that were promoted\n.*\n\| 1 \| 20.* \| P over B \| again ", there, re.DOTALL
    )


def test_verdicts_that_differ_stand_apart_with_what_differs_between_the_runs(linked: Linked) -> None:
    """A supported discovery is not in the confirmation's column, and a turned claim and another seat are said."""
    facts = run_facts(linked.confirmation)
    (row,) = json.loads(json.dumps(facts.confirms))
    row["figures"]["reading"] |= {"supported": True, "p_value": 0.0104, "qualifiers": ["a pilot"]}
    row["figures"]["amended"] = {}
    row["confirmation"] |= {"direction": "P was ahead.", "disjoint": True, "shared_units": 0}
    row["setting_differs"] = {"seat": ["loop", "oneshot"]}
    text = markdown_report(document_of(replace(facts, confirms=[row])))
    for line in (
        "| verdict | supported | not supported |",
        "| p | 0.0104 | 1 |",
        "| qualifiers | a pilot | none |",
        "- It claims another direction than the discovery registered or saw: P was ahead.",
        "units 0 are among the discovery's 3, as declared disjoint;",
        "- Not as in the discovery: seat was loop, is oneshot.",
        "- The discovery was amended; its frozen reading is shown",
    ):
        assert line in text


def test_the_command_promotes_and_refuses_with_its_code(proctor: Any, discovery: Path, tmp_path: Path) -> None:
    """0 with the head and what comes next, 3 for a gate, 2 for what isn't there; JSON is what the line says."""
    target = confirmation_of(discovery.name, tmp_path)
    tried = proctor("promote", discovery, "P over B", "--to", target, "--dry-run")
    assert (tried.code, tried.out.splitlines()[-1]) == (0, "it could be promoted: nothing was written")
    assert "  discovery, no evidence in what follows: b01 0, b10 0, p 1\n" in tried.out
    done = proctor("promote", discovery, "P over B", "--to", target)
    assert done.code == 0
    assert f"head {(discovery / 'head').read_text().strip()}" in done.out
    assert f"next: proctor freeze {target}" in done.out
    again = proctor("promote", discovery, "P over B", "--to", target, "--json")
    assert (again.json["again"], again.json["line"]) == (True, (discovery / "head").read_text().strip())
    other = confirmation_of(discovery.name, tmp_path, name="other", namespace="other")
    refused = proctor("promote", discovery, "P over B", "--to", other)
    assert (refused.code, refused.err.startswith("proctor: refused: promotion: this effect was promoted")) == (3, True)
    assert proctor("promote", discovery, "nothing", "--to", target).code == 2
    unpaired = confirmation_of(
        discovery.name, tmp_path, name="f", namespace="third", effect="unpaired", change=as_fisher
    )
    assert "passed 3 and 3, p 1\n" in proctor("promote", discovery, "unpaired", "--to", unpaired, "--dry-run").out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda text: text.replace('contrast = "P over B"\npromotion', 'contrast = "P ovr B"\npromotion'),
            "Did you mean",
        ),
        (lambda text: text + text[text.index("[[confirms]]") :], "contrast 'P over B' stands 2 times: expected once"),
        (lambda text: text.replace('discovery = "d"', 'discovery = "../d"'), "String should match pattern"),
        (lambda text: text.replace("promotion =", "promoted ="), "unknown key 'promoted'. Did you mean 'promotion'"),
    ],
)
def test_a_table_that_says_what_it_may_not_is_refused(change: Any, words: str, tmp_path: Path) -> None:
    """A contrast that isn't there, the same one twice, an unknown key."""
    with pytest.raises(ExperimentError, match=re.escape(words)):
        load_experiment(confirmation_of("d", tmp_path, change=change))


def test_a_frozen_contrast_is_found_by_its_name(original: Path) -> None:
    """And what was registered of it is a part of the effect."""
    registration = load_registration(original)
    assert contrast_of(registration, "B under P").alternative == "less"
    assert effect_of(registration, "P over B").setting["referee"] == "null"
