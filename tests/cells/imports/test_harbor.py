"""Each trial of a job becomes a cell: what stopped it is a HALT, what broke is VOID, and only a verdict is a verdict."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cells.imports.harbor_ends import EXCEPTIONS
from cells.imports.imported import Counted, label_of
from cells.imports.importing import digest_of, import_cells
from harness.errors import DeclarationError
from harness.values import ExactPrice, Halt, LowerBoundPrice, Void, VoidPrice
from tests.cells.imports.foreign_writers import at, job, put, trial


def read(*folders, seen=None, **options):
    """The cells of the jobs."""
    return list(import_cells("harbor", folders, options, seen=seen))


def only(folder, data, **options):
    """The one cell of a job of one trial."""
    (cell,) = read(job(folder, [data]), **options)
    return cell


def test_a_trial_becomes_a_cell(tmp_path):
    """With the condition, the figures and the reading where Harbor has them."""
    cell = only(tmp_path / "first", trial())
    assert (cell.cell.run, cell.cell.id, cell.cell.replicate) == ("job-first", "solved__a", 1)
    assert (cell.cell.benchmark, cell.cell.task, cell.cell.arm) == ("set", "made/solved", "made")
    assert (cell.cell.extras, cell.cell.model) == ("none", "p/m")
    assert (cell.outcome_class, cell.passed) == ("PASS", True)
    assert cell.spend.price == ExactPrice(usd=0.25)
    assert (cell.spend.tokens, cell.spend.calls, cell.spend.wall_s) == (120, None, 4.0)
    assert cell.labels["verifier"] == "shared"


@pytest.mark.parametrize(
    ("raised", "label"),
    [
        *EXCEPTIONS.items(),
        ("SomethingNobodyKnows", "VOID(unknown)"),
    ],
)
@pytest.mark.parametrize("reward", [0, 1])
def test_an_exception_is_never_a_verdict(tmp_path, raised, label, reward):
    """Whatever the tests said afterwards: Harbor counts many of these as reward 0, and some as 1."""
    cell = only(tmp_path / "first", trial(reward=reward, raised=raised))
    assert (label_of(cell), cell.verdict, cell.passed) == (label, None, None)
    assert (cell.would_be is not None) == label.startswith("HALT")


def test_an_agent_that_solved_its_task_after_its_time_is_halted(tmp_path):
    """It went on while the tests ran, and Harbor says reward 1: here that is a diagnostic."""
    late = ("AgentTimeoutError", "Agent execution timed out after 3.0 seconds")
    cell = only(tmp_path / "first", trial(reward=1, raised=late))
    assert cell.end == Halt(limit="wall", scope="cell", bound=3.0, spent=4.0)
    assert cell.would_be.reading == "PASS"
    assert isinstance(cell.spend.price, LowerBoundPrice)


def test_a_timeout_of_the_agent_s_own_is_no_limit(tmp_path):
    """Harbor takes any TimeoutError that an agent lets out for its limit; the clock shows that it was not."""
    early = ("AgentTimeoutError", "Agent execution timed out after 900.0 seconds")
    cell = only(tmp_path / "first", trial(reward=0, raised=early))
    assert isinstance(cell.end, Void)
    assert "came after 4 s" in cell.end.detail


def test_an_image_that_did_not_build_leaves_no_number(tmp_path):
    """Harbor's versions count it as 0 or leave it out: two solved tasks are 2 of 2 judged and one void."""
    broken = trial("c__c", "made/c", reward=None, raised="RuntimeError", verified=False, agent_setup=None)
    broken |= {"agent_execution": None, "agent_result": None}
    counted, seen = Counted(), []
    folder = job(tmp_path / "first", [trial("a__a", "made/a"), trial("b__b", "made/b"), broken])
    cells = list(counted.each(read(folder, seen=seen)))
    assert [label_of(cell) for cell in cells] == ["PASS", "PASS", "VOID(workspace)"]
    assert counted.census(seen).causes == {"workspace: RuntimeError": 1}


def test_siblings_that_one_failure_took_down_are_void(tmp_path):
    """They were cancelled, and say nothing of the subject."""
    folder = job(tmp_path / "first", [trial("a__a", raised="CancelledError", reward=None)])
    assert [label_of(cell) for cell in read(folder)] == ["VOID(interrupted)"]


@pytest.mark.parametrize(("counted", "allowed"), [(2, 3), (None, 3)])
def test_spend_that_was_thrown_away_makes_prices_lower_bounds(tmp_path, counted, allowed):
    """Harbor removes the folder of a trial that it tries again, with what that cost."""
    seen = []
    cells = read(job(tmp_path / "first", [trial()], retries=counted, max_retries=allowed), seen=seen)
    assert isinstance(cells[0].spend.price, LowerBoundPrice)
    assert "lower bounds" in seen[0].remarks[0]


def test_without_retries_prices_are_exact(tmp_path):
    """As Harbor counts none, or allowed none."""
    for number, (counted, allowed) in enumerate([(0, 3), (None, 0)]):
        folder = job(tmp_path / str(number), [trial()], retries=counted, max_retries=allowed)
        assert read(folder)[0].spend.price == ExactPrice(usd=0.25)


def test_names_are_never_split(tmp_path):
    """Harbor joins agent, model and data set by `__`; names that have it stay whole."""
    info = {"name": "my__agent", "version": "1", "model_info": {"name": "m__x", "provider": None}}
    cell = only(tmp_path / "first", trial("a__b__c", "org/t__1", agent_info=info, source="d__s"))
    assert (cell.cell.id, cell.cell.task, cell.cell.arm, cell.cell.model) == (
        "a__b__c",
        "org/t__1",
        "my__agent",
        "m__x",
    )


def test_an_agent_s_words_decide_nothing(tmp_path):
    """An exception's message that speaks of a rate limiter is a message; its type is what Harbor recorded."""
    cell = only(tmp_path / "first", trial(raised=("NonZeroAgentExitCodeError", "wrote a rate limiter, 429")))
    assert label_of(cell) == "VOID(seat)"


def test_ends_can_be_registered(tmp_path):
    """An exit status that the experimenter says is the agent's own end: then the reward decides."""
    given = {"ends": {"NonZeroAgentExitCodeError": "DECLARED", "AgentTimeoutError": "VOID(harness)"}}
    assert only(tmp_path / "a", trial(reward=0, raised="NonZeroAgentExitCodeError"), **given).outcome_class == "FAIL"
    assert label_of(only(tmp_path / "b", trial(raised="AgentTimeoutError"), **given)) == "VOID(harness)"


@pytest.mark.parametrize(
    ("rewards", "options", "reading"),
    [
        ({"reward": 1}, {}, "PASS"),
        ({"reward": 0.0}, {}, "FAIL"),
        ({"reward": 0.5}, {"at_least": 0.5}, "PASS"),
        ({"reward": 0.5}, {"at_least": 0.6}, "FAIL"),
        ({"reward": 1, "style": 0.1}, {}, "PASS"),
        ({"reward": 1, "style": 0}, {"reward": "style"}, "FAIL"),
        ({"tests": 1}, {}, "PASS"),
        ({}, {}, "UNSCORABLE"),
        (None, {}, "UNSCORABLE"),
    ],
)
def test_rewards_are_read_by_rules(tmp_path, rewards, options, reading):
    """One is accepted, nought rejected, what is between by a threshold; no reward is no verdict."""
    cell = only(tmp_path / "first", trial(verifier_result={"rewards": rewards}), **options)
    assert cell.outcome_class == reading


@pytest.mark.parametrize(
    ("rewards", "said"),
    [
        ({"reward": 0.5}, "verifier_result.rewards.reward is 0.5: expected 0 or 1, or the option at_least"),
        ({"reward": -1}, "option at_least"),
        ({"a": 1, "b": 0}, "expected the option `reward` to name the one that decides, of a, b"),
        ({"reward": "1"}, "expected a number"),
        ({"reward": True}, "expected a number"),
        ({"reward": float("nan")}, "expected a finite number"),
        ([1], "expected a JSON object"),
    ],
)
def test_a_reward_without_a_rule_is_refused(tmp_path, rewards, said):
    """With the file, the field and the option that it would take."""
    with pytest.raises(DeclarationError) as caught:
        only(tmp_path / "first", trial(verifier_result={"rewards": rewards}))
    assert said in str(caught.value)
    assert "solved__a/result.json" in str(caught.value)


def test_trials_of_a_condition_are_numbered_as_they_began(tmp_path):
    """Over all jobs, in the order given; other conditions have numbers of their own."""
    first = job(
        tmp_path / "1", [trial("a__b", started_at=at(9)), trial("a__c", started_at=at(1)), trial("z__z", "made/z")]
    )
    second = job(tmp_path / "2", [trial("a__d", started_at=at(0))])
    found = {cell.cell.id: cell.cell.replicate for cell in read(first, second)}
    assert found == {"a__c": 1, "a__b": 2, "a__d": 3, "z__z": 1}


def test_conditions_come_from_places_and_constants(tmp_path):
    """From any member of a trial's result, by its names; dots in a name by a list."""
    options = {
        "places": {"arm": "config.agent.kwargs.style", "model": ["agent_info", "name"]},
        "constants": {"benchmark": "b"},
    }
    cell = only(tmp_path / "first", trial(), **options)
    assert (cell.cell.arm, cell.cell.model, cell.cell.benchmark) == ("B", "made", "b")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"places": {"arm": "config.agent.kwargs.nothing"}}, "config.agent.kwargs has no 'nothing'; it has style"),
        ({"places": {"arm": "config.agent"}}, "expected a text or a number"),
        ({"places": {"arm": "a"}, "constants": {"arm": "b"}}, "arm has both a place and a constant"),
        ({"scorer": "x"}, "unknown key 'scorer'"),
        ({"ends": {"X": "HALT"}}, "expected HALT with its limit"),
        ({"at_least": float("nan")}, "finite"),
        ({"constants": {"arm": "a|b"}}, "without '|'"),
    ],
)
def test_options_are_checked(tmp_path, options, said):
    """Unknown ones, doubled ones, and places that are not there."""
    with pytest.raises(DeclarationError) as caught:
        only(tmp_path / "first", trial(), **options)
    assert said in str(caught.value)


def test_an_oracle_has_no_model_until_somebody_says_one(tmp_path):
    """It is not invented."""
    bare = trial(agent_info={"name": "oracle", "version": "1"}, config={"agent": {"name": "oracle"}})
    with pytest.raises(DeclarationError, match="does not say the model"):
        only(tmp_path / "a", bare)
    assert only(tmp_path / "b", bare, constants={"model": "none"}).cell.model == "none"


def test_steps_are_summed_and_one_unknown_makes_the_sum_unknown(tmp_path):
    """Harbor adds what is known and calls it the total."""
    told = {"n_input_tokens": 10, "n_output_tokens": 1, "cost_usd": 0.1}
    ran = {"started_at": at(0), "finished_at": at(5)}
    steps = [{"step_name": "1", "agent_result": told, "agent_execution": ran} for _ in range(2)]
    whole = trial("a__a", agent_result=None, agent_execution=None, step_results=steps)
    cell = only(tmp_path / "a", whole)
    assert (cell.spend.tokens, cell.spend.wall_s, cell.spend.price) == (22, 10.0, ExactPrice(usd=0.2))
    unknown = [steps[0], steps[0] | {"agent_result": {"n_input_tokens": 10}}]
    cell = only(tmp_path / "b", trial("a__a", agent_result=None, agent_execution=None, step_results=unknown))
    assert (cell.spend.tokens, type(cell.spend.price)) == (None, LowerBoundPrice)
    lost = [steps[0], {"step_name": "2", "agent_execution": ran}]
    cell = only(tmp_path / "c", trial("a__a", agent_result=None, agent_execution=None, step_results=lost))
    assert (cell.spend.tokens, type(cell.spend.price)) == (None, LowerBoundPrice)


def test_a_step_s_exception_counts_and_void_goes_before_halt(tmp_path):
    """Harbor records it at the step alone, and rewards the mean of the others."""
    late = {"exception_type": "AgentTimeoutError", "exception_message": "Agent execution timed out after 3 seconds"}
    broke = {"exception_type": "HealthcheckError", "exception_message": "no"}
    steps = [{"step_name": "1", "exception_info": late}, {"step_name": "2"}]
    assert label_of(only(tmp_path / "a", trial(step_results=steps))) == "HALT(wall)"
    steps[1]["exception_info"] = broke
    assert label_of(only(tmp_path / "b", trial(step_results=steps))) == "VOID(workspace)"


def test_what_an_agent_did_not_tell_is_unknown(tmp_path):
    """And never nought."""
    cell = only(tmp_path / "first", trial(agent_result={"n_input_tokens": None}, agent_execution=None))
    assert (cell.spend.tokens, cell.spend.wall_s, type(cell.spend.price)) == (None, None, VoidPrice)


def test_a_trial_without_a_result_is_void(tmp_path):
    """Harbor was killed as it was on: it skips such a folder, and removes it on resuming."""
    folder = job(tmp_path / "first", [trial("a__a"), trial("b__b")], planned=3)
    (folder / "a__a" / "result.json").unlink()
    (folder / "b__b" / "result.json").write_text(" \n")
    seen = []
    options = {"places": {"arm": "config.agent.kwargs.style"}, "constants": {"task": "t", "model": "m"}}
    cells = read(folder, seen=seen, **options)
    assert [(cell.cell.arm, label_of(cell)) for cell in cells] == [("B", "VOID(interrupted)")] * 2
    assert (seen[0].results, seen[0].absences) == (2, 1)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, None]), st.sampled_from([None, *EXCEPTIONS, "Odd"]), st.booleans()), max_size=8
    )
)
def test_nothing_is_dropped(tmp_path_factory, rows):
    """As many cells as folders of trials, whatever became of each."""
    trials = [trial(f"t__{number}", reward=reward, raised=raised) for number, (reward, raised, _) in enumerate(rows)]
    folder = job(tmp_path_factory.mktemp("jobs") / "j", trials)
    for number, (_reward, _raised, lost) in enumerate(rows):
        if lost:
            (folder / f"t__{number}" / "result.json").unlink()
    counted, seen = Counted(), []
    cells = list(counted.each(read(folder, seen=seen, constants={"task": "t", "model": "m", "arm": "a"})))
    assert {cell.cell.id for cell in cells} == {data["trial_name"] for data in trials}
    census = counted.census(seen)
    assert (census.results, census.tries, sum(census.classes.values())) == (len(rows),) * 3
    judged = [cell for cell in cells if cell.passed is not None]
    assert all(rows[int(cell.cell.id[3:])][1] is None for cell in judged)


def hostile(path, name, change):
    """A job of one trial, changed."""
    folder = job(path / "first", [trial()])
    change(folder, folder / "solved__a" / name)
    return folder


HOSTILE = {
    "torn": (lambda _, file: file.write_text(file.read_text()[:200]), "result.json is not JSON at byte 200"),
    "list": (lambda _, file: file.write_text("[]"), "the whole is []: expected a JSON object"),
    "binary": (lambda _, file: file.write_bytes(b"\x00\xff" * 50), "is not JSON at byte"),
    "doubled": (lambda _, file: file.write_text('{"trial_name": "a", "trial_name": "b"}'), "is there twice"),
    "version": (lambda _, file: put(file, trial(schema_version=2)), "schema_version is 2: expected 1, or none"),
    "no name": (lambda _, file: put(file, trial(trial_name=None)), "trial_name is None: expected a text"),
    "no config": (lambda _, file: put(file, trial(config=None)), "config is None: expected a JSON object"),
    "tokens": (
        lambda _, file: put(file, trial(agent_result={"n_input_tokens": -1})),
        "agent_result.n_input_tokens is -1",
    ),
    "huge": (lambda _, file: put(file, trial(agent_result={"n_input_tokens": 10**400})), "expected a whole number"),
    "cost": (lambda _, file: put(file, trial(agent_result={"cost_usd": "1"})), "agent_result.cost_usd is '1'"),
    "nan": (lambda _, file: put(file, trial(agent_result={"cost_usd": float("nan")})), "expected a finite number"),
    "moment": (lambda _, file: put(file, trial(ran=(5, 1))), "expected a moment that is not before started_at"),
    "no moment": (
        lambda _, file: put(file, trial(agent_execution={"started_at": "soon", "finished_at": at(1)})),
        "agent_execution.started_at is 'soon': expected a moment",
    ),
    "task": (lambda _, file: put(file, trial(task="a\nb")), "task is 'a\\nb': expected a name that prints"),
    "exception": (
        lambda _, file: put(file, trial(exception_info="x")),
        "exception_info is 'x': expected a JSON object",
    ),
    "link": (lambda _, file: (file.unlink(), file.symlink_to("/dev/zero")), "can't be read"),
    "folder": (lambda _, file: (file.unlink(), file.mkdir()), "no plain file"),
    "job": (lambda folder, _: put(folder / "result.json", {"n_total_trials": 1}), "id is missing"),
    "job version": (lambda folder, _: put(folder / "result.json", {"schema_version": 9}), "schema_version is 9"),
    "linked trial": (lambda folder, _: (folder / "x").symlink_to(folder / "solved__a"), "is a link"),
    "twice": (
        lambda folder, _: ((folder / "x").mkdir(), put(folder / "x" / "result.json", trial())),
        "trial 'solved__a' is there twice",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_harbor_would_not_write_is_refused(tmp_path, name):
    """By the file and the field."""
    change, said = HOSTILE[name]
    folder = hostile(tmp_path, "result.json", change)
    with pytest.raises(DeclarationError) as caught:
        read(folder)
    assert said in str(caught.value)


def test_a_folder_that_is_no_job_is_named(tmp_path):
    """A trial's, an empty one, a file, the same job again."""
    folder = job(tmp_path / "first", [trial()])
    (tmp_path / "empty").mkdir()
    for path, said in [
        (folder / "solved__a", f"is a trial: expected the folder of its job, {folder}"),
        (tmp_path / "empty", "neither result.json nor config.json"),
        (folder / "result.json", "is no folder"),
    ]:
        with pytest.raises(DeclarationError) as caught:
            read(path)
        assert said in str(caught.value)
    with pytest.raises(DeclarationError, match="the same job"):
        read(folder, job(tmp_path / "other" / "first", [trial()]))


def test_other_folders_are_left_out_and_said(tmp_path):
    """What is no trial is no cell, and not passed over in silence."""
    folder = job(tmp_path / "first", [trial()])
    (folder / "notes").mkdir()
    seen = []
    assert len(read(folder, seen=seen)) == 1
    assert seen[0].remarks == ["the folder 'notes' is no trial, and was left out"]


def test_tokens_of_an_agent_are_never_read(tmp_path):
    """They may be of any length: what is wanted of a result stays small."""
    long = {
        "rollout_details": [{"completion_token_ids": [list(range(1000))] * 50}],
        "n_input_tokens": 1,
        "n_output_tokens": 1,
    }
    assert only(tmp_path / "first", trial(agent_result=long)).spend.tokens == 2


def test_the_digest_is_of_what_is_read(tmp_path):
    """It changes with a result, and not with what an agent wrote beside it."""
    folder = job(tmp_path / "first", [trial()])
    before = digest_of("harbor", folder)
    (folder / "solved__a" / "trial.log").write_text("x")
    assert before == digest_of("harbor", folder)
    put(folder / "solved__a" / "result.json", trial(reward=0))
    assert before != digest_of("harbor", folder)


def test_an_unknown_importer_is_named_with_the_known():
    """And one without logs is refused."""
    with pytest.raises(DeclarationError, match=r"unknown importer 'harbour'. Did you mean 'harbor'"):
        import_cells("harbour", [], {})
    with pytest.raises(DeclarationError, match="name no harbor log"):
        import_cells("harbor", [], {})


def test_an_install_only_job_booted_nothing(tmp_path):
    """Its agents never ran."""
    bare = trial(reward=None, config={"agent": {"name": "a"}, "install_only": True}, agent_execution=None)
    assert only(tmp_path / "first", bare).outcome_class == "FAILED_BOOT"
    assert json.loads((tmp_path / "first" / "config.json").read_text())["job_name"] == "first"
