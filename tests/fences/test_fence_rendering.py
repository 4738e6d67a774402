"""One policy renders every layer, and each rule tells where it came from."""

from __future__ import annotations

import pytest

from fences.policy import FencePolicy
from fences.rendering import check_requires, provenance, render
from harness.errors import GateRefused
from harness.permissions import check
from harness.walls import Caps, Walls


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
    assert {row.layer.split()[0] for row in rows} == {"container", "mounts", "tool", "gateway"}
    assert "workspace.limits.pids" in {row.came_from for row in rows}


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
