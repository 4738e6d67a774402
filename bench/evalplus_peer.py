"""EvalPlus 0.3.1, run as its users run it, and asked about single samples: always by an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.evalplus_meter import Run, Watched
from bench.evalplus_workloads import Benchmark, Sample
from harness.canonical import digest_bytes

__all__ = ["Outcome", "Peer", "PeerRun", "scratch"]

VERSION = "0.3.1"
_WARM = """
import sys
from evalplus.data import *
from evalplus.eval._special_oracle import MBPP_OUTPUT_NOT_NONE_TASKS as SOME
from evalplus.evaluate import get_groundtruth
from evalplus.data.humaneval import get_human_eval_plus_hash
from evalplus.data.mbpp import get_mbpp_plus_hash
if sys.argv[1] == "humaneval":
    get_groundtruth(get_human_eval_plus(), get_human_eval_plus_hash(), [])
else:
    get_groundtruth(get_mbpp_plus(), get_mbpp_plus_hash(), SOME)
"""
_ASK = Path(__file__).with_name("evalplus_asked.py")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a judge says of a sample, reduced to what both can say: are the base tests passed, and are all?"""

    base: bool
    all: bool


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """One run of `evalplus.evaluate`. `answer_s` is when its results were there; it goes on for up to 20 s after."""

    run: Run
    answer_s: float
    outcomes: Sequence[Outcome]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """EvalPlus of the interpreter `python`, with its data sets and ground truth kept below `cache`."""

    python: str
    cache: Path

    def check(self) -> str:
        """The version of its Python. Ends the bench when it can't be had or is another EvalPlus."""
        ask = "import platform; from importlib.metadata import version; import evalplus.evaluate\n"
        ask += "print(version('evalplus'), platform.python_version())"
        hint = f"`python3.11 -m venv ep && ep/bin/pip install evalplus=={VERSION}`, then --evalplus ep/bin/python"
        try:
            done = subprocess.run(
                [self.python, "-c", ask], check=False, capture_output=True, text=True, timeout=120, cwd="/"
            )
        except OSError as error:
            sys.exit(f"--evalplus {self.python}: {error}. It must be a Python that has evalplus {VERSION}: {hint}")
        words = done.stdout.split()
        if done.returncode or words[:1] != [VERSION]:
            said = words[0] if words else (done.stderr.strip().splitlines() or ["nothing"])[-1]
            sys.exit(f"--evalplus {self.python} has no evalplus {VERSION} ({said}): {hint}")
        return words[1]

    def environment(self, benchmark: Benchmark) -> dict[str, str]:
        """The variables by which it finds this data set and its own cache."""
        data = benchmark.text().encode()
        path = self.cache / f"{benchmark.name}-{digest_bytes(data)[:16]}.jsonl"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return {f"{benchmark.name.upper()}_OVERRIDE_PATH": str(path), "XDG_CACHE_HOME": str(self.cache)}

    def warm(self, benchmark: Benchmark) -> float:
        """Have its ground truth computed and kept; how long that took, in seconds (nothing much when it was kept)."""
        start = time.monotonic()
        environment = self.environment(benchmark)
        with scratch() as folder:
            run = Watched().run(
                [self.python, "-c", _WARM, benchmark.name], cwd=folder, log=folder / "log", env=environment
            )
            if run.status:
                sys.exit(f"evalplus has no ground truth for {benchmark.name}: {(folder / 'log').read_text()[-2000:]}")
        return time.monotonic() - start

    def evaluate(self, benchmark: Benchmark, samples: Sequence[Sample], workers: int) -> PeerRun:
        """Judge `samples` by `evalplus.evaluate`; every task of `benchmark` must have one."""
        with scratch() as folder:
            lines = (json.dumps({"task_id": one.task_id, "solution": one.solution}) for one in samples)
            (folder / "samples.jsonl").write_text("".join(f"{line}\n" for line in lines))
            words = ["-m", "evalplus.evaluate", "--dataset", benchmark.name, "--samples", str(folder / "samples.jsonl")]
            began = time.time()
            run = Watched().run(
                [self.python, *words, "--parallel", str(workers)],
                cwd=folder,
                log=folder / "log",
                env=self.environment(benchmark),
            )
            results = folder / "samples_eval_results.json"
            if run.status or not results.exists():
                sys.exit(f"evalplus.evaluate ended with {run.status}: {(folder / 'log').read_text()[-2000:]}")
            answer_s = results.stat().st_mtime - began
            outcomes = _outcomes(json.loads(results.read_text())["eval"], samples)
        return PeerRun(run=run, answer_s=answer_s, outcomes=outcomes)

    def ask(self, benchmark: Benchmark, question: Mapping[str, Any], **changes: str) -> Any:
        """What `evalplus_asked.py`, run by its interpreter, answers to a question; None when it gave none in time."""
        with scratch() as folder:
            (folder / "question.json").write_text(json.dumps({"benchmark": benchmark.name, **question}))
            run = Watched().run(
                [self.python, "-c", _ASK.read_text()],
                cwd=folder,
                log=folder / "log",
                env={**self.environment(benchmark), **changes},
                timeout_s=300,
            )
            answer = folder / "answer.json"
            if run.status or not answer.exists():
                print(f"evalplus did not answer: {(folder / 'log').read_text()[-1000:]}", file=sys.stderr)
                return None
            return json.loads(answer.read_text())


def _outcomes(told: Mapping[str, Sequence[Mapping[str, Any]]], samples: Sequence[Sample]) -> list[Outcome]:
    """Its results in the samples' order: it lists those of a task in the order of the file."""
    seen: dict[str, int] = defaultdict(int)
    found = []
    for sample in samples:
        row = told[sample.task_id][seen[sample.task_id]]
        assert row["solution"] == sample.solution, f"{sample.task_id}: results in another order than the samples"
        seen[sample.task_id] += 1
        base = row["base_status"] == "pass"
        found.append(Outcome(base=base, all=base and row["plus_status"] == "pass"))
    return found


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one run."""
    with TemporaryDirectory(prefix="proctor-bench-") as name:
        yield Path(name)
