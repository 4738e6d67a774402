"""The header of an Inspect log: which eval it is of, and what holds for all its samples."""

from __future__ import annotations

from typing import Any, Final

from cells.imports.fields import Fields
from cells.imports.imported import Seen
from cells.imports.inspect_sample import Log
from cells.imports.skim import Wanted

__all__ = ["HEADER", "planned_names", "read_header"]

_PLAN: Final[Wanted] = {"steps": {"solver": None}}
HEADER: Final[Wanted] = {
    **dict.fromkeys(("version", "status", "eval", "invalidated", "tags", "metadata")),
    "plan": _PLAN,
    "results": {"total_samples": None},
}
"""What is read of a header; figures that Inspect computed are not: they count what is told apart here."""

_VERSIONS: Final = {1, 2}


def read_header(header: Fields, note: Seen) -> Log:
    """The log's own facts; remarks on it go to `note`. Raises `DeclarationError` for a version that is not known."""
    if isinstance(header.raw("version"), bool) or header.raw("version") not in _VERSIONS:
        raise header.fault("version", "1 or 2, the versions of Inspect's logs that are known")
    spec = header.part("eval")
    status = header.maybe_text("status") or "started"
    if status != "success":
        note.remarks.append(f"the eval's status is {status!r}: it did not end as planned")
    return Log(
        run=_run(spec),
        document={
            "eval": {name: spec.raw(name) for name in _EVAL},
            "metadata": header.raw("metadata") or spec.raw("metadata") or {},
            "tags": header.raw("tags") or spec.raw("tags") or [],
        },
        usual={
            "benchmark": spec.text("task"),
            "arm": spec.maybe_text("solver") or _steps(header),
            "extras": "none",
            "model": spec.text("model"),
            "task": None,
        },
    )


_EVAL: Final = (
    *("task", "task_version", "task_args", "solver", "solver_args", "model", "model_args", "model_generate_config"),
    *("metadata", "dataset", "config", "eval_id", "run_id", "task_id", "eval_set_id", "created"),
)
"""Where places of a condition may lead."""


def _run(spec: Fields) -> str:
    """The eval's id; logs before 0.3.98 or so have none, and the ids of run and task together are as good."""
    return spec.maybe_text("eval_id") or f"{spec.text('run_id')}.{spec.text('task_id')}"


def _steps(header: Fields) -> str | None:
    plan = header.maybe_part("plan")
    names = [step.text("solver") for step in plan.parts("steps")] if plan is not None else []
    return "+".join(names) or None


def planned_names(header: Fields) -> tuple[int | None, list[str]]:
    """How many samples were to be, None if that is not told, and their names where the log has their ids."""
    spec = header.part("eval")
    config = spec.maybe_part("config")
    epochs = (config.maybe_whole("epochs", at_least=1) if config is not None else None) or 1
    dataset = spec.maybe_part("dataset")
    ids: Any = dataset.raw("sample_ids") if dataset is not None else None
    names = [f"{each}_epoch_{epoch}" for epoch in range(1, epochs + 1) for each in ids] if _is_ids(ids) else []
    results = header.maybe_part("results")
    total = results.maybe_whole("total_samples") if results is not None else None
    return (total if total is not None else len(names) or None), names


def _is_ids(ids: Any) -> bool:
    return isinstance(ids, list) and all(isinstance(each, (str, int)) for each in ids)
