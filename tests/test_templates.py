"""What `proctor init` writes: it parses, it shows every key there is, and what it says of defaults is so."""

import re
import tomllib
from importlib.resources import files
from typing import Any

import pytest
from pydantic import BaseModel

from fences.policy import FencePolicy
from harness.errors import ExperimentError
from harness.experiment import Experiment, parse_experiment
from harness.figure_refs import FigureRef
from harness.regions import Region
from harness.seats.oneshot import OneShotSeat
from harness.tasks.evalplus import load_evalplus
from referees.evalplus import EvalPlusReferee
from referees.evalplus_options import EvalPlusOptions

FOLDER = files("cells").joinpath("templates")
TEXT = FOLDER.joinpath("experiment.toml").read_text("utf-8")
BEHIND = re.compile(r"(?m)^( *)#(?! |$)")
"""A `#` that a key stands behind; one with a space behind it starts a sentence."""

UNCOMMENTED = BEHIND.sub(r"\1", TEXT)


def tables_in(annotation: Any) -> list[type[BaseModel]]:
    """The tables inside an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in tables_in(part)]


ANYWHERE = (FigureRef, Region)
"""Tables whose keys stand in several others, that name a figure or a region: shown in one of them, they are shown."""


def owner(table: type[BaseModel], name: str) -> str:
    """The table that a key is one of."""
    return next((base for base in ANYWHERE if issubclass(table, base) and name in base.model_fields), table).__name__


def fields_of(table: type[BaseModel], seen: set[type[BaseModel]]) -> set[tuple[str, str]]:
    """Every `(table, key)` that an experiment file can have from `table` on."""
    if table in seen:
        return set()
    seen.add(table)
    found = {(owner(table, name), name) for name in table.model_fields}
    for field in table.model_fields.values():
        for inner in tables_in(field.annotation):
            found |= fields_of(inner, seen)
    return found


def shown(value: Any, tables: list[type[BaseModel]]) -> set[tuple[str, str]]:
    """Every `(table, key)` that stands in the parsed data `value`."""
    if isinstance(value, list):
        return {pair for item in value for pair in shown(item, tables)}
    if not isinstance(value, dict):
        return set()
    found = set()
    for table in tables:
        for name in set(value) & set(table.model_fields):
            found.add((owner(table, name), name))
            found |= shown(value[name], tables_in(table.model_fields[name].annotation))
    return found


def test_the_template_is_a_valid_experiment():
    """As it stands it parses, makes its seat, referee and fence, and its models can be had from two places."""
    experiment = parse_experiment(TEXT)
    assert experiment.arm_names() == ["B", "P"]
    assert [(way.provider, way.model) for way in experiment.models[0].ways()] == [
        ("ollama", "smollm2:135m"),
        ("local", "smollm2-135m-instruct"),
    ]
    assert experiment.workspace.backend == "auto"
    assert OneShotSeat(**experiment.seat.options).options()["rounds"] == 2
    assert EvalPlusReferee(experiment.referee.options).name == "evalplus"
    assert FencePolicy.from_mapping(experiment.fence) == FencePolicy()


def test_every_key_of_the_experiment_file_stands_in_it():
    """A key that the code has and the template does not show, set or behind a `#`, is a gap."""
    known = fields_of(Experiment, set())
    assert len(known) > 80
    assert known - shown(tomllib.loads(UNCOMMENTED), [Experiment]) == set()


def test_a_missing_key_would_be_seen():
    """The check above says no: without one line, its key is missing."""
    without = tomllib.loads(UNCOMMENTED.replace("workspace_inodes = 20_000\n", "", 1))
    missing = fields_of(Experiment, set()) - shown(without, [Experiment])
    assert missing == {("LimitsEntry", "workspace_inodes")}


def test_every_key_behind_a_hash_is_known_and_has_a_valid_value():
    """With every `#` taken away the whole file still parses, and so do the options of its parts."""
    experiment = parse_experiment(UNCOMMENTED)
    assert experiment.arm_names() == ["B", "P", "mine", "mine-too", "LINUCB"]
    assert [model.name for model in experiment.models] == ["small", "hosted"]
    assert set(OneShotSeat(**experiment.seat.options).options()) >= set(experiment.seat.options)
    assert FencePolicy.from_mapping(experiment.fence, experiment.workspace.limits.model_dump()) == FencePolicy()
    assert set(experiment.fence) == {key for key in FencePolicy().to_json() if key != "limits"}
    assert set(experiment.referee.options) == set(EvalPlusOptions.model_fields)
    assert EvalPlusOptions(**experiment.referee.options) == EvalPlusOptions()


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The values of nested tables by their path."""
    if isinstance(value, dict) and value:
        return {key: leaf for name, inner in value.items() for key, leaf in leaves(inner, f"{path}.{name}").items()}
    if isinstance(value, (list, tuple)) and any(isinstance(item, dict) for item in value):
        return {
            key: leaf for index, inner in enumerate(value) for key, leaf in leaves(inner, f"{path}.{index}").items()
        }
    return {path: value}


def test_a_value_behind_a_hash_is_the_default():
    """What is shown behind a `#` is what holds without it, but for keys whose default is nothing at all."""
    as_it_stands = leaves(parse_experiment(TEXT).model_dump(mode="json"))
    everything = leaves(parse_experiment(UNCOMMENTED).model_dump(mode="json"))
    elsewhere = re.compile(r"\.(arms|fence|seat\.options|referee\.options)\b")  # looked at above
    differ = {path: value for path, value in as_it_stands.items() if everything.get(path) != value}
    assert ".tasks.0.cap" in differ
    for path, value in differ.items():
        assert value in (None, [], {}) or elsewhere.match(path), path
    assert OneShotSeat(**parse_experiment(UNCOMMENTED).seat.options).options() == OneShotSeat().options()


@pytest.mark.parametrize(
    ("was", "typo", "nearest"),
    [
        ("#replicates", "replicate", "replicates"),
        ("#temperature", "temprature", "temperature"),
        ("#pids", "pid", "pids"),
        ("#draw", "drew", "draw"),
        ("#alpha", "alfa", "alpha"),
        ("treatment", "treatmnet", "treatment"),
        ("wall_s", "wall", "wall_s"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_nearest_one(was, typo, nearest):
    """Whatever its table, an unknown key stops the experiment and names the one that was meant."""
    text = re.sub(rf"(?m)^{was} =", f"{typo} =", TEXT, count=1)
    assert text != TEXT
    with pytest.raises(ExperimentError, match=rf"unknown key '{typo}'. Did you mean '{nearest}'\?"):
        parse_experiment(text)


def test_the_tasks_can_be_read(tmp_path):
    """The template's tasks are in the schema that its source names, and each example in a prompt is right."""
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(FOLDER.joinpath("tasks.jsonl").read_bytes())
    tasks = load_evalplus(path)
    assert [task.open.name for task in tasks] == tomllib.loads(UNCOMMENTED)["tasks"][0]["ids"]
    import doctest

    for task in tasks:
        space: dict[str, Any] = {}
        exec(task.sealed.solution.files["solution.py"].data, space)  # noqa: S102 - our own text, on the page above
        function = space[task.open.details["entry_point"]]
        (found,) = doctest.DocTestFinder(recurse=False).find(function, globs=space)
        assert found.examples
        assert doctest.DocTestRunner(verbose=False).run(found).failed == 0
