"""The options of the seat `command`: what can't be used is refused when the experiment is read, by its name and value."""

from __future__ import annotations

from typing import Any

import pytest

from cells.parts import SourceOrigin, assemble
from harness.errors import ExperimentError, PluginError, TaskError
from harness.experiment import parse_experiment
from harness.seats.command import CommandSeat
from harness.seats.placeholders import filled

GOOD: dict[str, Any] = {"argv": ["agent"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"argv": []}, r"argv is \[\]: expected a list of words"),
        ({"argv": "agent"}, "argv is 'agent': expected a list of words"),
        ({"argv": ["agent", 1]}, "argv has 1: expected texts"),
        ({"argv": ["agent", "a\0"]}, "expected texts without NUL"),
        ({"argv": ["agent", "\ud800"]}, "character 0 is not encodable"),
        ({"argv": [" "]}, "argv begins with ' ': expected the name or path of a program"),
        ({"argv": ["-x"]}, "argv begins with '-x'"),
        ({"argv": ["{seat.model}"]}, "argv begins with '{seat.model}'"),
        ({"argv": ["agent", "{seat.modl}"]}, "unknown placeholder 'modl'. Did you mean 'model'?"),
        ({"argv": ["agent", "{seat.}"]}, "unknown placeholder ''"),
        ({"wire": "grpc"}, "wire: unknown name 'grpc'"),
        ({"wire": None}, "wire: unknown name 'None'"),
        ({"model_name": ""}, "model_name is '': expected text"),
        ({"model_name": "a b"}, "model_name is 'a b': expected letters, digits"),
        ({"instruction_file": "/etc/x"}, "instruction_file: '/etc/x' is not a relative path"),
        ({"instruction_file": "../x"}, "instruction_file"),
        ({"files": []}, r"files is \[\]: expected a table of texts"),
        ({"files": {"a": 1}}, "files has 'a' = 1: expected texts"),
        ({"files": {"../a": "x"}}, "files: "),
        ({"files": {"instruction.md": "x"}}, "files has 'instruction.md', which is the instruction's file"),
        ({"files": {"a": "x", "./a": "y"}}, "files has 'a', which is there twice"),
        ({"files": {"instruction.md/a": "x"}}, "files has 'instruction.md/a' below 'instruction.md', which is a file"),
        ({"files": {"a/b": "x", "a": "y"}}, "files has 'a/b' below 'a', which is a file"),
        ({"files": {"a": "x" * ((1 << 20) + 1)}}, "files.a has 1048577 bytes: expected 1048576 at most"),
        ({"files": {"a": "{seat.instruction}"}}, "unknown placeholder 'instruction'"),
        ({"environment": {"A B": "x"}}, "environment has 'A B': expected a variable's name"),
        ({"environment": {"A": "x\0"}}, "environment.A has a NUL"),
        ({"environment": {"MY_API_KEY": "x"}}, "sounds like a secret.*key_variables"),
        ({"environment": {"GITHUB_TOKEN": "x"}}, "sounds like a secret"),
        ({"environment": {"A": "{seat.instruction}"}}, "unknown placeholder 'instruction'"),
        ({"key_variables": "A"}, "key_variables is 'A': expected a list"),
        ({"key_variables": ["A=B"]}, "key_variables has 'A=B'"),
        ({"key_variables": ["A", "A"]}, "key_variables has 'A' twice"),
        ({"timeout_s": 0}, "timeout_s is 0: expected seconds"),
        ({"timeout_s": float("nan")}, "timeout_s is nan"),
        ({"timeout_s": float("inf")}, "timeout_s is inf"),
        ({"output_bytes": 0}, "output_bytes is 0: expected a whole number from 256"),
        ({"output_bytes": True}, "output_bytes is True"),
        ({"success_statuses": []}, r"success_statuses is \[\]: expected a list"),
        ({"success_statuses": [256]}, "success_statuses is 256: expected a whole number from 0 to 255"),
        ({"success_statuses": [True]}, "success_statuses is True"),
    ],
)
def test_what_cant_be_used_is_refused(options: dict[str, Any], said: str) -> None:
    """Each refusal names the option, the value and what was expected."""
    with pytest.raises(PluginError, match=said):
        CommandSeat(**{**GOOD, **options})


def test_options_are_pinned_as_they_are() -> None:
    """What a registration pins is every option, placeholders unfilled, and makes the same seat again."""
    seat = CommandSeat(argv=["a", "{seat.model}"], files={"./x/y": "{seat.home}"}, environment={"A": "1"}, timeout_s=5)
    assert seat.options()["files"] == {"x/y": "{seat.home}"}
    assert CommandSeat(**seat.options()).options() == seat.options()


def test_other_braces_stay() -> None:
    """Only the seat's own placeholders are filled: templates, JSON and shells keep their braces."""
    text = '{"a": {"b": 1}} {{task}} ${x} {seat} {seat.a} {seat.a}'
    assert filled(text, {"a": "{seat.b}"}) == '{"a": {"b": 1}} {{task}} ${x} {seat} {seat.b} {seat.b}'


EXPERIMENT = """
name = "agents"
question = "Does it?"
arms = ["plain"]
[[tasks]]
source = "tasks"
[[models]]
name = "m"
provider = "scripted"
model = "m"
[seat]
kind = "command"
seed_namespace = "tests"
options = { argv = ["agent"], wire = "anthropic" }
[referee]
name = "null"
[workspace]
backend = "bubblewrap"
[analysis]
"""


@pytest.mark.parametrize(
    ("fence", "said"),
    [
        ("", r"fence.network is 'none': write network = \"gateway\" into \[fence\]"),
        (
            '[fence]\nnetwork = "gateway"\ngateway = { wires = ["openai"] }\n',
            "speaks the wire 'anthropic', and .*add it",
        ),
    ],
)
def test_a_fence_that_gives_it_no_model_is_refused(tmp_path, fence: str, said: str) -> None:
    """A freeze says what to write, before anything is pinned."""
    experiment = parse_experiment(EXPERIMENT + fence)
    with pytest.raises(ExperimentError, match=said):
        assemble(experiment, SourceOrigin(tmp_path))


def test_a_fence_with_its_wire_is_taken(tmp_path) -> None:
    """With the gateway and the wire there is nothing to say against it: the next thing that is missing is the task."""
    experiment = parse_experiment(EXPERIMENT + '[fence]\nnetwork = "gateway"\n')
    with pytest.raises(TaskError):
        assemble(experiment, SourceOrigin(tmp_path))
