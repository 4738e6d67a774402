"""Promotions: both ends say so, each tells that the other is another, and nothing of a discovery is pooled."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from cells.audit.auditing import audit_run
from cells.declared.opening import read_declared
from cells.freeze import reopen
from cells.freeze_view import freeze_lines
from cells.promotion.effect import contrast_of, effect_of
from cells.promotion.fitting import Discovered, unfit
from cells.promotion.unpooled import refuse_pooled
from cells.report import document_of
from cells.report_facts import facts_to_json, run_facts
from cells.report_files import write_document
from cells.report_markdown import markdown_report
from cells.verifying import verify_run
from harness.clock import SystemClock
from harness.confirmation import ConfirmsEntry
from harness.errors import DeclarationError, ExperimentError
from harness.experiment import load_experiment
from harness.registration import load_registration
from tests.cells.audited import changed, rechained, reregistered, without
from tests.cells.linked import Linked, as_fisher, both, discovery, house, linked, original
from tests.cells.promoted import confirmation_of, frozen_at
from tests.cells.test_cli import proctor

__all__ = ["both", "discovery", "house", "linked", "original", "proctor"]


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
