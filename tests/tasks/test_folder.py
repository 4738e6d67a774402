"""Task folders: what is read into which half, and what is refused, by name and with the next step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import TaskError
from harness.tasks.card import suite_card
from harness.tasks.folder import derive_statement, load_folder, load_folders
from harness.tasks.mutants import mutants
from harness.tasks.statement import statement
from harness.tree import Tree

SYSTEMS = Path(__file__).parents[2] / "examples" / "systems"

TOML = """\
schema_version = "1.4"
[task]
name = "demo/add"
[metadata]
anything = "goes"
[proctor]
benchmark = "demo"
name = "add"
extras = ["hint"]
ids = ["test_add.py::test_small"]
forbidden = ["operator"]
[[proctor.interface]]
module = "solution"
names = ["add"]
"""
FILES = {
    "task.toml": TOML,
    "instruction.md": "Write add(a, b). The word operator is forbidden.\n",
    "extras/hint.md": "Use plus.\n",
    "environment/Dockerfile": "FROM scratch\n",
    "environment/notes.txt": "the seat may read this\n",
    "tests/test.sh": "#!/bin/sh\n",
    "tests/test_add.py": "from solution import add\n\n\ndef test_small():\n    assert add(1, 2) == 3\n",
    "solution/solve.sh": "#!/bin/sh\n",
    "solution/solution.py": 'def add(a, b):\n    """The sum."""\n    return a + b\n',
    "mutants/minus.toml": 'why = "subtracts"\n[[edit]]\nfile = "solution.py"\nfind = "a + b"\nreplace = "a - b"\n',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small valid task folder."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def edit(folder: Path, name: str, change: Callable[[str], str]) -> Path:
    """Change one file of the folder."""
    (folder / name).write_text(change((folder / name).read_text()))
    return folder


def test_the_halves(folder: Path) -> None:
    """The seat gets the environment without what builds images; everything sealed is in the other half alone."""
    task = load_folder(folder)
    assert task.key == "demo/add"
    assert list(task.open.environment) == ["notes.txt"]
    assert task.open.extras == {"none": "", "hint": "Use plus.\n"}
    assert list(task.sealed.tests) == ["test_add.py"]
    assert list(task.sealed.solution) == ["notes.txt", "solution.py"]
    assert suite_card(task.sealed.card).ids == ["test_add.py::test_small"]
    assert mutants(task.sealed)["minus"].text("solution.py").endswith("return a - b\n")


def test_digests_follow_their_half(folder: Path) -> None:
    """A changed test changes the sealed digest alone, a changed instruction the open one alone."""
    before = load_folder(folder)
    after = load_folder(edit(folder, "tests/test_add.py", lambda text: text + "# more\n"))
    assert (before.open.digest, before.sealed.digest != after.sealed.digest) == (after.open.digest, True)
    last = load_folder(edit(folder, "instruction.md", lambda text: text + "More.\n"))
    assert (after.sealed.digest, after.open.digest != last.open.digest) == (last.sealed.digest, True)


@pytest.mark.parametrize(
    ("name", "find", "put", "said"),
    [
        ("task.toml", 'extras = ["hint"]', 'extra = ["hint"]', "Did you mean 'extras'"),
        ("task.toml", 'module = "solution"', 'modul = "solution"', "Did you mean 'module'"),
        ("task.toml", "[metadata]", "[metdata]", "Did you mean 'metadata'"),
        ("task.toml", '"1.4"', '"1.3"', "expected '1.4'"),
        ("task.toml", "[proctor]", "[proctor", "not valid TOML"),
        ("task.toml", 'benchmark = "demo"\n', "", "proctor.benchmark: missing"),
        ("task.toml", 'test_small"]', 'test_small", "test_sub.py::x"]', "not in tests/"),
        ("task.toml", '["hint"]', '["hint", "none"]', "every task has"),
        ("task.toml", 'module = "solution"', 'module = "json"', "name of a standard module"),
        ("task.toml", 'test_small"]', 'test_small", "test_add.py::test_small"]', "listed more than once"),
        ("task.toml", 'forbidden = ["operator"]', 'public = ["test_add.py::test_smal"]', "test_small"),
        ("instruction.md", "operator", "plus", "does not name operator"),
        ("mutants/minus.toml", 'find = "a + b"', 'find = "a"', "stands 3 times"),
        ("mutants/minus.toml", "a - b", "a + b", "replaced by itself"),
        ("mutants/minus.toml", "why", "reason", "is no mutant"),
        ("mutants/minus.toml", 'file = "solution.py"', 'file = "other.py"', "no file 'other.py'"),
    ],
)
def test_refused_by_name(folder: Path, name: str, find: str, put: str, said: str) -> None:
    """A folder with one fault is refused, and the message holds what is wrong or the nearest known name."""
    edit(folder, name, lambda text: text.replace(find, put))
    with pytest.raises(TaskError) as error:
        load_folder(folder)
    assert said in str(error.value)


@pytest.mark.parametrize("gone", ["task.toml", "instruction.md", "tests", "solution", "extras/hint.md"])
def test_missing_parts_are_named(folder: Path, gone: str) -> None:
    """What is missing is named."""
    path = folder / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(TaskError, match=f"missing {gone}"):
        load_folder(folder)


@pytest.mark.parametrize("sealed", ["tests/test_add.py", "solution/solution.py"])
def test_a_sealed_file_in_the_open_half_is_refused(folder: Path, sealed: str) -> None:
    """A file of the environment that is a sealed one under another name is refused."""
    shutil.copy(folder / sealed, folder / "environment" / "innocent.txt")
    with pytest.raises(TaskError, match=f"innocent.txt is the sealed file {sealed}"):
        load_folder(folder)


def test_empty_files_may_be_equal(folder: Path) -> None:
    """An empty file holds nothing sealed, so it may be in both halves."""
    (folder / "environment" / "__init__.py").write_text("")
    (folder / "solution" / "__init__.py").write_text("\n")
    (folder / "tests" / "__init__.py").write_text("")
    assert "__init__.py" in load_folder(folder).open.environment


def test_a_link_is_refused(folder: Path) -> None:
    """A link would bring in what no digest covers."""
    (folder / "environment" / "link").symlink_to("/etc/passwd")
    with pytest.raises(TaskError, match="link"):
        load_folder(folder)


@pytest.mark.parametrize("part", ["environment", "tests", "solution", "mutants", "extras"])
def test_a_part_that_is_a_link_is_refused(folder: Path, tmp_path: Path, part: str) -> None:
    """A whole folder of the host's would come in by it."""
    (folder / part).rename(tmp_path / "elsewhere")
    (folder / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TaskError, match=f"{part} is a link"):
        load_folder(folder)


@pytest.mark.parametrize("name", ["task.toml", "instruction.md", "extras/hint.md"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_text_that_is_no_regular_file_is_refused(folder: Path, name: str, kind: str) -> None:
    """A link would show the seat a file of the host's, and a pipe would never be read to its end."""
    (folder / name).rename(folder / "moved")
    match kind:
        case "link":
            (folder / name).symlink_to(folder / "moved")
        case "pipe":
            os.mkfifo(folder / name)
        case _:
            (folder / name).mkdir()
    with pytest.raises(TaskError, match="expected a regular file"):
        load_folder(folder)


@pytest.mark.parametrize("part", ["tests", "solution"])
def test_a_part_that_is_a_file_is_refused(folder: Path, part: str) -> None:
    """An empty suite would come of it."""
    shutil.rmtree(folder / part)
    (folder / part).write_text("")
    with pytest.raises(TaskError, match=f"{part} is no folder"):
        load_folder(folder)


def test_a_folder_that_is_too_large_is_refused_before_it_is_read(folder: Path) -> None:
    """A hole of three gigabytes takes no room on the disk, and would take all of the memory."""
    with (folder / "environment" / "big").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(TaskError, match=r"holds more than 268435456 bytes, and big alone has 3221225472: .*image"):
        load_folder(folder)
    os.truncate(folder / "environment" / "big", 1 << 20)
    assert len(load_folder(folder).open.environment["big"]) == 1 << 20


def test_mutants_that_are_the_reference_or_each_other_are_refused(folder: Path) -> None:
    """Each of its edits changes something, and together they change nothing; or one fault is planted twice."""
    text = (folder / "mutants" / "minus.toml").read_text()
    back = '\n[[edit]]\nfile = "solution.py"\nfind = "a - b"\nreplace = "{}"\n'
    (folder / "mutants" / "two.toml").write_text(text + back.format("a + b"))
    with pytest.raises(TaskError, match=r"mutants/two.toml: its edits together give the reference itself"):
        load_folder(folder)
    (folder / "mutants" / "two.toml").write_text(text.replace("subtracts", "takes away"))
    with pytest.raises(TaskError, match=r"two.toml: its edits together give what mutants/minus.toml gives too"):
        load_folder(folder)
    (folder / "mutants" / "two.toml").write_text(text + back.format("a * b"))
    assert len(mutants(load_folder(folder).sealed)) == 2


def test_a_name_that_is_no_text_is_refused(folder: Path) -> None:
    """No digest could be made of it."""
    os.close(os.open(os.fsencode(folder / "tests") + b"/\xff", os.O_CREAT))
    with pytest.raises(TaskError, match="not UTF-8"):
        load_folder(folder)


@pytest.mark.parametrize("name", ["task.toml", "mutants/minus.toml"])
@pytest.mark.parametrize("value", ["[" * 5000, "9" * 5000, "{a=" * 3000])
def test_toml_that_is_too_much_is_refused(folder: Path, name: str, value: str) -> None:
    """Depth and digits beyond what the reader takes are told as what they are."""
    edit(folder, name, lambda text: f"x = {value}\n{text}")
    with pytest.raises(TaskError, match=r"\.toml"):
        load_folder(folder)


@pytest.mark.parametrize("value", ["nan", "inf", "2020-01-01", "12:00:00", "[[1, nan]]", "{a = 2020-01-01T00:00:00}"])
def test_a_card_holds_json_values_only(folder: Path, value: str) -> None:
    """What has no canonical form has no digest."""
    text = 'schema_version = "1.4"\n[proctor]\nbenchmark = "b"\nname = "n"\n[proctor.card]\n'
    (folder / "task.toml").write_text(f"{text}x = 1\n")
    load_folder(folder)
    (folder / "task.toml").write_text(f"{text}x = {value}\n")
    with pytest.raises(TaskError, match=r"proctor\.card"):
        load_folder(folder)


def test_a_statement_that_is_not_there_is_told_with_what_makes_it(folder: Path) -> None:
    """It is derived, so nobody writes it."""
    edit(folder, "task.toml", lambda text: text.replace('["hint"]', '["statement"]'))
    (folder / "extras" / "statement.md").unlink(missing_ok=True)
    with pytest.raises(TaskError, match=r"missing extras/statement.md. Write the statement with `python -m harness"):
        load_folder(folder)


def test_statement_must_reproduce(folder: Path) -> None:
    """The statement is what its tool derives from the reference, word for word; anything else is refused."""
    edit(folder, "task.toml", lambda text: text.replace('["hint"]', '["statement"]'))
    (folder / "extras" / "statement.md").write_text(derive_statement(folder))
    text = load_folder(folder).open.extras["statement"]
    assert 'def add(a, b):\n    """The sum."""' in text
    assert "return" not in text
    edit(folder, "extras/statement.md", lambda text: text.replace("sum", "total"))
    with pytest.raises(TaskError, match="word for word"):
        load_folder(folder)


def test_statement_shows_public_members_and_no_body() -> None:
    """Heads and docstrings stand as in the source, decorators too; private members and bodies do not."""
    head = "class Box(dict):\n    @property\n    def size(\n        self,\n    ) -> int:\n"
    code = head + "        return 41\n    def _hidden(self):\n        pass\ndef one(): return 1\n"
    text = statement(Tree.of({"box.py": code}), [("box", ["Box"])])
    assert (
        "class Box(dict):\n    ...\n\n    @property\n    def size(\n        self,\n    ) -> int:\n        ...\n" in text
    )
    assert "41" not in text
    assert "_hidden" not in text
    with pytest.raises(TaskError, match=r"does not define box\.Crate"):
        statement(Tree.of({"box.py": code}), [("box", ["Crate"])])
    with pytest.raises(TaskError, match="no module 'crate'"):
        statement(Tree.of({"box.py": code}), [("crate", ["Box"])])
    with pytest.raises(TaskError, match="head and body of one in one"):
        statement(Tree.of({"box.py": code}), [("box", ["one"])])


def test_a_folder_of_folders(folder: Path, tmp_path: Path) -> None:
    """Tasks come by name; two of one name, and a place without tasks, are refused."""
    assert [task.key for task in load_folders(folder)] == ["demo/add"]
    many = tmp_path / "many"
    for name in ("b", "a"):
        shutil.copytree(folder, many / name, ignore=shutil.ignore_patterns("many"))
    with pytest.raises(TaskError, match="demo/add is the name of more than one"):
        load_folders(many)
    edit(many / "a", "task.toml", lambda text: text.replace('name = "add"', 'name = "sum"'))
    assert [task.open.name for task in load_folders(many)] == ["sum", "add"]
    with pytest.raises(TaskError, match="holds no task"):
        load_folders(folder / "environment")


def test_a_card_that_is_none_is_refused() -> None:
    """The referee reads the sealed card through the same model, and says what is missing."""
    with pytest.raises(TaskError, match=r"card\.interface: missing"):
        suite_card({"ids": ["test_a.py::test_a"]})


def test_the_systems_tasks_load() -> None:
    """Each of the five: 15 to 30 tests, six mutants or more that differ from the reference, a statement, no leak."""
    tasks = load_folders(SYSTEMS)
    assert [task.open.name for task in tasks] == ["crc32", "freelist", "lru", "lzw", "paxos"]
    for task in tasks:
        assert 15 <= len(task.sealed.card["ids"]) <= 30
        made = mutants(task.sealed)
        assert len({tree.digest for tree in made.values()} - {task.sealed.solution.digest}) == len(made) >= 6
        assert set(task.open.extras) == {"none", "statement"}
        assert len(task.open.environment) == 0
