"""
How long scoring 100,000 cells takes, and how much memory: a declared set from CSV, JSON Lines and Parquet, and a run
that was recorded.

    python bench/scoring.py [CELLS]

Each is read and scored in a process of its own, so that its peak memory is its own. Beside it stands the floor: the
time that Python's own reader alone takes for the file; for a record, that of hashing its lines. On a machine that does
nothing else the limits are 5 seconds and 1 GiB; a busy one slows the floor as well, which the ratio shows. Ends with 1
over a limit.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.experiment import parse_experiment
from harness.outcome import CellOutcome, Spend, outcome_to_json
from harness.record import encode_line
from harness.registration import Registration, save_registration
from harness.values import CellKey, Declared, Evidence, ExactPrice, Halt, Usage, Verdict

AT = "2026-12-01T00:00:00.000Z"
LIMIT_S, LIMIT_MIB = 5.0, 1024

DECLARATION = """
question = "Is it fast?"
[[sources]]
[sources.columns]
id = "id"
run = "run"
task = "task"
arm = "arm"
replicate = "replicate"
end = "end"
reading = "reading"
usd = "usd"
lower_bound = "bound"
tokens = "tokens"
calls = "calls"
wall_s = "wall_s"
[sources.constants]
benchmark = "made"
extras = "none"
model = "m"
[sources.ends]
LANDED = "DECLARED"
CAP = "HALT(usd)"
BOOT = "FAILED_BOOT"
[sources.verdicts]
PASS = "accepted"
FAIL = "rejected"
[[analysis.contrasts]]
name = "passes"
treatment = "A"
control = "B"
[[analysis.ratios]]
name = "cost"
quantity = "usd"
treatment = "A"
control = "B"
alternative = "greater"
sd_ln = 0.3
[[readings]]
name = "all"
cells_file = "names.txt"
"""

SCORING = """
import resource, sys, time
from pathlib import Path
from cells.declared.opening import read_declared
from cells.declared.view import parts_of
from cells.score_view import plain
started = time.perf_counter()
found = read_declared(Path(sys.argv[1]), files=[Path(sys.argv[2])])
plain(parts_of(found))
assert found.final and found.readings[0].declared == int(sys.argv[3])
print(time.perf_counter() - started, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

RECORDED = """
import resource, sys, time
from pathlib import Path
from cells.boards import boards_of
from cells.score_view import plain_scoreboard
started = time.perf_counter()
board = boards_of(Path(sys.argv[1])).frozen
plain_scoreboard(board)
assert board.status == "final" and board.planned == int(sys.argv[2]), board.problems[:3]
print(time.perf_counter() - started, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""

EXPERIMENT = """
name = "long"
question = "Is it fast?"
arms = ["plain", "placebo"]
replicates = {replicates}
[[tasks]]
source = "evalplus:tasks.jsonl"
[[models]]
name = "m"
provider = "scripted"
model = "script"
[seat]
kind = "scripted"
seed_namespace = "long"
[referee]
name = "null"
[[analysis.contrasts]]
name = "passes"
treatment = "plain"
control = "placebo"
[[analysis.ratios]]
name = "cost"
quantity = "usd"
treatment = "plain"
control = "placebo"
alternative = "greater"
sd_ln = 0.3
[analysis]
"""

REPLICATES = 50
"""Cells of one condition, as many as the rows of one task and arm in the files."""

FLOORS = {
    "csv": "import csv; n = sum(1 for _ in csv.reader(open(path, newline='')))",
    "jsonl": "import json; n = sum(1 for line in open(path) if json.loads(line))",
    "record": "import hashlib; n = sum(1 for line in open(path, 'rb') if hashlib.sha256(line).hexdigest())",
    "parquet": (
        "import duckdb; base = duckdb.connect(config={'threads': 1}); base.execute('SET enable_progress_bar = false'); "
        "n = len(base.read_parquet(path).fetchall())"
    ),
}
FLOOR = (
    "import sys, time; path = sys.argv[1]; started = time.perf_counter(); {read}; print(time.perf_counter() - started)"
)


def make(folder: Path, cells: int) -> None:
    """Write the same cells in all three formats, the list of their names, and the declaration."""
    import duckdb

    chance = random.Random(1)  # noqa: S311 - figures to be read, not secrets
    fields = ["id", "run", "task", "arm", "replicate", "end", "reading", "usd", "bound", "tokens", "calls", "wall_s"]
    with (folder / "cells.csv").open("w", newline="") as table, (folder / "cells.jsonl").open("w") as lines:
        writer = csv.writer(table)
        writer.writerow(fields)
        for at in range(cells):
            row = [f"c{at}", f"run{at % 7}", f"task{at // 100}", "AB"[at % 2], at % 100 // 2 + 1]
            row += [chance.choice(["LANDED"] * 8 + ["CAP", "BOOT"]), chance.choice(["PASS", "FAIL"])]
            row += [round(chance.random() * 10, 4), at % 3 == 0, chance.randrange(10**6), chance.randrange(100)]
            row.append(round(chance.random() * 1000, 2))
            writer.writerow(row)
            lines.write(json.dumps(dict(zip(fields, row, strict=True))) + "\n")
    (folder / "names.txt").write_text("".join(f"run{at % 7}/c{at}\n" for at in range(cells)))
    (folder / "declaration.toml").write_text(DECLARATION)
    with duckdb.connect() as base:
        base.execute("SET enable_progress_bar = false")
        base.read_csv(str(folder / "cells.csv")).write_parquet(str(folder / "cells.parquet"))


def record(folder: Path, cells: int) -> None:
    """Write a run of so many cells that were all played: its registration and its record, each line with its digest."""
    keys = [
        CellKey(benchmark="long", task=f"Long/{task}", arm=arm, extras="none", model="m", replicate=replicate)
        for task in range(cells // (2 * REPLICATES))
        for arm in ("plain", "placebo")
        for replicate in range(1, REPLICATES + 1)
    ]
    experiment = parse_experiment(EXPERIMENT.format(replicates=REPLICATES)).model_dump(mode="json")
    registration = Registration(
        name="long",
        question="Is it fast?",
        experiment=experiment,
        pins={"model m": {"served": "script", "digest": None}},
        cells=tuple(keys),
        refused=(),
        outlook={},
        frozen_at=AT,
        source=None,
    )
    save_registration(folder, registration)
    chance, prev, seq = random.Random(1), registration.digest, 0  # noqa: S311 - figures to be read, not secrets
    with (folder / "record.jsonl").open("wb") as file:
        for seq, (kind, body) in enumerate(entries(registration.id, keys, chance)):
            line, prev = encode_line(seq=seq, at=AT, kind=kind, body=body, prev=prev)
            file.write(line + b"\n")
    (folder / "head").write_text(f"{seq}:{prev}\n", "ascii")


def entries(registration: str, keys: Iterable[CellKey], chance: random.Random) -> Iterator[tuple[str, Any]]:
    """A start and an end of each cell."""
    yield "run.opened", {"registration": registration}
    for key in keys:
        yield "cell.started", {"cell": asdict(key), "attempt": 1}
        yield "cell.ended", outcome_to_json(played(key, chance))


def played(key: CellKey, chance: random.Random) -> CellOutcome:
    """An outcome of a cell: one in ten is halted."""
    verdict = Verdict(
        evidence=Evidence(code="c" * 64, suite="s" * 64, execution="e" * 32),
        **chance.choice([{"reading": "PASS", "standing": "accepted"}, {"reading": "FAIL", "standing": "rejected"}]),
    )
    halted = chance.random() < 0.1
    return CellOutcome(
        cell=key,
        attempt=1,
        end=Halt(limit="usd", scope="cell", bound=10.0, spent=10.0) if halted else Declared(note="done"),
        verdict=None if halted else verdict,
        would_be=verdict if halted else None,
        spend=Spend(
            usage=Usage(input=chance.randrange(10**6), cache_write_5m=0, cache_write_1h=0, cache_read=0, output=900),
            charged_tokens=1000,
            estimated=False,
            calls=chance.randrange(1, 100),
            output_bytes=100,
            wall_s=round(chance.random() * 1000, 2),
            price=ExactPrice(usd=round(chance.random() * 10, 4)),
        ),
    )


def measured(code: str, *words: object) -> list[float]:
    """The figures that a process of its own prints."""
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], check=True, capture_output=True, text=True)
    return [float(word) for word in done.stdout.split()]


def main(cells: int) -> int:
    """Measure every format; 1 if one is over a limit."""
    over = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder, cells)
        record(folder, cells)
        for kind, read in FLOORS.items():
            path = folder / (f"cells.{kind}" if kind != "record" else "record.jsonl")
            (floor,) = measured(FLOOR.format(read=read), path)
            if kind == "record":
                seconds, cpu, mib = measured(RECORDED, folder, cells)
            else:
                seconds, cpu, mib = measured(SCORING, folder / "declaration.toml", path, cells)
            told = f"{seconds:.2f} s ({cpu:.2f} s of processor), {mib:.0f} MiB"
            print(f"{kind}: {cells:,} cells in {told}; floor {floor:.2f} s, {seconds / floor:.0f} times")
            over += seconds > LIMIT_S or mib > LIMIT_MIB
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
