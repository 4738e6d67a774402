"""The rules' own check: containment of parts, denied wins, and anything unclear refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.permissions import check, contains, normal
from harness.walls import ToolRules

TOOLS = frozenset({"read", "write", "edit", "list", "search", "run"})
RULES = ToolRules(
    tools=TOOLS,
    readable=("/workspace", "/usr/share/doc"),
    writable=("/workspace/src",),
    denied=("/sealed", "/usr/share/doc/private"),
)


@pytest.mark.parametrize("path", ["/workspace", "/workspace/a", "a/b", ".", "/workspace//a/./b", "//workspace/a"])
def test_a_path_in_the_workspace_is_readable(path):
    """Absolute, relative and sloppy spellings of a path inside a readable root are allowed, with that root named."""
    answer = check(RULES, "read", path)
    assert (answer.allowed, answer.root) == (True, "/workspace")


@pytest.mark.parametrize("path", ["/workspace-evil/a", "/workspaces", "/workspac", "/", "/etc/passwd", "/usr/share"])
def test_a_sibling_with_the_same_prefix_is_not_inside(path):
    """Containment is by parts: neither a longer name, a shorter one nor a parent counts as inside."""
    answer = check(RULES, "read", path)
    assert not answer.allowed
    assert "readable" in answer.why


@pytest.mark.parametrize("path", ["..", "../etc/passwd", "/workspace/../etc/passwd", "a/../../b", "/workspace/.."])
def test_dot_dot_is_refused(path):
    """A `..` refuses wherever it stands, also where it would stay inside: a link before it changes its meaning."""
    answer = check(RULES, "read", path)
    assert not answer.allowed
    assert "'..'" in answer.why


@pytest.mark.parametrize("path", ["", "a\0b", "\udcff", None, 7])
def test_a_name_that_is_no_path_is_refused(path):
    """An empty name, a NUL, bytes that are no text, and other types refuse rather than fail."""
    assert not check(RULES, "read", path).allowed


@pytest.mark.parametrize("name", ["...", "a..b", "..a", "-rf", "*", "a\nb"])
def test_odd_names_inside_are_just_names(name):
    """Only a whole part `..` is special: no globbing, no option, no other dots."""
    assert check(RULES, "read", name).path == f"/workspace/{name}"


def test_denied_wins():
    """A denied root inside a readable one refuses, and the answer names it."""
    answer = check(RULES, "read", "/usr/share/doc/private/key")
    assert (answer.allowed, answer.root) == (False, "/usr/share/doc/private")


def test_a_walk_is_told_what_to_leave_out():
    """A folder that holds a denied root is allowed, and the denied root is named for the walk to leave out."""
    answer = check(RULES, "search", "/usr/share/doc")
    assert (answer.allowed, answer.excluded) == (True, ("/usr/share/doc/private",))


@pytest.mark.parametrize(
    ("tool", "path", "allowed"),
    [
        ("write", "/workspace/src/a", True),
        ("write", "/workspace/a", False),
        ("edit", "/workspace/src/a", True),
        ("edit", "/workspace/a", False),
        ("list", "/workspace", True),
        ("run", "/workspace", True),
        ("run", "/root", False),
    ],
)
def test_each_tool_needs_its_root(tool, path, allowed):
    """Reading tools need a readable root, `write` a writable one, and `edit` both."""
    assert check(RULES, tool, path).allowed is allowed


def test_edit_needs_a_readable_root_too():
    """A place that is writable and not readable can be written and not edited."""
    rules = ToolRules(tools=TOOLS, readable=(), writable=("/workspace/out",))
    assert check(rules, "write", "/workspace/out/a").allowed
    assert not check(rules, "edit", "/workspace/out/a").allowed


def test_a_tool_that_the_rules_lack_is_refused():
    """An unlisted tool refuses with the known names, also where it starts like a listed one."""
    rules = ToolRules(tools=frozenset({"read"}), readable=("/workspace",), writable=("/workspace",))
    answer = check(rules, "read_and_delete", "a")
    assert not answer.allowed
    assert "Known: read" in answer.why


def test_a_tool_of_unknown_kind_needs_both_roots():
    """A listed tool that we don't know is treated as one that reads and writes."""
    rules = ToolRules(tools=frozenset({"format"}), readable=("/workspace",), writable=())
    assert not check(rules, "format", "a").allowed


@pytest.mark.parametrize("root", ["", "workspace", "/workspace/", "/workspace/../etc", "/workspace//src", "."])
@pytest.mark.parametrize("kind", ["readable", "writable", "denied"])
def test_a_root_that_is_unset_or_unclear_refuses_everything(kind, root):
    """Rules with an unset, relative or sloppy root refuse every path, whichever list it stands in."""
    roots = {"readable": ("/workspace",), "writable": ("/workspace",), "denied": ()}
    rules = ToolRules(tools=TOOLS, **{**roots, kind: (*roots[kind], root)})
    answer = check(rules, "read", "/workspace/a")
    assert not answer.allowed
    assert "root" in answer.why


def test_no_roots_refuse_everything():
    """Empty roots are no roots, never all of them."""
    rules = ToolRules(tools=TOOLS, readable=(), writable=())
    assert not check(rules, "read", "/workspace").allowed
    assert not check(rules, "write", "/workspace/a").allowed


@given(st.lists(st.sampled_from(["a", "b", "ab", "workspace", "..."]), max_size=5), st.integers(0, 5))
def test_containment_agrees_with_parts(parts, cut):
    """A path lies in each of its own parents, and in no folder whose name only starts like one of its parts."""
    path = "/" + "/".join(parts)
    root = "/" + "/".join(parts[:cut])
    assert contains(root, path)
    assert not contains(root + "-evil" if root != "/" else "/-evil", path)
    assert normal(path) == path
