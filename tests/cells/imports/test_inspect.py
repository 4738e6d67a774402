"""Each sample of a log becomes a cell: what a limit stopped is a HALT, what broke is VOID, and a score is read by rules."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cells.imports.imported import Counted, label_of
from cells.imports.importing import import_cells
from cells.imports.inspect_ends import LIMITS
from harness.errors import DeclarationError
from harness.values import ExactPrice, Halt, LowerBoundPrice, VoidPrice
from tests.cells.imports.foreign_writers import ZSTD, archive, dump, eval_log, header, json_log, sample

BROKE = {"message": "RuntimeError('planted')", "traceback": "", "traceback_ansi": ""}


def read(*logs, seen=None, **options):
    """The cells of the logs."""
    return list(import_cells("inspect", logs, options, seen=seen))


def only(tmp_path, data, **options):
    """The last cell of a log of one sample."""
    return read(eval_log(tmp_path / "log.eval", header(), [data]), **options)[-1]


@pytest.mark.parametrize("kind", ["eval", "zstd", "json"])
def test_a_sample_becomes_a_cell(tmp_path, kind):
    """With the condition, the figures and the reading where Inspect has them, in each of its forms."""
    head, samples = header(), [sample()]
    match kind:
        case "eval":
            path = eval_log(tmp_path / "log", head, samples)
        case "zstd":
            path = eval_log(tmp_path / "log", head, samples, method=ZSTD)
        case _:
            path = json_log(tmp_path / "log", head, samples)
    (cell,) = read(path)
    assert (cell.cell.run, cell.cell.id, cell.cell.replicate) == ("eval1", "s1_epoch_1", 1)
    assert (cell.cell.benchmark, cell.cell.task, cell.cell.arm) == ("bench", "s1", "act")
    assert (cell.cell.extras, cell.cell.model) == ("none", "p/m")
    assert (cell.outcome_class, cell.passed) == ("PASS", True)
    assert cell.spend.price == ExactPrice(usd=0.5)
    assert (cell.spend.tokens, cell.spend.calls, cell.spend.wall_s) == (18, 1, 2.5)
    assert cell.labels["working_s"] == "2"
    assert cell.labels["usage p/m"] == "input_tokens=10 output_tokens=5 input_tokens_cache_read=3"


@pytest.mark.parametrize(("kind", "label"), LIMITS.items())
@pytest.mark.parametrize("score", ["C", "I"])
def test_a_limit_is_never_a_verdict(tmp_path, kind, label, score):
    """Inspect scores such a sample as if it had ended by itself, and counts it."""
    cell = only(tmp_path, sample(score=score, limit={"type": kind, "limit": 60.0, "reason": "over"}))
    assert (label_of(cell), cell.verdict, cell.passed) == (label, None, None)
    if isinstance(cell.end, Halt):
        assert cell.would_be.reading == {"C": "PASS", "I": "FAIL"}[score]
        assert cell.end.bound == (None if kind in {"message", "context"} else 60.0)
        assert isinstance(cell.spend.price, LowerBoundPrice)


def test_a_limit_that_inspect_does_not_know_has_no_bound(tmp_path):
    """It writes -1 there."""
    assert only(tmp_path, sample(limit={"type": "token", "limit": -1.0})).end.bound is None


def test_three_limit_stops_and_one_error_are_told_apart(tmp_path):
    """Inspect counts the three as failures, and the one not at all."""
    stopped = [sample(f"s{n}", score="I", limit={"type": "token", "limit": 9.0}) for n in range(3)]
    rest = [sample("s3", score=None, error=BROKE), sample("s4"), sample("s5", score="I")]
    log = eval_log(tmp_path / "log.eval", header([f"s{n}" for n in range(6)]), stopped + rest)
    counted, seen = Counted(), []
    cells = list(counted.each(read(log, seen=seen)))
    assert [label_of(cell) for cell in cells] == ["HALT(tokens)"] * 3 + ["VOID(unknown)", "PASS", "FAIL"]
    assert counted.census(seen).causes == {"unknown: RuntimeError": 1}


def test_an_error_that_was_scored_is_void(tmp_path):
    """With `score_on_error` Inspect scores a sample that broke, and the score may say C."""
    cell = only(tmp_path, sample(score="C", error=BROKE))
    assert (label_of(cell), cell.verdict, cell.labels["exception"]) == ("VOID(unknown)", None, "RuntimeError")


@pytest.mark.parametrize("message", ["CancelledError('Cancelled via cancel scope 7f')", "Cancelled()"])
def test_a_cancelled_sample_was_interrupted(tmp_path, message):
    """A sibling failed, or somebody pressed Ctrl-C: nothing is said of the subject."""
    assert label_of(only(tmp_path, sample(score=None, error={"message": message}))) == "VOID(interrupted)"


def test_a_stopped_sample_whose_scorer_broke_is_halted(tmp_path):
    """The limit came first; what the scorer would have said is not known."""
    cell = only(tmp_path, sample(score=None, error=BROKE, limit={"type": "time", "limit": 2.0}))
    assert (label_of(cell), cell.would_be) == ("HALT(wall)", None)


def test_an_invalidated_sample_is_void(tmp_path):
    """Its score stands in the log as before."""
    cell = only(tmp_path, sample(invalidation={"author": "ann", "reason": "leak", "timestamp": "2026"}))
    assert (label_of(cell), cell.end.detail) == ("VOID(invalidated)", "by ann: leak")


def test_tries_that_were_made_again_are_rows_without_a_price(tmp_path):
    """Inspect keeps the errors of earlier tries, and forgets what they used."""
    log = eval_log(tmp_path / "log.eval", header(), [sample(error_retries=[BROKE, {"message": "Cancelled()"}])])
    counted, seen = Counted(), []
    cells = list(counted.each(read(log, seen=seen)))
    assert [(cell.attempt, label_of(cell)) for cell in cells] == [
        (1, "VOID(unknown)"),
        (2, "VOID(interrupted)"),
        (3, "PASS"),
    ]
    assert [type(cell.spend.price) for cell in cells] == [VoidPrice, VoidPrice, ExactPrice]
    census = counted.census(seen)
    assert (census.results, census.tries, census.classes) == (1, 3, {"PASS": 1})
    assert census.made_again == {"VOID(interrupted)": 1, "VOID(unknown)": 1}


def test_a_sample_that_is_there_twice_has_two_tries(tmp_path):
    """Inspect reads the last and forgets the first: done with, then done again, must be seen."""
    log = eval_log(tmp_path / "log.eval", header(), [sample(score="I"), sample(score="C")])
    seen = []
    assert [(cell.attempt, cell.outcome_class) for cell in read(log, seen=seen)] == [(1, "FAIL"), (2, "PASS")]
    assert "run again in the same log" in seen[0].remarks[0]


@pytest.mark.parametrize(
    ("value", "options", "reading"),
    [
        ("C", {}, "PASS"),
        ("I", {}, "FAIL"),
        (True, {}, "PASS"),
        (False, {}, "FAIL"),
        (float("nan"), {}, "UNSCORABLE"),
        ("P", {"rejected": ["I", "P"]}, "FAIL"),
        ("N", {"unscorable": ["N"]}, "UNSCORABLE"),
        (0.7, {"at_least": 0.7}, "PASS"),
        (1, {"at_least": 0.7}, "PASS"),
        (0, {"at_least": 0.7}, "FAIL"),
        ("C", {"at_least": 0.7}, "PASS"),
        ({"correct": "C", "style": 1}, {"part": "correct"}, "PASS"),
        ({"correct": None}, {"part": "correct"}, "UNSCORABLE"),
        (3, {"accepted": [3]}, "PASS"),
    ],
)
def test_scores_are_read_by_rules(tmp_path, value, options, reading):
    """C and I, yes and no, by themselves; all else by what was registered."""
    assert only(tmp_path, sample(score=value), **options).outcome_class == reading


@pytest.mark.parametrize(
    ("value", "options", "said"),
    [
        ("P", {}, "scores.match.value is 'P', which no rule speaks of"),
        ("c", {}, "which no rule speaks of"),
        ("1", {}, "which no rule speaks of"),
        (1, {}, "expected the option at_least"),
        (float("inf"), {"at_least": 1}, "which no rule speaks of"),
        ({"a": 1}, {}, "is a dictionary: expected the option `part`"),
        ([1, 0], {}, "is a list"),
        ("C", {"part": "x"}, "expected a dictionary with the key 'x'"),
        ({"x": 0.5}, {"part": "x"}, "value.x is 0.5: expected the option at_least"),
        ("C", {"accepted": ["C"], "rejected": ["C"]}, "'C' is said to be two things"),
    ],
)
def test_a_score_without_a_rule_is_refused(tmp_path, value, options, said):
    """With the member, the field and the option that it would take."""
    with pytest.raises(DeclarationError) as caught:
        only(tmp_path, sample(score=value), **options)
    assert said in str(caught.value)


def test_of_several_scores_one_is_named(tmp_path):
    """None of them is the first; a sample without the one is undecided."""
    data = sample(scores={"a": {"value": "C"}, "b": {"value": "I"}})
    with pytest.raises(DeclarationError, match="scores by a, b: expected the option scorer"):
        only(tmp_path, data)
    assert only(tmp_path, data, scorer="b").outcome_class == "FAIL"
    cell = only(tmp_path, data, scorer="c")
    assert (cell.outcome_class, cell.labels["score"]) == ("UNSCORABLE", "none by c")


def test_a_sample_without_a_score_is_undecided(tmp_path):
    """It ended by itself, and nobody judged it."""
    assert only(tmp_path, sample(score=None)).outcome_class == "UNSCORABLE"
    assert only(tmp_path, sample(scores=None)).outcome_class == "UNSCORABLE"


def test_an_edited_score_says_by_whom(tmp_path):
    """The value is the edited one, as Inspect has it."""
    edited = {"value": "C", "history": [{"value": "I"}, {"value": "C", "provenance": {"author": "ann"}}]}
    assert only(tmp_path, sample(scores={"match": edited})).labels["score_edited_by"] == "ann"


def test_conditions_come_from_places_tags_and_constants(tmp_path):
    """From the task's arguments, a tag, the sample's own metadata; the tag must be one."""
    log = eval_log(tmp_path / "log.eval", header(), [sample(metadata={"deep": {"arm": 7}, "other": "x" * 1000})])
    for place, arm in [
        ("eval.task_args.arm", "A"),
        ("eval.task_args.size", "3"),
        ("tag:arm-", "B"),
        ("metadata.who", "us"),
        ("sample.metadata.deep.arm", "7"),
        (["sample", "metadata", "deep", "arm"], "7"),
    ]:
        assert read(log, places={"arm": place})[0].cell.arm == arm
    for place, said in [
        ("tag:no", "0 tags begin with 'no'"),
        ("eval.nothing", "eval has no 'nothing'"),
        ("sample.metadata.nothing", "sample.metadata has no 'nothing'"),
    ]:
        with pytest.raises(DeclarationError) as caught:
            read(log, places={"arm": place})
        assert said in str(caught.value)


def test_a_limit_of_the_task_s_own_needs_a_meaning(tmp_path):
    """So does one that a later Inspect may bring."""
    data = sample(limit={"type": "custom", "limit": 2.0})
    with pytest.raises(DeclarationError, match=r'limit.type is \'custom\': .*ends."limit:custom"'):
        only(tmp_path, data)
    assert label_of(only(tmp_path, data, ends={"limit:custom": "HALT(calls)"})) == "HALT(calls)"


def test_an_exception_can_be_given_a_cause(tmp_path):
    """Or be the subject's own end: then its score decides."""
    data = sample(
        score="I", error={"message": "RateLimitError('429')"}, error_retries=[{"message": "RateLimitError('429')"}]
    )
    log = eval_log(tmp_path / "log.eval", header(), [data])
    given = read(log, ends={"RateLimitError": "VOID(model-server)"})
    assert [label_of(cell) for cell in given] == ["VOID(model-server)"] * 2
    assert [label_of(cell) for cell in read(log, ends={"RateLimitError": "DECLARED"})] == ["VOID(unknown)", "FAIL"]


def test_no_usage_is_unknown_and_not_nought(tmp_path):
    """A provider that does not count leaves the same as a sample that called nobody; the log says which calls it knows."""
    cell = only(tmp_path, sample(model_usage={}, turn_count=0))
    assert (cell.spend.tokens, cell.spend.calls, type(cell.spend.price)) == (None, 0, VoidPrice)
    assert cell.labels["calls"] == "none"
    old = sample()
    for name in ("model_usage", "total_time", "working_time", "uuid", "turn_count"):
        del old[name]
    cell = only(tmp_path, old)
    assert (cell.spend.tokens, cell.spend.calls, cell.spend.wall_s) == (None, None, None)


def test_a_model_without_a_price_makes_the_sum_a_lower_bound(tmp_path):
    """And another model than the condition's is said."""
    used = {
        "p/m": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "total_cost": 0.1},
        "g/g": {"total_tokens": 5},
    }
    cell = only(tmp_path, sample(model_usage=used))
    assert (cell.spend.tokens, type(cell.spend.price), cell.labels["models"]) == (7, LowerBoundPrice, "p/m, g/g")


@pytest.mark.parametrize("kind", ["eval", "json"])
def test_a_log_that_did_not_end_names_what_is_absent(tmp_path, kind):
    """Samples that were planned and left nothing are not failures, and not forgotten."""
    head = header(["s1", 2, "s3"], epochs=2, status="started")
    head["results"] = None
    samples = [sample("s1"), sample(2, epoch=2)]
    path = tmp_path / "log"
    log = eval_log(path, head, samples, end=False) if kind == "eval" else json_log(path, head, samples)
    counted, seen = Counted(), []
    assert len(list(counted.each(read(log, seen=seen)))) == 2
    census = counted.census(seen)
    assert (census.planned, census.absent, census.whole) == (6, 4, False)
    assert census.absent_named == ("2_epoch_1", "s3_epoch_1", "s1_epoch_2", "s3_epoch_2")
    assert "status is 'started'" in census.remarks[0]


def test_a_log_in_parts_is_read(tmp_path):
    """Recent versions may write a sample as several members; messages, events and attachments are left alone."""
    shell = {key: value for key, value in sample().items() if key not in {"messages", "events", "metadata"}}
    members = [
        ("samples/s1_epoch_1/sample.json", dump(shell)),
        ("samples/s1_epoch_1/metadata.json", dump({"arm": "B", "rest": "x"})),
        ("samples/s1_epoch_1/events/0.json", b"never read"),
        ("header.json", dump(header())),
    ]
    log = archive(tmp_path / "log.eval", members)
    (cell,) = read(log, places={"arm": "sample.metadata.arm"})
    assert (cell.outcome_class, cell.cell.arm) == ("PASS", "B")


def test_a_log_of_an_early_version_is_read(tmp_path):
    """A score without a name, no id of the eval, version 1."""
    head = header(version=1)
    del head["eval"]["eval_id"]
    data = sample() | {"score": {"value": "C"}}
    del data["scores"]
    (cell,) = read(json_log(tmp_path / "log.json", head, [data]))
    assert (cell.outcome_class, cell.cell.run) == ("PASS", "run1.task1")


def test_the_samples_of_a_retry_count_once(tmp_path):
    """A log of a retry takes over what the first had done: both together would count it twice."""
    first = eval_log(tmp_path / "1.eval", header(), [sample()])
    second = eval_log(tmp_path / "2.eval", header(eval_id="eval2"), [sample()])
    with pytest.raises(DeclarationError, match="one retries the other, so give the later alone"):
        read(first, second)
    copy = eval_log(tmp_path / "3.eval", header(), [sample(uuid="other")])
    with pytest.raises(DeclarationError, match="the same eval eval1"):
        read(first, copy)


LIMIT = st.sampled_from([None, *LIMITS])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["C", "I", None, float("nan")]), LIMIT, st.booleans(), st.integers(0, 2)), max_size=8
    ),
    st.booleans(),
)
def test_nothing_is_dropped(tmp_path_factory, rows, as_json):
    """As many cells as samples, as many rows as tries, and a verdict only where nothing stopped or broke the sample."""
    samples = [
        sample(
            number,
            score=score,
            limit=None if limit is None else {"type": limit, "limit": 1.0},
            error=BROKE if broke else None,
            error_retries=[BROKE] * retries,
        )
        for number, (score, limit, broke, retries) in enumerate(rows)
    ]
    head, path = header(list(range(len(rows)))), tmp_path_factory.mktemp("logs") / "log"
    log = json_log(path, head, samples) if as_json else eval_log(path, head, samples)
    counted, seen = Counted(), []
    cells = list(counted.each(read(log, seen=seen)))
    census = counted.census(seen)
    assert census.results == sum(census.classes.values()) == len(rows)
    assert census.tries == len(rows) + sum(retries for *_, retries in rows)
    assert census.absent == 0
    for cell in cells:
        score, limit, broke, _ = rows[int(cell.cell.task)]
        if cell.passed is not None:
            assert (limit, broke, cell.passed) == (None, False, score == "C")
