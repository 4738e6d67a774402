"""Judging samples: what is judged, what is not again, and what is nobody's verdict."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from cells.judging_results import ResultFile
from cells.judging_samples import results_beside
from harness.errors import GateRefused, TaskError, UsageError, WorkspaceError, unwrapped
from harness.tasks.evalplus import load_evalplus
from tests.cells.judges import Bench, made_bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Three tasks, a scripted judge, a fake backend."""
    return made_bench(tmp_path, monkeypatch)


def readings(bench: Bench) -> dict[tuple[str, int], str]:
    """By task and number, from the disk."""
    return {(row["task_id"], row["sample"]): row["reading"] for row in bench.rows()}


def test_every_sample_has_a_line_on_the_disk(bench: Bench) -> None:
    """With its verdict, and with all that it depends on."""
    bench.give("PASS a", "FAIL b", "TIMEOUT c", "FAIL d")
    judged = bench.run()
    assert judged.complete
    assert readings(bench) == {
        ("Fake/0", 0): "PASS",
        ("Fake/1", 0): "FAIL",
        ("Fake/2", 0): "TIMEOUT",
        ("Fake/0", 1): "FAIL",
    }
    row = next(row for row in bench.rows() if row["where"] == "line 2")
    assert set(row["basis"]) == {"task_id", "source", "suite", "referee", "image", "walls", "backend"}
    assert all(row["basis"].values())
    assert [tier["tier"] for tier in row["tiers"]] == ["public", "hidden"]


def test_judged_again_nothing_is_judged(bench: Bench) -> None:
    """The same file, byte for byte; no room is opened."""
    bench.give("PASS a", "FAIL b", "PASS c")
    bench.run()
    whole, rooms = bench.out.read_bytes(), len(bench.backend.opened)
    judged = bench.run()
    assert (bench.judge.judged, judged.reused, judged.complete) == ([], 3, True)
    assert bench.out.read_bytes() == whole
    assert len(bench.backend.opened) == rooms


def test_again_judges_everything_and_keeps_the_old_file_aside(bench: Bench) -> None:
    """Under a name that is free."""
    bench.give("PASS a", "FAIL b")
    bench.run()
    whole = bench.out.read_bytes()
    bench.run(again=True)
    assert sorted(bench.judge.judged) == ["FAIL b", "PASS a"]
    assert bench.out.with_name("samples_proctor.jsonl.before-1").read_bytes() == whole
    bench.run(again=True)
    assert bench.out.with_name("samples_proctor.jsonl.before-2").exists()


def test_changed_samples_are_judged_and_the_others_are_not(bench: Bench) -> None:
    """A program that was changed, one that is new, and one that moved to another place."""
    bench.give("PASS a", "FAIL b", "PASS c")
    bench.run()
    bench.give((1, "FAIL b"), (0, "FAIL a"), (2, "PASS c"), (2, "PASS d"))
    judged = bench.run()
    assert sorted(bench.judge.judged) == ["FAIL a", "PASS d"]
    assert judged.reused == 2
    assert "1 of its 3 results are of other samples" in bench.notes
    assert sorted((row["where"], row["reading"]) for row in bench.rows()) == [
        ("line 1", "FAIL"),
        ("line 2", "FAIL"),
        ("line 3", "PASS"),
        ("line 4", "PASS"),
    ]


def test_another_task_with_the_same_program_is_judged(bench: Bench) -> None:
    """A source is nothing without its task."""
    bench.give((0, "PASS a"))
    bench.run()
    bench.give((1, "PASS a"))
    bench.run()
    assert bench.judge.judged == ["PASS a"]


def change_option(bench: Bench) -> dict[str, Any]:
    """Another cap, so another suite."""
    return {"options": {"hidden_cap": "all"}}


def change_referee(bench: Bench) -> dict[str, Any]:
    """Another version of the referee."""
    bench.judge.source = "another"
    return {}


def change_suite(bench: Bench) -> dict[str, Any]:
    """Another reference in the benchmark's file."""
    bench.data.write_text(bench.data.read_text().replace("return x +", "return  x +"))
    return {}


def change_image(bench: Bench) -> dict[str, Any]:
    """Rooms of another image."""
    return {"image": "other"}


def change_backend(bench: Bench) -> dict[str, Any]:
    """Rooms of another backend."""
    bench.backend.name = "bubblewrap"
    return {}


@pytest.mark.parametrize("change", [change_option, change_referee, change_suite, change_image, change_backend])
def test_whatever_a_verdict_depends_on_makes_it_judged_again(bench: Bench, change: Any) -> None:
    """Never silently reused; the old file is kept aside, and said so."""
    bench.give("PASS a", "FAIL b")
    bench.run()
    whole = bench.out.read_bytes()
    judged = bench.run(**change(bench))
    assert (len(bench.judge.judged), judged.reused) == (2, 0)
    assert "2 of its 2 results are of other samples, suites, rooms or options" in bench.notes
    assert bench.out.with_name("samples_proctor.jsonl.before-1").read_bytes() == whole


def test_a_stopped_judge_keeps_what_it_has_and_the_next_goes_on(bench: Bench) -> None:
    """Nothing twice, nothing lost."""
    bench.give(*(f"PASS {n}" for n in range(12)))
    bench.stop_after = 5
    first = bench.run(workers=1)
    done = {row["where"] for row in bench.rows()}
    assert first.interrupted
    assert not first.complete
    assert 0 < len(done) < 12
    bench.stop_after = 10**9
    second = bench.run(workers=1)
    assert second.complete
    assert len(bench.judge.judged) == 12 - len(done)
    assert len(bench.rows()) == 12


@pytest.mark.parametrize("cut", [1, 40, 10**6])
def test_a_torn_last_line_is_cut_off_and_judged_again(bench: Bench, cut: int) -> None:
    """Whatever a kill left of it, its first bytes included."""
    bench.give("PASS a", "FAIL b", "PASS c")
    bench.run()
    whole = bench.out.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    bench.out.write_bytes(whole[: max(last + 3, len(whole) - cut)])
    judged = bench.run()
    assert len(bench.judge.judged) == 1
    assert judged.complete
    assert "a last line that was never finished is cut off" in bench.notes
    assert len(bench.rows()) == 3


def test_a_first_line_that_is_torn_is_one_too(bench: Bench) -> None:
    """A kill right at the start leaves a file that can be gone on with."""
    bench.give("PASS a")
    bench.run()
    bench.out.write_bytes(bench.out.read_bytes()[:9])
    assert bench.run().complete


@pytest.mark.parametrize(
    "text", ["hello\n", '{"task_id": "Fake/0", "solution": "x"}\n', '{"task_id": "Fake/0", "sol', "\n", "x"]
)
def test_a_file_of_somebody_else_s_is_left_alone(bench: Bench, text: str) -> None:
    """Results are never written into it."""
    bench.give("PASS a")
    bench.out.write_text(text)
    with pytest.raises(UsageError, match=r"is no result of `proctor judge`.*--out"):
        bench.run()
    assert bench.out.read_text() == text


def test_a_damaged_line_in_the_middle_is_told(bench: Bench) -> None:
    """With its number: it can't be known what it was."""
    bench.give("PASS a", "FAIL b", "PASS c")
    bench.run()
    lines = bench.out.read_bytes().splitlines(keepends=True)
    bench.out.write_bytes(lines[0] + lines[1].replace(b'"standing": "', b'"standing": "un') + lines[2])
    with pytest.raises(UsageError, match="line 2 is no result"):
        bench.run()


def test_two_judges_never_write_one_file(bench: Bench) -> None:
    """The second is refused."""
    bench.give("PASS a")
    with ResultFile(bench.out), pytest.raises(UsageError, match="another judge writes"):
        bench.run()


def test_a_program_that_is_there_several_times_is_judged_once(bench: Bench) -> None:
    """Each sample has its line all the same, and the copies say of which."""
    bench.give((0, "PASS a"), (0, "FAIL b"), (0, "PASS a"), (1, "PASS a"))
    bench.run()
    assert sorted(bench.judge.judged) == ["FAIL b", "PASS a", "PASS a"]
    assert {(row["task_id"], row["sample"]): row["copy_of"] for row in bench.rows()} == {
        ("Fake/0", 0): None,
        ("Fake/0", 1): None,
        ("Fake/0", 2): 0,
        ("Fake/1", 0): None,
    }
    bench.run()
    assert bench.judge.judged == []


def test_verdicts_of_other_files_may_be_used(bench: Bench) -> None:
    """Only where that is asked for; each line has the cache, rooms by name, and what it held or could not say is told."""
    bench.give("PASS a", "FAIL b")
    bench.run(again=True)
    assert {cache for cache, _ in bench.judge.keeping} == {None}
    folder = bench.folder / "kept" / "below"
    bench.judge.keeping.clear()
    bench.out.unlink()
    assert bench.run(cache=folder, workers=2).complete
    assert folder.is_dir()
    assert {(cache.folder, len(image)) for cache, image in bench.judge.keeping} == {(folder, 64)}
    assert f"{folder / 'ab' / 'abcd'} is damaged" in bench.notes
    assert f"2 verdicts are those that {folder} held" in bench.notes
    (bench.folder / "file").write_text("")
    for bad in (bench.folder / "file", bench.folder / "file" / "below"):
        with pytest.raises(UsageError, match=r"--cache .* is no folder"):
            bench.run(cache=bad)


def test_ignored_keys_are_named_once(bench: Bench) -> None:
    """The first few, each with the number of its lines; and counted in what came of it."""
    more = {f"k{n:02}": n for n in range(10)}
    rows = [{"task_id": f"Fake/{n}", "solution": "PASS", "model": "m", **more} for n in range(3)]
    bench.samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = bench.run()
    assert judged.ignored == {"model": 3, **dict.fromkeys(more, 3)}
    assert bench.notes.count("'model' (3)") == 1
    assert "'k06' (3) and 3 more" in bench.notes


def test_workers_share_the_work(bench: Bench) -> None:
    """Each on a line of its own, and never more than there are programs."""
    bench.give(*(f"PASS {n}" for n in range(9)))
    bench.run(workers=3)
    assert (bench.judge.most, bench.judge.lines) == (3, 3)
    bench.judge.lines = 0
    bench.run(workers=50, again=True)
    assert bench.judge.lines == 9


def test_the_longest_tasks_are_begun_first(bench: Bench) -> None:
    """By what their references took, so that no worker is left alone with the longest; those of a task stay together."""
    sources = [f"{word} {number}" for number, word in enumerate(["PASS", "FAIL", "PASS", "PASS", "PASS", "FAIL"])]
    bench.give(*sources)
    bench.run(workers=1)
    assert bench.judge.judged == [sources[at] for at in (0, 3, 1, 4, 2, 5)]
    bench.judge.judged.clear()
    took = dict(zip([task.sealed.solution.digest for task in load_evalplus(bench.data)], (1.0, 3.0, 2.0), strict=True))
    bench.judge.weight = lambda sealed: took[sealed.solution.digest]
    bench.run(workers=1, again=True)
    assert bench.judge.judged == [sources[at] for at in (1, 4, 2, 5, 0, 3)]
    bench.judge.judged.clear()
    took.update(zip(took, (0.02, 0.03, 0.01), strict=True))
    bench.run(workers=1, again=True)
    assert bench.judge.judged == [sources[at] for at in (0, 3, 1, 4, 2, 5)]  # noise orders nothing


def test_what_could_not_be_judged_is_tried_once_alone(bench: Bench) -> None:
    """After all others, on a line of its own; then it has a verdict like any."""
    bench.give("ONCE a", "PASS b", "PASS c")
    judged = bench.run(workers=1)
    assert bench.judge.judged == ["ONCE a", "PASS b", "PASS c", "ONCE a"]
    assert judged.complete
    assert "VOID(referee): the room is gone" in bench.notes


def test_what_can_t_be_judged_is_void_and_never_a_failure(bench: Bench) -> None:
    """It has no line; the next judge tries it again."""
    bench.give("VOID a", "PASS b", "FAIL c")
    judged = bench.run()
    assert not judged.complete
    assert list(judged.void) == [0]
    assert [row["where"] for row in bench.rows()] == ["line 2", "line 3"]
    bench.run()
    assert bench.judge.judged == ["VOID a", "VOID a"]


def test_a_machine_that_fails_again_and_again_stops_the_judge(bench: Bench) -> None:
    """What is left says nothing of any program, and is not tried."""
    bench.give("PASS x", *(f"VOID {n}" for n in range(30)))
    judged = bench.run(workers=1)
    assert len(bench.judge.judged) < 10
    assert judged.stopped is not None
    assert not judged.complete


def test_no_verdict_counts_in_a_room_that_is_not_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fact is named, and nothing is on the disk."""
    bench = made_bench(tmp_path, monkeypatch, network_mode="host")
    bench.give("PASS a")
    with pytest.raises((GateRefused, BaseExceptionGroup)) as caught:
        bench.run()
    error = unwrapped(caught.value) if isinstance(caught.value, BaseExceptionGroup) else caught.value
    assert isinstance(error, GateRefused)
    assert "network_mode: asked for none, running with host" in str(error)
    assert bench.out.read_bytes() == b""


@pytest.mark.parametrize(("failures", "ends"), [(1, True), (2, False)])
def test_a_room_that_does_not_open_is_tried_again(bench: Bench, failures: int, ends: bool) -> None:
    """Once: then nobody has looked at the walls, and nothing counts."""
    bench.give("PASS a")
    made, tries = bench.backend.make, iter([True] * failures)
    assert made is not None

    def make(name: str) -> Any:
        if next(tries, False):
            raise WorkspaceError("the engine is busy")
        return made(name)

    bench.judge.line = lambda rooms: nullcontext(bench.judge)  # the look alone opens a room
    bench.backend.make = make
    if ends:
        assert bench.run().complete
    else:
        with pytest.raises((WorkspaceError, BaseExceptionGroup)):
            bench.run()
        assert bench.out.read_bytes() == b""


def test_code_is_taken_out_of_answers_where_that_is_asked_for(bench: Bench) -> None:
    """By the rules of seats, which are counted; without it an answer is judged as it stands."""
    bench.give("Sure:\n```python\nFAIL = 1\n```\n", "PASS = 2")
    judged = bench.run(extract=True)
    assert sorted(bench.judge.judged) == ["FAIL = 1", "PASS = 2"]
    assert judged.rules == {"one-block": 1, "bare": 1}


def test_a_completion_is_no_answer(bench: Bench) -> None:
    """It goes behind the prompt, and there is nothing to take out of it."""
    bench.samples.write_text(json.dumps({"task_id": "Fake/0", "completion": "PASS"}) + "\n")
    with pytest.raises(UsageError, match=r"samples\.jsonl, line 1 \(Fake/0\) has a completion"):
        bench.run(extract=True)


def test_all_tasks_may_be_asked_for(bench: Bench) -> None:
    """Then a file that leaves one out is refused, by name, before anything is judged."""
    bench.give((0, "PASS a"), (2, "PASS b"))
    with pytest.raises(UsageError, match=r"1 of 3 tasks have no sample: Fake/1"):
        bench.run(all_tasks=True)
    assert bench.run().complete


def test_figures_of_one_benchmark_never_stand_under_the_name_of_the_other(bench: Bench) -> None:
    """Tasks of HumanEval are not judged as MBPP's; under a name that is neither's they are."""
    bench.data.write_text(bench.data.read_text().replace("Fake/", "HumanEval/"))
    bench.samples.write_text(json.dumps({"task_id": "HumanEval/0", "solution": "PASS a"}) + "\n")
    with pytest.raises(TaskError, match=r"holds 'HumanEval/0', a task of humaneval, not of mbpp"):
        bench.run(benchmark="mbpp")
    assert bench.run(benchmark="humaneval").complete
    assert bench.run(benchmark="ours").complete


def test_a_bad_file_of_samples_leaves_no_trace(bench: Bench) -> None:
    """Nothing is opened and nothing written."""
    bench.give("PASS a")
    bench.samples.write_text(bench.samples.read_text() + "nonsense\n")
    with pytest.raises(TaskError, match="line 2 is not JSON"):
        bench.run()
    assert not bench.out.exists()
    assert bench.backend.opened == []


@pytest.mark.parametrize("name", ["s.jsonl", "s.jsonl.gz", "s"])
def test_results_lie_beside_the_samples(tmp_path: Path, name: str) -> None:
    """Of a file, a packed one, and a folder."""
    assert results_beside(tmp_path / name) == tmp_path / "s_proctor.jsonl"
