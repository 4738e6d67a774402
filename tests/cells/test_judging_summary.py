"""What a judge of samples says: figures, every class, gaps; on a terminal, for scripts, and meanwhile."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cells import cli
from cells.judging_summary import summary_lines, summary_to_json
from cells.judging_view import JudgingView
from harness.clock import Clock
from tests.cells.judges import Bench, made_bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Three tasks, a scripted judge, a fake backend."""
    return made_bench(tmp_path, monkeypatch)


def text(bench: Bench, *ks: int, **changes: Any) -> str:
    """The summary as a person reads it."""
    return "\n".join(summary_lines(bench.run(**changes), ks or (1, 10, 100)))


def test_base_and_plus_are_two_figures(bench: Bench) -> None:
    """A sample that passes the public tests alone is right for base only; each with its interval and its method."""
    bench.give("PASS a", "BASE b", "FAIL c")
    said = text(bench)
    assert "base (public tests)             pass@1    0.667  [0.094, 0.992]  Clopper-Pearson over tasks" in said
    assert "plus (public and hidden tests)  pass@1    0.333  [0.008, 0.906]" in said
    assert "95% intervals: Clopper-Pearson over tasks" in said
    assert "arXiv:2107.03374" in said
    assert "not shown: pass@10, pass@100, since a task has only 1 judged sample" in said


def test_several_samples_a_task(bench: Bench) -> None:
    """A k that every task has samples for is shown; the interval is that of the bootstrap."""
    bench.give((0, "PASS a"), (0, "FAIL b"), (1, "PASS c"), (1, "PASS d"), (1, "FAIL e"))
    data = summary_to_json(bench.run(), [1, 2, 3])
    assert [(figure["k"], round(figure["value"], 3)) for figure in data["pass_at_k"]["plus"]] == [(1, 0.583), (2, 1.0)]
    assert "bootstrap" in data["pass_at_k"]["plus"][0]["method"]
    assert data["not_shown"] == [{"k": 3, "fewest": 2}]
    assert data["tasks"] == {"scored": 2, "without_samples": ["Fake/2"]}


def test_every_class_is_there_at_zero_too(bench: Bench) -> None:
    """For the public tier and for both."""
    bench.give("PASS a", "BASE b", "TIMEOUT c")
    data = summary_to_json(bench.run(), [1])
    assert data["classes"] == {
        "PASS": {"base": 2, "plus": 1},
        "FAIL": {"base": 0, "plus": 1},
        "NO_BUILD": {"base": 0, "plus": 0},
        "TIMEOUT": {"base": 1, "plus": 1},
        "UNSCORABLE": {"base": 0, "plus": 0},
    }
    assert "\n  UNSCORABLE             0       0\n" in text(bench)


def test_what_has_no_verdict_is_in_no_figure(bench: Bench) -> None:
    """VOID, undecided and missing are named, and none is a failure."""
    bench.give("PASS a", "VOID b", "UNSCORABLE c")
    judged = bench.run()
    data = summary_to_json(judged, [1])
    assert [(figure["value"], figure["tasks"]) for figure in data["pass_at_k"]["plus"]] == [(1.0, 1)]
    assert [(item["task_id"], item["cause"]) for item in data["samples"]["void"]] == [("Fake/1", "referee")]
    assert [item["task_id"] for item in data["samples"]["unscorable"]] == ["Fake/2"]
    assert data["complete"] is False
    said = "\n".join(summary_lines(judged, [1]))
    assert "VOID, not judged, in no figure: 1 sample: Fake/1 (line 2)" in said
    assert "could not be decided, in no figure: 1 sample: Fake/2 (line 3)" in said


def test_nothing_judged_has_no_figure(bench: Bench) -> None:
    """Not zero: none."""
    bench.give("VOID a")
    data = summary_to_json(bench.run(), [1])
    assert data["pass_at_k"] == {"base": [], "plus": []}
    assert "pass@1 " not in text(bench)


def test_gaps_and_settings_are_said(bench: Bench) -> None:
    """Tasks without samples, copies, the cap and the prelude, the fence, where the results are."""
    bench.give((0, "PASS a"), (0, "PASS a"))
    said = text(bench)
    assert "without a sample, and in no figure: 2 tasks: Fake/1, Fake/2" in said
    assert "same program as an earlier one of the task: 1 sample, judged once, each counted" in said
    assert "hidden tests: the first 300 plus inputs of each task; prelude on (EvalPlus itself scores with" in said
    assert "rooms: docker, image proctor-seat sha256:fake-, fence " in said
    assert f"results: {bench.out}" in said
    as_evalplus = text(bench, options={"hidden_cap": "all", "prelude": False})
    assert "hidden tests: all plus inputs of each task; prelude off\n" in as_evalplus
    early = text(bench, options={"public_tier": "to-first-violation"})
    assert "\npublic tests: up to the first violation; hidden tests: the first 300" in early


def test_chat_answers_that_were_judged_as_they_stand_are_told(bench: Bench) -> None:
    """Where they did not build; with the option that takes the code out of them."""
    bench.give("NO_BUILD ```python", "NO_BUILD b", "PASS # ```")
    assert "did not build and holds a code fence: 1 sample. If these are chat answers, add --extract" in text(bench)
    bench.give("NO_BUILD b", "PASS c")
    assert "--extract" not in text(bench)


class Ended:
    """How a command ended."""

    def __init__(self, code: Any, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def proctor(bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Judge the bench's samples by the command line, in this process."""

    def call(*words: object) -> Ended:
        command = ["proctor", "judge", bench.samples, "--benchmark", "fake", "--data", bench.data, *words]
        monkeypatch.setattr(sys, "argv", list(map(str, command)))
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return Ended(ended.value.code or 0, said.out, said.err)

    return call


def test_the_command_ends_with_0_when_all_is_judged(proctor: Any, bench: Bench) -> None:
    """Failures are verdicts; the summary is on standard output, what is seen meanwhile is not."""
    bench.give("PASS a", "FAIL b", "FAIL c")
    ended = proctor()
    assert ended.code == 0
    assert ended.out.startswith("fake: 3 tasks of 3 scored, 3 samples of 3 judged (0 of them before), ")
    assert ended.err == ""


def test_json_is_one_document(proctor: Any, bench: Bench) -> None:
    """With all that the text says."""
    bench.give("PASS a")
    data = json.loads(proctor("--json", "--k", "1").out)
    assert data["pass_at_k"]["base"][0]["interval"] == pytest.approx([0.025, 1.0])
    assert data["results"] == str(bench.out)
    assert set(data) >= {"benchmark", "data", "samples", "classes", "options", "fence", "source", "complete"}


def test_text_that_is_no_unicode_stands_in_json_as_its_escape(proctor: Any, bench: Bench) -> None:
    """Such a key of a sample breaks no document, and is read again as it was."""
    bench.give("PASS a")
    bench.samples.write_text(bench.samples.read_text().replace('"task_id"', '"\\ud800": 1, "task_id"'))
    data = json.loads(proctor("--json").out.encode())
    assert data["samples"]["ignored_keys"] == {"\ud800": 1}


def test_the_command_ends_with_1_when_something_is_void(proctor: Any, bench: Bench) -> None:
    """The figures of the rest are shown, and how to go on."""
    bench.give("PASS a", "VOID b")
    ended = proctor()
    assert ended.code == 1
    assert "pass@1    1.000" in ended.out
    assert "Fake/1, sample 0 (line 2): VOID(referee): the room is gone" in ended.err
    assert "incomplete: 1 of 2 samples are judged and kept in" in ended.err
    assert "give the same command again" in ended.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--k", "0"], "--k is '0': expected whole numbers of 1 or more"),
        (["--k", "1,x"], "--k is '1,x'"),
        (["--benchmark", "fake2", "--all-tasks"], "1 of 3 tasks have no sample: Fake/2"),
        (["--data", "none.jsonl"], "'none.jsonl' is no task source"),
        (["--out", "/dev/null"], "/dev/null is no regular file"),
        (["--out", "-"], "--out is '-': results are read again, so they are no output"),
        (["--hidden-cap", "-1"], "--hidden-cap is '-1': expected a whole number of 1 or more, or all, as in"),
        (["--hidden-cap", "0"], "--hidden-cap is '0': expected"),
        (["--hidden-cap", "ALL"], "--hidden-cap is 'ALL': expected"),
        (["--hidden-cap", "3.5"], "--hidden-cap is '3.5': expected"),
        (["--hidden-cap", "\u0661"], "--hidden-cap is '\u0661': expected"),
        (["--hidden-cap", "9" * 400], "9...': expected"),
        (["--hidden-cap", ""], "--hidden-cap is '': expected"),
        (["--memory-bytes", str(1 << 60)], f"--memory-bytes is {1 << 60}: expected at most {1 << 47}"),
        (["--benchmark", ""], "--benchmark is '': expected a name"),
        (["--benchmark", "a\nb"], "--benchmark is 'a\\nb': expected a name"),
    ],
)
def test_what_is_asked_wrongly_ends_with_2(proctor: Any, bench: Bench, words: list[str], said: str) -> None:
    """With what was expected, and nothing judged."""
    bench.give("PASS a", "FAIL b")
    ended = proctor(*words)
    assert ended.code == 2
    assert said in ended.err
    assert bench.judge.judged == []


def test_an_unknown_benchmark_is_told_with_the_known_ones(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And how to bring tasks of one's own."""
    monkeypatch.setattr(sys, "argv", ["proctor", "judge", str(bench.give("PASS a")), "--benchmark", "humanevl"])
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert (
        "Did you mean 'humaneval'? Known: humaneval, mbpp. For tasks of your own add --data" in capsys.readouterr().err
    )


def test_a_room_that_is_not_as_asked_ends_with_3(proctor: Any, bench: Bench) -> None:
    """No verdict, no figure, and the fact that is wrong."""
    bench.facts["network_mode"] = "host"
    bench.give("PASS a")
    ended = proctor()
    assert (ended.code, ended.out) == (3, "")
    assert "proctor: refused: fence: the workspace is not what the fence asks for: network_mode" in ended.err


def test_every_key_is_on_the_page(bench: Bench) -> None:
    """Of the summary and of a result."""
    page = (Path(__file__).parents[2] / "docs/how-to/judge-samples.md").read_text("utf-8")
    bench.give("PASS a")
    data = summary_to_json(bench.run(), [1])
    [row] = bench.rows()
    names = {*data, *data["samples"], *data["tasks"], *data["pass_at_k"]["base"][0], *row, *row["basis"]}
    assert {name for name in names if f"`{name}`" not in page} == set()


class Hand(Clock):
    """A clock that is moved by hand."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Where the hand is."""
        return self.seconds


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def shown(stream: StringIO, bench: Bench) -> str:
    """What is seen while three samples are judged, eleven seconds each."""
    bench.give("PASS a", "FAIL b", "FAIL c")
    clock = Hand()
    view = JudgingView(stream, clock)
    results = [result for result in bench.run(workers=1).results if result is not None]
    view.begin(total=3, done=[], left=[result.task_id for result in results], weights={})
    for result in results:
        clock.seconds += 11
        view.judged([result])
    view.note("a note\x1b[2J")
    view.end()
    return stream.getvalue()


def test_without_a_terminal_there_is_a_line_now_and_then(bench: Bench) -> None:
    """Without a control character, whatever a note holds."""
    lines = shown(StringIO(), bench).splitlines()
    assert lines == [
        "[1/3] PASS 1; left: 22 s",
        "[2/3] FAIL 1, PASS 1; left: 11 s",
        "[3/3] FAIL 2, PASS 1; left: 0 s",
        "a note\\x1b[2J",
    ]


def test_on_a_terminal_one_line_is_redrawn(bench: Bench) -> None:
    """And taken away before a note, and at the end."""
    said = shown(Terminal(), bench)
    assert said.count("\n") == 1
    assert said.endswith("\r\x1b[K" + "a note\\x1b[2J\n")
    assert "\r\x1b[K[2/3] FAIL 1, PASS 1; left: 11 s" in said


def test_the_time_left_is_reckoned_by_what_each_task_costs(bench: Bench) -> None:
    """The longest task comes first: a hundred short ones behind it don't take as long each."""
    bench.give("PASS a")
    (result,) = bench.run(workers=1).results
    assert result is not None
    stream, clock = StringIO(), Hand()
    view = JudgingView(stream, clock)
    view.begin(total=101, done=[], left=[result.task_id, *["short"] * 100], weights={result.task_id: 9.98})
    clock.seconds += 20
    view.judged([result])
    assert stream.getvalue() == "[1/101] PASS 1; left: 4 s\n"
