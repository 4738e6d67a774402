"""One policy renders every layer, and each rule tells where it came from."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from fences.policy import FencePolicy
from fences.rendering import check_requires, layer_digests, provenance, render
from harness.errors import GateRefused
from harness.permissions import check
from harness.walls import Caps, GatewayRules, Walls
from tests.fake_workspace import FakeBackend


def test_the_walls_are_sealed():
    """The rendered walls are the sealed state, with the policy's limits and variables and nothing else changed."""
    policy = FencePolicy(environment={"LANG": "C"}, limits=Caps(pids=9))
    assert render(policy, "img").walls == Walls(image="img", caps=Caps(pids=9), environment={"LANG": "C"})


def test_rendering_is_pure():
    """Equal policies render to equal fences."""
    assert render(FencePolicy(denied=("/b", "/a")), "img") == render(FencePolicy(denied=("/a", "/b")), "img")


def test_every_denied_path_meets_every_tool():
    """Each denied root is refused to each tool by the rendered rules, and stands in the provenance for each."""
    policy = FencePolicy(denied=("/root", "/srv"))
    rules = render(policy, "img").rules
    rows = {(row.layer, row.rule, row.came_from) for row in provenance(policy)}
    for tool in policy.tools:
        for root in policy.denied:
            assert not check(rules, tool, f"{root}/x").allowed
            assert (f"tool {tool}", f"never {root}", "fence.denied") in rows


def test_provenance_covers_every_layer():
    """Container, mounts, tools and gateway each have rows, and a limit names its key."""
    rows = provenance(FencePolicy())
    assert {row.layer.split()[0] for row in rows} == {"container", "mounts", "tools", "tool", "gateway"}
    assert "workspace.limits.pids" in {row.came_from for row in rows}


def rules_of(policy):
    """Each layer's rules with where they came from."""
    return {(row.layer, row.rule): row.came_from for row in provenance(policy)}


def test_the_gateways_list_is_rendered_from_the_policy():
    """Each path of each wire of the policy and each cap has its key; a wire that is not listed has no path."""
    policy = FencePolicy(network="gateway", gateway=GatewayRules(wires=("openai",), body_bytes=77))
    rows = rules_of(policy)
    served = [rule for layer, rule in rows if layer == "gateway" and rule.startswith("POST")]
    assert served == ["POST /v1/chat/completions (openai)"]
    assert rows["gateway", "POST /v1/chat/completions (openai)"] == "fence.gateway.wires"
    caps = {item.name for item in fields(GatewayRules)} - {"wires"}
    assert {key.removeprefix("fence.gateway.") for key in rows.values() if key.startswith("fence.gateway.")} == {
        "wires",
        *caps,
    }
    assert rows["gateway", "body_bytes at most 77"] == "fence.gateway.body_bytes"
    assert any(layer == "mounts" and "/run/gateway, read-only" in rule for layer, rule in rows)
    everything = rules_of(FencePolicy(network="gateway"))
    assert sum(rule.startswith("POST") for layer, rule in everything if layer == "gateway") == 6
    assert rules_of(FencePolicy())["gateway", "no address allowed"] == "fence.network"


def test_what_a_policy_loosens_is_shown_with_its_key():
    """Debuggers, and what lives on between two calls."""
    strict, loose = rules_of(FencePolicy()), rules_of(FencePolicy(ptrace=True, background=True))
    changed = {key for key, came_from in loose.items() if key not in strict and came_from.startswith("fence.")}
    assert {loose[key] for key in changed} == {"fence.ptrace", "fence.background"}


@pytest.mark.anyio
async def test_layers_are_equal_exactly_where_their_bytes_are():
    """A layer's digest changes with anything in it, and with nothing of another layer."""
    backend, base = FakeBackend(), FencePolicy()
    before = layer_digests(base, "img", backend)
    assert before == layer_digests(FencePolicy(), "img", backend)
    assert set(before) == {"walls", "tool rules", "gateway"}
    for changed, layer in (
        (replace(base, readable=("/workspace", "/usr/share")), "tool rules"),
        (replace(base, gateway=GatewayRules(requests=5)), "gateway"),
        (replace(base, network="gateway"), "walls"),
    ):
        after = layer_digests(changed, "img", backend)
        assert [name for name in before if before[name] != after[name]] == [layer]


def test_a_tool_shows_only_what_it_needs():
    """A tool that writes shows writable roots, one that reads readable ones, and `edit` both."""
    rows = {(row.layer, row.rule) for row in provenance(FencePolicy())}
    assert ("tool write", "writes below /workspace") in rows
    assert ("tool write", "reads below /workspace") not in rows
    assert ("tool read", "writes below /workspace") not in rows
    assert {("tool edit", "reads below /workspace"), ("tool edit", "writes below /workspace")} <= rows


def test_a_backend_that_gives_what_is_required_passes():
    """Every required guarantee that is enforced lets the run go on; unenforced ones that nobody asked for too."""
    policy = FencePolicy(requires=("network", "probe:vsock"))
    assert check_requires(policy, {"network": None, "cpu": "not here"}) is None


def test_a_guarantee_that_is_not_enforced_refuses():
    """A backend that can't give a required guarantee is refused, with every such guarantee and its reason."""
    policy = FencePolicy(requires=("network", "memory_total", "cpu"))
    with pytest.raises(GateRefused, match=r"memory_total is not enforced: no group.*cpu is not enforced: no quota"):
        check_requires(policy, {"network": None, "memory_total": "no group", "cpu": "no quota"})


def test_a_guarantee_that_nobody_knows_refuses():
    """A misspelt guarantee is not one that holds: it refuses with the nearest known name."""
    with pytest.raises(GateRefused, match="Did you mean 'network'"):
        check_requires(FencePolicy(requires=("netwrok",)), {"network": None})
    with pytest.raises(GateRefused, match=r"Known: network\. Choose another backend"):
        check_requires(FencePolicy(requires=("netwrok",)), {"network": None})
