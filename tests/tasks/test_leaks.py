"""What is sealed is found wherever the open half would show it, and what is shown on purpose is not."""

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.tasks.card import ProctorTable
from harness.tasks.leaks import scan_open_half, sealed_marks
from harness.tasks.mark_search import Search, lines_of, look_below
from harness.tasks.task import OpenHalf, SealedHalf, Task
from harness.tree import Tree

SOLUTION = """import heapq


def merge_intervals(intervals):
    ordered = sorted(intervals, key=lambda pair: pair[0])
    merged = [list(ordered[0])]
    for start, end in ordered[1:]:
        if start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return [tuple(pair) for pair in merged]
"""
TESTS = """from intervals import merge_intervals


def test_touching_intervals_are_merged():
    assert merge_intervals([(1, 4), (4, 6)]) == [(1, 6)]
    assert merge_intervals([(5, 9), (1, 2)]) == [(1, 2), (5, 9)]
    assert merge_intervals([(1, 10), (2, 3)]) == [(1, 10)]
    assert merge_intervals([(0, 0), (0, 1)]) == [(0, 1)]
"""
INSTRUCTION = "Write `intervals.py` with `merge_intervals(intervals)`.\n\n    def merge_intervals(intervals):\n"


def task(environment=None, *, instruction=INSTRUCTION, solution=SOLUTION, tests=TESTS, leaks=None, extras=None):
    """A task whose seat is shown `environment`."""
    shown = Tree.of(environment or {})
    return Task(
        open=OpenHalf(
            benchmark="b", name="t", instruction=instruction, environment=shown, extras={"none": "", **(extras or {})}
        ),
        sealed=SealedHalf(
            tests=Tree.of({"test_intervals.py": tests}),
            solution=shown.merged(Tree.of({"intervals.py": solution})),
            card={"leaks": leaks or {}},
        ),
    )


def leaks(*arguments, **named):
    """The leaks of a task as texts."""
    return [str(leak) for leak in scan_open_half(task(*arguments, **named)).leaks]


def packed(kind, name, data):
    """`data` in an archive."""
    buffer = io.BytesIO()
    match kind:
        case "zip":
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(name, data)
        case "tar" | "tar.gz":
            with tarfile.open(fileobj=buffer, mode="w:gz" if kind == "tar.gz" else "w") as archive:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        case "gz":
            return gzip.compress(data)
        case "bz2":
            return bz2.compress(data)
        case "xz":
            return lzma.compress(data)
    return buffer.getvalue()


def test_an_honest_task_has_no_leak():
    """Words of the instruction and other files are none, and the files looked at are counted."""
    honest = {"README.md": "Intervals are pairs.\n", "other.py": "def other(value):\n    return value + 1234567\n"}
    report = scan_open_half(task(honest))
    assert (report.leaks, report.unread, report.files) == ((), (), 2)


@pytest.mark.parametrize("sealed", [SOLUTION, TESTS])
@pytest.mark.parametrize("place", ["copy.py", "build/lib/x.py", ".cache/y", "node_modules/z.txt", "docs/notes.md"])
def test_sealed_text_is_found_under_any_name(sealed, place):
    """A copy somewhere, indented and with other line ends, is named with where it is and what it is of."""
    text = "# notes\n" + "".join(f"    {line}\r\n" for line in sealed.splitlines())
    found = leaks({place: text})
    assert len(found) == 1
    assert found[0].startswith(f"environment/{place}: ")
    assert ("tests/test_intervals.py" if sealed is TESTS else "solution/intervals.py") in found[0]


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "gz", "bz2", "xz"])
def test_archives_are_looked_into(kind):
    """Whatever an archive is called, and in an archive in an archive."""
    data = packed(kind, "x/intervals.py", SOLUTION.encode())
    assert leaks({"data.bin": data})
    assert leaks({"data.bin": packed("zip", "inner", data)})
    assert not leaks({"data.bin": packed(kind, "x", b"nothing of the kind\n" * 50)})


def test_what_cannot_be_looked_into_is_told():
    """A damaged archive, and archives nested too deep, are named and not passed over in silence."""
    data = packed("zip", "x", SOLUTION.encode())
    deep = data
    for _ in range(4):
        deep = packed("zip", "x", deep)
    report = scan_open_half(task({"cut.zip": data[: len(data) // 2], "deep.zip": deep}))
    assert {item.where.partition("!")[0] for item in report.unread} == {"environment/cut.zip", "environment/deep.zip"}


def test_a_bomb_is_cut_off():
    """An archive that unpacks to more than the cap is told and takes no more than the cap."""
    report = scan_open_half(task({"bomb.gz": gzip.compress(bytes(80 << 20))}))
    assert [item.what for item in report.unread] == [f"over {64 << 20} bytes once unpacked"]


def test_the_file_to_be_repaired_is_no_leak_and_its_repair_elsewhere_is():
    """A planted defect shares nearly all lines with the reference: only the repaired lines give anything away."""
    broken = SOLUTION.replace("start <= merged", "start < merged").replace(
        "max(merged[-1][1], end)", "merged[-1][1] + end - start"
    )
    assert leaks({"intervals.py": broken}) == []
    found = leaks({"intervals.py": broken, "build/intervals.py": SOLUTION})
    assert len(found) == 1
    assert found[0].startswith("environment/build/intervals.py: ")


def test_an_older_suite_at_its_place_is_no_leak():
    """A repository's tests that the withheld ones extend are the seat's to have; the new ones elsewhere are not."""
    older = "\n".join(TESTS.splitlines()[:5]) + "\n"
    assert leaks({"tests/test_intervals.py": older}) == []
    assert leaks({"tests/test_intervals.py": older, "tmp/new.py": "\n".join(TESTS.splitlines()[5:])})


def test_what_a_card_says_is_shared_is_not_looked_for():
    """A public test file is named on the card."""
    shown = {"public/test_intervals.py": TESTS}
    assert leaks(shown)
    assert leaks(shown, leaks={"shared": ["tests/test_intervals.py"]}) == []


def test_an_instruction_may_speak_of_the_task_and_not_hold_the_answer():
    """Examples are fine; every line of a sealed file is not, in the instruction or in an extra."""
    some = INSTRUCTION + "\n".join(TESTS.splitlines()[4:6])
    assert leaks(instruction=some) == []
    assert leaks(instruction=INSTRUCTION + SOLUTION)[0].startswith("instruction.md: every line of the sealed ")
    assert leaks(extras={"hint": SOLUTION})[0].startswith("extras/hint.md: ")
    assert leaks(extras={"statement": SOLUTION}) == []


def test_a_reference_that_is_too_short_is_told():
    """What can't be told from any other line is not silently called safe."""
    assert scan_open_half(task(solution="def merge_intervals(i):\n    return i\n")).too_short == (
        "b/t: solution/intervals.py",
    )


def test_what_a_room_is_given_holds_nothing_sealed():
    """Only keyed hashes cross, under a key of their own each time."""
    first, second = sealed_marks(task()).told, sealed_marks(task()).told
    text = str(first)
    assert not any(line in text for line in lines_of((SOLUTION + TESTS).encode()))
    assert first["key"] != second["key"]
    assert set(first["starts"]).isdisjoint(second["starts"])


@given(st.binary(max_size=2000))
def test_any_bytes_can_be_looked_at(data):
    """No file makes a search fail."""
    search = Search(sealed_marks(task()).marks)
    for head in (b"", b"PK\x03\x04", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\x00", bytes(257) + b"ustar"):
        search.look("x", head + data)
    assert search.files >= 6


@pytest.mark.parametrize("bad", ["abc", "zzzzzzz", "", "HEAD"])
def test_a_forbidden_commit_that_is_none_is_refused(bad):
    """The card takes ids of commits only."""
    table = {"benchmark": "b", "name": "t", "ids": ["t.py::a"], "interface": [{"module": "m", "names": ["f"]}]}
    assert ProctorTable.model_validate(table | {"leaks": {"forbidden_commits": ["a1b2c3d"]}})
    with pytest.raises(ValueError, match="forbidden_commits"):
        ProctorTable.model_validate(table | {"leaks": {"forbidden_commits": [bad]}})


def patched(mark):
    """The reference with a mark before each line."""
    return "".join(f"{mark}{line}\n" for line in SOLUTION.splitlines())


def old_tar():
    """A tar of before there was a mark of one."""
    data = bytearray(packed("tar", "x", SOLUTION.encode()))
    data[257:265] = bytes(8)
    return bytes(data)


NOTEBOOK = {"cells": [{"cell_type": "code", "source": SOLUTION.splitlines(keepends=True)}]}


@pytest.mark.parametrize(
    "shown",
    [
        *(patched(mark) for mark in ("+", "-", " ", "> ", "  12: ", "7\t")),
        json.dumps(NOTEBOOK),
        json.dumps(NOTEBOOK, indent=1),
        json.dumps({"task": 1, "canonical_solution": SOLUTION}),
        json.dumps(SOLUTION).replace("<", "\\u003c"),
        repr(SOLUTION),
        SOLUTION.encode("utf-16"),
        SOLUTION.encode("utf-16-le"),
        SOLUTION.encode("utf-16-be"),
        b"\xef\xbb\xbf" + SOLUTION.encode(),
        bytes(range(20)) * 99 + SOLUTION.encode() + bytes(99),
        zlib.compress(b"blob 420\0" + SOLUTION.encode()),
        lzma.compress(SOLUTION.encode(), format=lzma.FORMAT_ALONE),
        old_tar(),
    ],
)
def test_sealed_text_is_found_in_any_dress(shown):
    """Patches, listings, notebooks, lines of JSON, other encodings, and in the middle of a binary file."""
    assert leaks({"notes/x": shown})


@pytest.mark.parametrize(
    "start",
    [
        b"\x28\xb5\x2f\xfd",
        b"7z\xbc\xaf\x27\x1c",
        b"Rar!\x1a\x07",
        b"\x04\x22\x4d\x18",
        b"# v2 git bundle\n",
        b"PACK\0\0\0\2",
    ],
)
def test_what_nothing_here_unpacks_is_told(start):
    """A kind of archive that is not looked into is named."""
    report = scan_open_half(task({"data.bin": start + bytes(50)}))
    assert [item.where for item in report.unread] == ["environment/data.bin"]


def test_what_is_too_much_to_name_is_told_as_more():
    """A list that is cut says so."""
    report = scan_open_half(task({f"{number}.zst": b"\x28\xb5\x2f\xfd" for number in range(300)}))
    assert len(report.unread) == 201
    assert "more" in report.unread[-1].what


def test_a_folder_that_cannot_be_read_is_told(tmp_path, monkeypatch):
    """A search from within an image is one user's: what that one can't list is not silently called clean."""
    (tmp_path / "root").mkdir()
    (tmp_path / "seen").write_text(SOLUTION)
    real = os.scandir

    def scandir(path):
        if str(path).endswith("root"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    search = Search(sealed_marks(task()).marks)
    look_below(search, str(tmp_path), set())
    assert len(search.hits) == 1
    assert [(item["where"], item["why"]) for item in search.unread] == [
        (str(tmp_path / "root"), "the folder can't be read: Permission denied")
    ]
