"""A repository that is given to a seat holds nothing that is later than what is checked out, and is never run."""

import os
import shutil
import subprocess

import pytest

from harness.tasks.leaks import scan_open_half
from harness.tree import Tree
from tests.tasks.test_leaks import SOLUTION, task

GIT = shutil.which("git")
pytestmark = pytest.mark.usefixtures("git_is_here")


@pytest.fixture
def git_is_here():
    """The tests make real repositories; what they test needs no git."""
    assert GIT, "these tests make repositories with git: install it"


class Repository:
    """A real repository in a temporary folder."""

    def __init__(self, folder, *options):
        self.folder = folder
        folder.mkdir()
        self("init", "-q", "-b", "main", *options)
        self.base = self.commit("a.py", "value = 1\n")

    def __call__(self, *words):
        """Run git, untouched by whoever runs the tests."""
        names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a", "GIT_COMMITTER_NAME": "a"}
        env = {**names, "GIT_COMMITTER_EMAIL": "a@a", "PATH": os.environ["PATH"], "HOME": str(self.folder)}
        done = subprocess.run([GIT, *words], cwd=self.folder, env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, name, text):
        """One more commit, by its id."""
        (self.folder / name).write_text(text)
        self("add", "-A")
        self("commit", "-q", "-m", f"change {name}")
        return self("rev-parse", "HEAD")

    def leaks(self, **card):
        """What is found when the seat is given this folder."""
        tree = Tree.from_folder(self.folder)
        return [str(leak) for leak in scan_open_half(task({path: tree[path] for path in tree}, leaks=card)).leaks]


@pytest.fixture
def repository(tmp_path):
    """One commit, checked out."""
    return Repository(tmp_path / "repository")


def test_a_history_up_to_the_present_is_no_leak(repository):
    """Older commits, tags and branches on them are the seat's to have, packed or loose."""
    repository.commit("b.py", "value = 2\n")
    repository("tag", "v1", repository.base)
    repository("branch", "older", repository.base)
    assert repository.leaks() == []
    repository("gc", "-q")
    assert repository.leaks() == []


def ahead(repository):
    """A later commit that `main` was taken back from."""
    later = repository.commit("a.py", SOLUTION)
    repository("reset", "-q", "--hard", repository.base)
    return later


def by_branch(repository):
    """On a branch."""
    repository("branch", "fix", ahead(repository))


def by_tag(repository):
    """Under a tag with a message."""
    repository("tag", "-a", "-m", "the fix", "v2", ahead(repository))


def by_remote(repository):
    """As fetched from somewhere."""
    repository("update-ref", "refs/remotes/origin/main", ahead(repository))


def by_notes(repository):
    """Under a namespace that no command lists."""
    repository("update-ref", "refs/original/main", ahead(repository))


def by_reflog(repository):
    """Only the log of what was checked out names it."""
    ahead(repository)


def by_stash(repository):
    """In the stash."""
    (repository.folder / "a.py").write_text(SOLUTION)
    repository("stash", "-q")


def dangling(repository):
    """Nothing names it any more."""
    ahead(repository)
    repository("reflog", "expire", "--expire=now", "--all")


def packed_refs(repository):
    """All references and objects in packs."""
    repository("branch", "fix", ahead(repository))
    repository("pack-refs", "--all")
    repository("repack", "-adq", "--keep-unreachable")


@pytest.mark.parametrize("hide", [by_branch, by_tag, by_remote, by_notes, by_reflog, by_stash, dangling, packed_refs])
def test_a_later_commit_is_found_wherever_it_hides(repository, hide):
    """Both the commit, by who names it, and the sealed text in its blob."""
    hide(repository)
    found = repository.leaks()
    assert any("is not in the history of what is checked out" in leak for leak in found)
    assert any("passages of the sealed solution/intervals.py" in leak for leak in found)


def test_a_blob_that_no_commit_has_is_found(repository):
    """`git add` alone leaves an object behind."""
    (repository.folder / "x").write_text(SOLUTION)
    repository("add", "x")
    repository("rm", "-q", "--cached", "x")
    (repository.folder / "x").unlink()
    assert any(".git:" in leak and "solution/intervals.py" in leak for leak in repository.leaks())


def test_a_pruned_repository_is_clean_again(repository):
    """The way out that the message names works."""
    ahead(repository)
    assert repository.leaks()
    repository("reflog", "expire", "--expire=now", "--all")
    for name in ("ORIG_HEAD",):
        (repository.folder / ".git" / name).unlink(missing_ok=True)
    repository("gc", "-q", "--prune=now")
    assert repository.leaks() == []


def test_a_forbidden_commit_that_still_resolves_is_found(repository):
    """Even where it is in the history; one that is not there is none."""
    later = repository.commit("b.py", "value = 2\n")
    assert repository.leaks(forbidden_commits=["0123456789"]) == []
    (found,) = repository.leaks(forbidden_commits=[later[:10].upper()])
    assert f"the forbidden commit {later[:10].upper()} still resolves, to {later}" in found


def test_objects_of_elsewhere_are_told_and_not_opened(repository, tmp_path):
    """Alternates would have the harness read any folder of the host."""
    other = Repository(tmp_path / "other")
    other.commit("a.py", SOLUTION)
    info = repository.folder / ".git" / "objects" / "info"
    info.mkdir(exist_ok=True)
    (info / "alternates").write_text(f"{other.folder}/.git/objects\n")
    (found,) = repository.leaks()
    assert "alternates: takes objects from elsewhere" in found


def test_a_worktree_s_pointer_is_told(tmp_path):
    """A `.git` file leads to another folder."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text("gitdir: /somewhere/else\n")
    tree = Tree.from_folder(tmp_path)
    (leak,) = scan_open_half(task({path: tree[path] for path in tree})).leaks
    assert "leads elsewhere" in str(leak)


def test_submodules_are_looked_into(repository, tmp_path):
    """A submodule's own store, kept in the outer repository."""
    inner = Repository(tmp_path / "inner")
    ahead(inner)
    repository("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.folder), "sub")
    repository("commit", "-q", "-m", "sub")
    for file in (inner.folder / ".git" / "objects").glob("??/*"):
        target = repository.folder / ".git/modules/sub/objects" / file.parent.name / file.name
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            shutil.copy(file, target)
    (repository.folder / "sub" / ".git").unlink()
    assert any(".git/modules/sub: commit" in leak for leak in repository.leaks())


def test_nothing_of_a_repository_s_runs(repository, tmp_path):
    """Hooks, filters, pagers and fsmonitor of a hostile configuration are never started."""
    ran = tmp_path / "ran"
    config = repository.folder / ".git" / "config"
    with config.open("a") as out:
        out.write(
            f"[core]\n\tfsmonitor = touch {ran}\n\tpager = touch {ran}\n\thooksPath = /tmp\n"
            f'[filter "x"]\n\tsmudge = touch {ran}\n\tclean = touch {ran}\n[include]\n\tpath = /dev/zero\n'
        )
    (repository.folder / ".gitattributes").write_text("* filter=x\n")
    for hook in ("post-checkout", "post-index-change", "pre-commit"):
        path = repository.folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ran}\n")
        path.chmod(0o755)
    assert repository.leaks() == []
    assert not ran.exists()


def test_damaged_objects_are_told(repository):
    """A cut or forged object is named as not looked into; nothing fails."""
    objects = sorted((repository.folder / ".git" / "objects").glob("??/*"))
    objects[0].chmod(0o644)
    objects[0].write_bytes(objects[0].read_bytes()[:8])
    (repository.folder / ".git/objects/zz").mkdir()
    (repository.folder / ".git/objects/zz/odd").write_bytes(b"x")
    tree = Tree.from_folder(repository.folder)
    report = scan_open_half(task({path: tree[path] for path in tree}))
    assert {item.what.split(":")[0] for item in report.unread} >= {
        "it can't be read",
        "no file of git's that is known here",
    }


def test_a_bare_repository_that_is_the_whole_environment_is_looked_into(repository):
    """There is no folder's name by which it would be known."""
    ahead(repository)
    repository("gc", "-q")
    inner = repository.folder / ".git"
    for path in list(inner.iterdir()):
        path.rename(repository.folder / path.name)
    inner.rmdir()
    found = repository.leaks()
    assert any("solution/intervals.py" in leak for leak in found)
    assert any("not in the history" in leak for leak in found)


def test_a_repository_that_nobody_here_can_read_is_refused(tmp_path):
    """One with SHA-256 names, loose and packed."""
    other = Repository(tmp_path / "other", "--object-format=sha256")
    assert ["SHA-256" in leak for leak in other.leaks()] == [True]
    other("gc", "-q")
    assert ["SHA-256" in leak for leak in other.leaks()] == [True]


def test_a_damaged_pack_is_refused_and_breaks_nothing(repository):
    """What it holds can't be told."""
    for ending in ("pack", "idx"):
        (repository.folder / f".git/objects/pack/pack-{'a' * 40}.{ending}").write_text("x")
    assert ["can't be read" in leak for leak in repository.leaks()] == [True]
