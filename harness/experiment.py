"""
The experiment file: what a person writes, validated whole before anything else happens.

Every table refuses keys that it does not know and names the nearest one that it does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.analysis import Analysis
from harness.arm_entries import ArmChoice, ArmEntry
from harness.confirmation import ConfirmsEntry, refuse_bad_confirms
from harness.errors import ExperimentError
from harness.figure_refs import Known
from harness.money import checked_rate
from harness.population import PopulationEntry
from harness.predictions import AdverseEntry, OutcomeRow, Prediction, StopRule, refuse_bad_claims
from harness.table_faults import explain
from harness.written import toml_of

__all__ = [
    "ArmEntry",
    "Budget",
    "Budgets",
    "CostEntry",
    "DecodingEntry",
    "Experiment",
    "LimitsEntry",
    "ModelChoice",
    "ModelEntry",
    "Rates",
    "RefereeEntry",
    "RefereeLimitsEntry",
    "RetriesEntry",
    "SeatEntry",
    "TaskDraw",
    "TaskEntry",
    "WorkspaceEntry",
    "load_experiment",
    "parse_experiment",
]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$")]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


def _exact(rate: float) -> float:
    checked_rate(rate)
    return rate


Rate = Annotated[float, AfterValidator(_exact)]


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, strict=True
    )


class TaskDraw(_Table):
    """A reproducible draw from a data set."""

    seed: int
    """Decides the draw: tasks are ordered by the SHA-256 of `seed|task_id`."""
    n: Count
    """How many tasks to take."""


class TaskEntry(_Table):
    """Where tasks come from."""

    source: str
    """`folder:PATH` for one task folder or a folder of them; `evalplus:humaneval`, `evalplus:mbpp` or
    `evalplus:FILE.jsonl` for a data set in the EvalPlus schema. Paths are relative to the experiment file."""
    profile: Name | None = None
    """A named part of the benchmark; each is a reconstruction of what a study used."""
    ids: list[str] = []
    """Take these tasks only; empty takes all."""
    draw: TaskDraw | None = None
    """Take a seeded draw instead of all."""
    cap: Count | None = None
    """Take at most so many, the first in the order of the source or the draw."""
    benchmark: Name | None = None
    """Another name for the benchmark than the source's own."""


class Rates(_Table):
    """US dollars per million tokens, by direction."""

    input: Rate
    """Fresh input tokens."""
    output: Rate
    """Output tokens."""
    cache_read: Rate = 0.0
    """Input tokens read from a cache."""
    cache_write_5m: Rate = 0.0
    """Input tokens written to a five-minute cache."""
    cache_write_1h: Rate = 0.0
    """Input tokens written to a one-hour cache."""


class ModelChoice(_Table):
    """One way to reach a model."""

    provider: Name
    """A registered model provider: `local`, `ollama`, `openai`, `scripted`, or a plugin's."""
    model: str
    """What the provider calls it."""
    base_url: str | None = None
    """The server's address, for providers that have one."""
    key_env: str | None = None
    """The name of the environment variable that holds the key; never the key."""
    options: dict[str, Any] = {}
    """The provider's own options."""


class ModelEntry(_Table):
    """A model under the experiment's own name."""

    name: Name
    """Part of every unit and cell."""
    provider: Name | None = None
    """A registered model provider; or leave it out and give `choices`."""
    model: str | None = None
    """What the provider calls the model."""
    base_url: str | None = None
    """The server's address, for providers that have one."""
    key_env: str | None = None
    """The name of the environment variable that holds the key; never the key."""
    options: dict[str, Any] = {}
    """The provider's own options."""
    choices: list[ModelChoice] = []
    """In order: the first that can be reached when the experiment is frozen is pinned."""
    rates: Rates | None = None
    """Prices of the model as it is served; without them or a rate card the cost in dollars is void, not zero."""
    rate_card: str | None = None
    """A rate card instead: a TOML file, relative to the experiment file; its bytes are pinned."""

    @model_validator(mode="after")
    def _one_way(self) -> ModelEntry:
        if self.rates is not None and self.rate_card is not None:
            raise ValueError(f"model {self.name!r}: give either `rates` or `rate_card`")
        direct = self.provider is not None and self.model is not None
        if direct == bool(self.choices) or (self.choices and (self.provider or self.model)):
            raise ValueError(f"model {self.name!r}: give either `provider` and `model`, or `choices`")
        return self

    def ways(self) -> list[ModelChoice]:
        """The choices in order; one, where the entry names a provider itself."""
        if self.choices:
            return self.choices
        assert self.provider is not None
        assert self.model is not None
        return [
            ModelChoice(
                provider=self.provider,
                model=self.model,
                base_url=self.base_url,
                key_env=self.key_env,
                options=self.options,
            )
        ]


class DecodingEntry(_Table):
    """How the model samples."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 0.8
    """0 is greedy."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Nucleus sampling."""
    num_predict: Count = 512
    """Most tokens of one answer."""
    num_ctx: Count = 4096
    """The context window, in tokens."""
    stop: list[str] = []
    """Texts that end an answer."""


class SeatEntry(_Table):
    """The kind of agent session."""

    kind: Name = "oneshot"
    """A registered seat: `oneshot`, `loop`, `scripted`, or a plugin's."""
    seed_namespace: Annotated[str, Field(min_length=1, pattern=r"^[^|\s]+$")]
    """Seeds are drawn from it; two experiments never share one."""
    options: dict[str, Any] = {}
    """The seat's own options (`rounds`, `max_turns`, ...)."""
    decoding: DecodingEntry = DecodingEntry()
    """How the model samples."""


class LimitsEntry(_Table):
    """What a workspace may use."""

    memory_bytes: Count = 1 << 30
    """Memory of everything in it together, in bytes."""
    pids: Count = 128
    """Processes and threads."""
    cpus: Positive = 1.0
    """CPU cores."""
    workspace_bytes: Count = 256 << 20
    """Size of `/workspace`, in bytes."""
    workspace_inodes: Count = 20_000
    """Files and folders in `/workspace`."""
    tmp_bytes: Count = 64 << 20
    """Size of `/tmp`, in bytes."""
    shm_bytes: Count = 16 << 20
    """Size of `/dev/shm`, in bytes."""
    file_bytes: Count = 64 << 20
    """Largest single file, in bytes."""
    open_files: Count = 1024
    """Open files of one process."""
    lifetime_s: Positive = 7200.0
    """Seconds after which a workspace ends whatever happens to its driver."""


class WorkspaceEntry(_Table):
    """Where seats and referees work."""

    backend: Name = "auto"
    """`docker`, `bubblewrap`, a plugin's, or `auto` (Docker if its engine answers, else bubblewrap)."""
    image: str = "proctor-seat"
    """The image, as `proctor image build` names it, or as the engine does."""
    limits: LimitsEntry = LimitsEntry()
    """What a workspace may use."""


class Budget(_Table):
    """Limits of one scope; a limit that is left out does not bind."""

    tokens: Count | None = None
    """All tokens, in and out."""
    usd: Positive | None = None
    """US dollars; needs `rates` or a `rate_card` on every model."""
    calls: Count | None = None
    """Calls of the model."""
    wall_s: Positive | None = None
    """Seconds of the seat's time."""
    output_bytes: Count | None = None
    """Bytes of tool output and model text together."""


class Budgets(_Table):
    """Limits of a cell, of an arm over the whole run, and of the run."""

    cell: Budget = Budget()
    """Of each try of a cell."""
    arm: Budget = Budget()
    """Of all cells of one arm together."""
    run: Budget = Budget()
    """Of the whole run."""


class CostEntry(_Table):
    """How prices are written down."""

    rounding: Literal["raw", "cents"] = "raw"
    """The price of a try, once its calls are added up: `raw`, or `cents`, a half to the even one."""


class RefereeLimitsEntry(LimitsEntry):
    """What a workspace of the referee's may use: as a seat's, with more memory."""

    memory_bytes: Count = 3 << 30
    """Memory of everything in it together, in bytes."""


class RefereeEntry(_Table):
    """Who judges."""

    name: Name
    """A registered referee: `evalplus`, `pytest`, `null`, or a plugin's."""
    options: dict[str, Any] = {}
    """The referee's own options."""
    image: str = ""
    """The image of the referee's rooms; empty takes the seat's. A task's card may name another."""
    limits: RefereeLimitsEntry = RefereeLimitsEntry()
    """What a workspace of the referee's may use."""
    judges: Literal["shipped", "any-accepted"] = "shipped"
    """Which candidates of a cell are judged: the one that ships, or each that the public tests accepted."""


class RetriesEntry(_Table):
    """How often a failure that is nobody's result is tried again."""

    void: Annotated[int, Field(ge=0, le=10)] = 1
    """Further tries of a VOID cell; each try is a line of its own, and its spend is kept."""


class Experiment(_Table):
    """The whole file."""

    name: Name
    """Names the run folder."""
    question: Annotated[str, Field(min_length=1)]
    """What the experiment asks, in a sentence."""
    tasks: Annotated[list[TaskEntry], Field(min_length=1)]
    """Where tasks come from."""
    models: Annotated[list[ModelEntry], Field(min_length=1)]
    """The models."""
    population: PopulationEntry | None = None
    """Which units are played, by a pool made beforehand; left out, every task with every model."""
    seat: SeatEntry
    """The kind of agent session."""
    arms: Annotated[list[ArmChoice], Field(min_length=1)]
    """Registered names, or arms in files and folders of the experiment's own."""
    extras: Annotated[list[Name], Field(min_length=1)] = ["none"]
    """Named additions a card may carry; `none` is the card alone."""
    replicates: Count = 1
    """How often each condition is run."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 1
    """Cells at once."""
    workspace: WorkspaceEntry = WorkspaceEntry()
    """Where seats and referees work."""
    fence: dict[str, Any] = {}
    """The fence's policy; see docs/explanation/fences.md."""
    budgets: Budgets = Budgets()
    """What stops a seat."""
    cost: CostEntry = CostEntry()
    """How prices are written down."""
    referee: RefereeEntry
    """Who judges."""
    retries: RetriesEntry = RetriesEntry()
    """How often a failure that is nobody's result is tried again."""
    analysis: Analysis
    """Contrasts and tests, registered before the first call."""
    confirms: list[ConfirmsEntry] = []
    """Effects of finished discovery runs that this experiment confirms, each promoted to it once."""
    predictions: list[Prediction] = []
    """Claims about the result, each with what would refute it."""
    outcomes: list[OutcomeRow] = []
    """The table of outcomes: what is concluded from each result; exactly one row holds, whatever comes."""
    adverse: list[AdverseEntry] = []
    """What would speak against the experiment or its treatment, reported as happened or not."""
    stops: list[StopRule] = []
    """When to stop early: looked at after each outcome; once one is met, no further cell starts."""

    @model_validator(mode="after")
    def _consistent(self) -> Experiment:
        arms = [arm if isinstance(arm, str) else arm.name for arm in self.arms]
        for what, names in (("arm", arms), ("model", [model.name for model in self.models]), ("extra", self.extras)):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"{what} {name!r} is listed {names.count(name)} times: expected once")
        budgets = (self.budgets.cell, self.budgets.arm, self.budgets.run)
        unrated = [model.name for model in self.models if model.rates is None and model.rate_card is None]
        if unrated and any(budget.usd is not None for budget in budgets):
            raise ValueError(
                f"a budget in `usd` needs `rates` or `rate_card` on every model: {', '.join(unrated)} has none"
            )
        if self.referee.judges != "shipped" and self.seat.kind != "oneshot":
            raise ValueError(
                f"referee.judges is {self.referee.judges!r} with seat {self.seat.kind!r}: expected seat 'oneshot', "
                "whose transcript has a candidate for each round"
            )
        models = [model.name for model in self.models]
        self.analysis.validate_against(arms, models, self.extras)
        refuse_bad_confirms(self.confirms, [item.name for item in self.analysis.contrasts])
        self.refuse_bad_claims(Known(analysis=self.analysis, arms=arms, extras=self.extras, models=models))
        return self

    def refuse_bad_claims(self, known: Known) -> None:
        """Raise `ExperimentError` for what was said of the result and can't be, by what is known of the experiment."""
        refuse_bad_claims(
            known, predictions=self.predictions, outcomes=self.outcomes, adverse=self.adverse, stops=self.stops
        )

    def arm_names(self) -> list[str]:
        """The arms' names in the order of the file."""
        return [arm if isinstance(arm, str) else arm.name for arm in self.arms]


def load_experiment(path: Path) -> Experiment:
    """Read and validate an experiment file. Raises `ExperimentError` that names the bad value and what was expected."""
    if path.is_dir():
        path = path / "experiment.toml"
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ExperimentError(f"{path} does not exist: `proctor init DIR` writes an example") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path} can't be read: {error}") from None
    return parse_experiment(text, str(path))


def parse_experiment(text: str, origin: str = "experiment.toml") -> Experiment:
    """Validate the text of an experiment file; `origin` is how messages call it."""
    try:
        return Experiment.model_validate(toml_of(text))
    except ValidationError as error:
        raise ExperimentError(explain(error, origin, Experiment)) from None
    except ValueError as error:
        raise ExperimentError(f"{origin} is not valid TOML: {error}") from None
