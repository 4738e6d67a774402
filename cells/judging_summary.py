"""What judged samples come to: pass@k with intervals, every class, what has no figure; as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from cells.figures import duration, printable
from cells.judging_results import Result
from cells.judging_samples import Judged
from cells.pass_at_k import SOURCE, PassAtK, Tally, pass_at_k

__all__ = ["summary_lines", "summary_to_json"]

_SHOWN = 8
"""So many names stand in a line of text; JSON has all of them."""
_EVALPLUS = "EvalPlus itself scores with --hidden-cap all --no-prelude"
TIERS: tuple[tuple[str, str, Callable[[Result], bool]], ...] = (
    ("base", "base (public tests)", lambda result: result.base),
    ("plus", "plus (public and hidden tests)", lambda result: result.plus),
)
"""EvalPlus's two scores: their names, and what a sample must have passed."""


def summary_to_json(judged: Judged, ks: Sequence[int]) -> dict[str, Any]:
    """The whole summary as JSON data."""
    asked, scored = judged.asked, _scored(judged)
    return {
        "benchmark": asked.benchmark,
        "data": {"path": str(judged.tasks.path), "sha256": judged.tasks.sha256, "tasks": len(judged.tasks.ids)},
        "samples": {
            "path": str(asked.samples),
            "sha256": judged.samples_sha256,
            "given": len(judged.samples),
            "judged": sum(result is not None for result in judged.results),
            "reused": judged.reused,
            "copies": sum(result is not None and result.copy_of is not None for result in judged.results),
            "fenced": sum(
                item.reading == "NO_BUILD" and "```" in judged.samples[at].text for at, item in _results(judged)
            ),
            "ignored_keys": dict(judged.ignored),
            "unscorable": [_name(judged, index) for index, item in _results(judged) if item.standing == "unscorable"],
            "void": [{**_name(judged, at), "cause": why.cause, "why": str(why)} for at, why in _void(judged)],
            "not_judged": [_name(judged, index) for index, item in enumerate(judged.results) if item is None],
        },
        "tasks": {"scored": len(scored), "without_samples": _without(judged)},
        "pass_at_k": {name: [_figure(scored, k, passed) for k in _possible(scored, ks)] for name, _, passed in TIERS},
        "not_shown": _impossible(scored, ks),
        "source": SOURCE,
        "classes": _classes(judged),
        "extracted": dict(sorted(judged.rules.items())) if asked.extract else None,
        "options": dict(judged.options),
        "fence": dict(judged.fence),
        "results": str(asked.out),
        "complete": judged.complete,
        "seconds": round(judged.seconds, 3),
    }


def summary_lines(judged: Judged, ks: Sequence[int]) -> Iterator[str]:
    """The summary for a person, line by line; foreign text in it can do nothing to a terminal."""
    data = summary_to_json(judged, ks)
    samples, tasks = data["samples"], data["tasks"]
    seconds = f"{judged.seconds:.1f} s" if judged.seconds < 60 else duration(judged.seconds)
    yield printable(
        f"{data['benchmark']}: {_count(tasks['scored'], 'task')} of {data['data']['tasks']} scored, "
        f"{_count(samples['judged'], 'sample')} of {samples['given']} judged "
        f"({samples['reused']} of them before), {seconds}"
    )
    yield from _figure_lines(data)
    yield from _class_lines(data["classes"])
    yield from _gap_lines(data)
    yield from _setting_lines(data["options"], data["fence"])
    yield printable(f"results: {data['results']}")


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _setting_lines(options: dict[str, Any], fence: dict[str, Any]) -> Iterator[str]:
    """What the figures hold for: a number of EvalPlus's compares with one that was made the same way."""
    cap, prelude = options["hidden_cap"], "on" if options["prelude"] else "off"
    tier = "all plus inputs" if cap == "all" else f"the first {cap} plus inputs"
    like = "" if cap == "all" and not options["prelude"] else f" ({_EVALPLUS})"
    early = "" if options["public_tier"] == "full" else "public tests: up to the first violation; "
    yield f"{early}hidden tests: {tier} of each task; prelude {prelude}{like}"
    looked = f"; {fence['facts_that_agree']} facts looked at, as asked" if fence["facts_that_agree"] else ""
    yield printable(
        f"rooms: {fence['backend']}, image {fence['image']} {fence['image_digest'][:12]}, "
        f"fence {fence['policy'][:12]}, walls {fence['walls'][:12]}{looked}"
    )
    if fence["not_enforced"]:
        names = ", ".join(fence["not_enforced"])
        yield printable(f"  not enforced by {fence['backend']}: {names} (why: proctor fence show)")


def _results(judged: Judged) -> Iterator[tuple[int, Result]]:
    return ((index, item) for index, item in enumerate(judged.results) if item is not None)


def _void(judged: Judged) -> list[tuple[int, Any]]:
    return sorted(judged.void.items(), key=lambda item: item[0])


def _name(judged: Judged, index: int) -> dict[str, Any]:
    sample = judged.samples[index]
    return {"task_id": sample.task_id, "sample": sample.number, "where": sample.where}


def _scored(judged: Judged) -> dict[str, list[Result]]:
    """By task, the results that are somebody's score."""
    found: dict[str, list[Result]] = {}
    for _, result in _results(judged):
        if result.standing != "unscorable":
            found.setdefault(result.task_id, []).append(result)
    return found


def _without(judged: Judged) -> list[str]:
    given = {sample.task_id for sample in judged.samples}
    return [task_id for task_id in judged.tasks.ids if task_id not in given]


def _fewest(scored: dict[str, list[Result]]) -> int:
    return min((len(results) for results in scored.values()), default=0)


def _possible(scored: dict[str, list[Result]], ks: Sequence[int]) -> list[int]:
    """Those k for which every scored task has so many samples."""
    return [k for k in ks if k <= _fewest(scored)]


def _impossible(scored: dict[str, list[Result]], ks: Sequence[int]) -> list[dict[str, int]]:
    """The others, with how few judged samples a task has."""
    return [{"k": k, "fewest": _fewest(scored)} for k in ks if k > _fewest(scored)]


def _figure(scored: dict[str, list[Result]], k: int, passed: Callable[[Result], bool]) -> dict[str, Any]:
    tallies = [Tally(samples=len(results), right=sum(map(passed, results))) for results in scored.values()]
    found: PassAtK = pass_at_k(tallies, k)
    data = asdict(found)
    return {**data, "interval": None if found.interval is None else list(found.interval)}


def _classes(judged: Judged) -> dict[str, dict[str, int]]:
    """Every class of the referee, at zero too: of the public tier alone, and of both."""
    public = Counter(result.tiers[0].reading if result.tiers else result.reading for _, result in _results(judged))
    both = Counter(result.reading for _, result in _results(judged))
    names = dict.fromkeys((*judged.classes, *public, *both))
    return {name: {"base": public[name], "plus": both[name]} for name in names}


def _figure_lines(data: dict[str, Any]) -> Iterator[str]:
    if data["pass_at_k"]["base"]:
        yield ""
    for name, label, _ in TIERS:
        for figure in data["pass_at_k"][name]:
            interval = figure["interval"]
            shown = "no interval" if interval is None else f"[{interval[0]:.3f}, {interval[1]:.3f}]"
            by = figure["method"].partition(",")[0]
            yield f"  {label:<32}pass@{figure['k']:<5}{figure['value']:.3f}  {shown}  {by}"
    figures = [figure for name, _, _ in TIERS for figure in data["pass_at_k"][name]]
    methods = dict.fromkeys(f"{figure['level']:.0%} intervals: {figure['method']}" for figure in figures)
    for text in (*methods, *([data["source"]] if methods else [])):
        yield f"  {text}"
    if data["not_shown"]:
        names = ", ".join(f"pass@{item['k']}" for item in data["not_shown"])
        fewest = data["not_shown"][0]["fewest"]
        yield f"  not shown: {names}, since a task has only {_count(fewest, 'judged sample')}"


def _class_lines(classes: dict[str, dict[str, int]]) -> Iterator[str]:
    yield ""
    yield f"  {'class':<16}{'base':>8}{'plus':>8}"
    for name, counts in classes.items():
        yield f"  {name:<16}{counts['base']:>8,}{counts['plus']:>8,}"
    yield ""


def _gap_lines(data: dict[str, Any]) -> Iterator[str]:
    """What has no figure, or was counted in a way that should be known."""
    samples, without = data["samples"], data["tasks"]["without_samples"]
    if without:
        yield f"without a sample, and in no figure: {_count(len(without), 'task')}: {_listed(without)}"
    if samples["copies"]:
        copies = _count(samples["copies"], "sample")
        yield f"same program as an earlier one of the task: {copies}, judged once, each counted"
    for key, text in (("unscorable", "could not be decided, in no figure"), ("void", "VOID, not judged, in no figure")):
        if samples[key]:
            names = [f"{item['task_id']} ({item['where']})" for item in samples[key]]
            yield printable(f"{text}: {_count(len(names), 'sample')}: {_listed(names)}")
    rest = len(samples["not_judged"]) - len(samples["void"])
    if rest > 0:
        yield f"not judged yet, in no figure: {_count(rest, 'sample')}"
    if samples["fenced"] and data["extracted"] is None:
        fenced = _count(samples["fenced"], "sample")
        yield f"did not build and holds a code fence: {fenced}. If these are chat answers, add --extract"
    if data["extracted"] is not None:
        found = ", ".join(f"{rule} {count}" for rule, count in data["extracted"].items())
        yield f"code taken out of answers by rule: {found}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
