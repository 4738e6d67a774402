"""The policy refuses what contradicts itself, and says what was expected."""

from __future__ import annotations

from datetime import date

import pytest

from fences.policy import FencePolicy
from harness.errors import ExperimentError
from harness.walls import Caps


def test_the_default_policy_is_sealed():
    """Without a word in the experiment file a seat has its workspace, and nothing else."""
    policy = FencePolicy.from_mapping({})
    assert (policy.readable, policy.writable, policy.network) == (("/workspace",), ("/workspace",), "none")
    assert dict(policy.environment) == {}
    assert "network" in policy.guarantees
    assert "host-file" in policy.measured


def test_tables_of_the_file_feed_it():
    """`[fence]` and `[workspace.limits]` land in the policy as they stand."""
    policy = FencePolicy.from_mapping({"denied": ["/srv"], "tools": ["read"]}, {"pids": 7})
    assert (policy.denied, policy.tools, policy.limits.pids) == (("/srv",), ("read",), 7)


@pytest.mark.parametrize(
    ("fence", "limits", "said"),
    [
        ({"reedable": []}, {}, "Did you mean 'readable'"),
        ({"limits": {}}, {}, "unknown key 'limits'"),
        ({}, {"memry_bytes": 1}, "Did you mean 'memory_bytes'"),
        ({"readable": "/workspace"}, {}, "fence.readable"),
        ({"readable": [7]}, {}, "fence.readable.0"),
        ({}, {"pids": "many"}, "workspace.limits.pids"),
        ({}, {"cpus": float("nan")}, "workspace.limits.cpus"),
        ({}, {"cpus": float("inf")}, "workspace.limits.cpus"),
        ({}, {"pids": 0}, "above 0"),
        ({}, {"workspace_bytes": 2 << 30}, "memory_bytes"),
        ({}, {"memory_bytes": (336 << 20) + (32 << 20) - 1}, "to start a program"),
    ],
)
def test_what_is_not_a_policy_is_refused(fence, limits, said):
    """Unknown keys, wrong types, NaN, infinities and limits that can't be kept are refused, and named."""
    with pytest.raises(ExperimentError, match=said.replace(".", r"\.")):
        FencePolicy.from_mapping(fence, limits)


@pytest.mark.parametrize("kind", ["readable", "writable", "denied"])
@pytest.mark.parametrize(
    "root",
    [
        "",
        "workspace",
        "/workspace/",
        "/a/../b",
        "./a",
        "/a//b",
        "/workspace/*",
        "/w?",
        "/[ab]",
        "/{a,b}",
        "/~",
        "/$HOME",
    ],
)
def test_an_unset_or_unclear_root_refuses(kind, root):
    """An empty, relative or sloppy root refuses the whole policy: it never means 'everything' or 'nothing'."""
    roots = {"readable": ["/workspace"], "writable": ["/workspace"], "denied": []}
    with pytest.raises(ExperimentError, match=f"fence.{kind}"):
        FencePolicy.from_mapping({**roots, kind: [*roots[kind], root]})


@pytest.mark.parametrize(
    "key", ["mounts", "volumes", "binds", "capabilities", "system_calls", "host_namespaces", "image"]
)
def test_nothing_of_the_hosts_has_a_key(key):
    """No key shows a path of the host or takes a wall down: such a thing is asked for by a probe's control alone."""
    with pytest.raises(ExperimentError, match=f"unknown key '{key}'"):
        FencePolicy.from_mapping({key: ["/etc"]})


@pytest.mark.parametrize("denied", ["/workspace", "/workspace/.git", "/"])
def test_denied_and_workspace_are_disjoint(denied):
    """A denied root that is, is in, or holds the workspace refuses: the seat would be denied its own folder."""
    with pytest.raises(ExperimentError, match="workspace"):
        FencePolicy(denied=(denied,))


def test_a_sibling_of_the_workspace_may_be_denied():
    """Disjointness is by containment: a sibling with the same prefix is no part of the workspace."""
    assert FencePolicy(denied=("/workspace-evil",)).denied == ("/workspace-evil",)


@pytest.mark.parametrize(
    ("roots", "said"),
    [
        ({"readable": ()}, "expected it to hold '/workspace'"),
        ({"readable": ("/", "/workspace")}, "holds '/'"),
        ({"readable": ("/workspace-evil",)}, "expected it to hold '/workspace'"),
        ({"writable": ("/workspace", "/etc")}, "read-only"),
        ({"writable": ("/tmp/a",)}, "in no readable root"),
        ({"readable": ("/workspace", "/home/doc")}, "denied wins"),
    ],
)
def test_roots_that_contradict_each_other_refuse(roots, said):
    """A seat that can't read its workspace, a writable root the walls don't give, and a dead root are refused."""
    with pytest.raises(ExperimentError, match=said):
        FencePolicy(**roots)


@pytest.mark.parametrize("network", ["host", "bridge", "", "None"])
def test_any_network_is_refused_with_a_reason(network):
    """A seat has no network, or the gateway alone; the refusal says which and what for."""
    with pytest.raises(ExperimentError, match="or 'gateway' for a foreign agent"):
        FencePolicy(network=network)


@pytest.mark.parametrize("name", ["API_KEY", "openai_api_key", "HF_TOKEN", "SECRET", "DB_PASSWORD", "AUTH"])
def test_a_variable_that_sounds_like_a_secret_is_refused(name):
    """Nothing that is named like a secret goes into a workspace."""
    with pytest.raises(ExperimentError, match="secret"):
        FencePolicy(environment={name: "x"})


@pytest.mark.parametrize("name", ["MONKEY", "PYTHONPATH", "TOKENIZERS_PARALLELISM", "KEYBOARD"])
def test_a_variable_that_only_holds_such_letters_is_not(name):
    """A name is looked at by its words, not by its letters."""
    assert FencePolicy(environment={name: "x"}).environment == {name: "x"}


@pytest.mark.parametrize(
    "given",
    [
        {"environment": {"1A": "x"}},
        {"environment": {"A": "x\0y"}},
        {"tools": ("Read",)},
        {"must_work": ("fly",)},
        {"requires": ("probe:",)},
        {"requires": ("network", "network")},
    ],
)
def test_names_are_checked(given):
    """Variables, tools, abilities and requirements that can't be what they should be are refused."""
    with pytest.raises(ExperimentError):
        FencePolicy(**given)


def test_the_digest_is_of_the_meaning():
    """Equal policies have one digest however they are ordered; any other value has another."""
    one = FencePolicy(denied=("/a", "/b"), environment={"A": "1", "B": "2"})
    assert one.digest == FencePolicy(denied=("/b", "/a"), environment={"B": "2", "A": "1"}).digest
    others = [
        FencePolicy(denied=("/a",), environment={"A": "1", "B": "2"}),
        FencePolicy(denied=("/a", "/b"), environment={"A": "1", "B": "3"}),
        FencePolicy(denied=("/a", "/b"), environment={"A": "1", "B": "2"}, limits=Caps(pids=1)),
        FencePolicy(denied=("/a", "/b"), environment={"A": "1", "B": "2"}, must_work=()),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"background": "yes"}, r"fence\.background: .*boolean, got 'yes'"),
        ({"ptrace": 1}, r"fence\.ptrace: .*boolean, got 1"),
        ({"gateway": {"connections": True}}, r"fence\.gateway\.connections: .*integer, got True"),
        ({"gateway": {"body_bytes": float("nan")}}, r"fence\.gateway\.body_bytes: .*got nan"),
        ({"gateway": {"arrival_s": "10"}}, r"fence\.gateway\.arrival_s: .*number, got '10'"),
        ({"gateway": {"bodybytes": 1}}, r"fence\.gateway: unknown key 'bodybytes'. Did you mean 'body_bytes'"),
        ({"gateway": "openai"}, r"fence\.gateway: .*got 'openai'"),
        ({"environment": {"DAY": date(2026, 1, 2)}}, r"fence holds datetime\.date\(2026, 1, 2\): expected texts"),
        ({"readable": "/workspace"}, r"fence\.readable: .*got '/workspace'"),
    ],
)
def test_a_file_holds_values_of_the_right_type(given, message):
    """Nothing is made into a switch or a number that is none: what a person did not write opens no wall."""
    with pytest.raises(ExperimentError, match=message):
        FencePolicy.from_mapping(given)


def test_whole_seconds_are_seconds():
    """TOML writes 10 where 10.0 is meant; a list is a list."""
    policy = FencePolicy.from_mapping({"gateway": {"arrival_s": 10, "wires": ["openai"]}, "readable": ["/workspace"]})
    assert (policy.gateway.arrival_s, policy.gateway.wires) == (10.0, ("openai",))
