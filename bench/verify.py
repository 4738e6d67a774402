"""
How long the verification of a long record takes, and how much memory: a million lines in a minute, with flat memory.

    python bench/verify.py [--lines 1000000] [--limit-s 60]

A registration of a thousand cells and a record of tries are written into a temporary folder, each line with a digest
that fits. Then, each in a process of its own: the bytes are read and hashed plainly, `verify` checks them, and `audit`
holds them to its invariants; verify does so for a tenth of the lines too. Prints seconds by the clock and of the
processor, peak resident memory, and what verifying takes beside plain hashing. Ends with 1 over the limit by
the clock, or when ten times the lines take over 1.25 times the memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cells.audit.auditing import audit_run
from cells.verifying import verify_run
from harness.blobs import BlobStore
from harness.canonical import canonical_bytes, digest_bytes
from harness.experiment import parse_experiment
from harness.outcome import CellOutcome, Spend, outcome_to_json
from harness.registration import Registration, save_registration
from harness.tree import Tree
from harness.values import CellKey, Declared, Evidence, Usage, Verdict, VoidPrice

CELLS = 1000
FLAT = 1.25
AT = "2026-12-01T00:00:00.000Z"
EXPERIMENT = """
name = "long"
question = "How long does a million lines take?"
arms = ["plain", "placebo"]
replicates = 25
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
[analysis]
"""


def cells() -> list[CellKey]:
    """A thousand: twenty tasks, two arms, twenty-five replicates."""
    return [
        CellKey(benchmark="long", task=f"Long/{task}", arm=arm, extras="none", model="m", replicate=replicate)
        for replicate in range(1, 26)
        for task in range(CELLS // 50)
        for arm in ("plain", "placebo")
    ]


def outcome(cell: CellKey, exhibit: str) -> dict[str, Any]:
    """A try of a cell, with as much in it as a real one has: what its gate found of forty probes, before and after."""
    gate = {"findings": {f"probe-number-{number}": "DENIED" for number in range(40)}, "ms": {"all": 12.3}}
    evidence = Evidence(code=exhibit, suite="s" * 64, execution="e" * 32)
    return outcome_to_json(
        CellOutcome(
            cell=cell,
            attempt=1,
            end=Declared(note="done"),
            spend=Spend(
                usage=Usage.zero(),
                charged_tokens=0,
                estimated=False,
                calls=0,
                output_bytes=0,
                wall_s=1.5,
                price=VoidPrice(reason="no rate card for this model"),
            ),
            verdict=Verdict(reading="PASS", standing="accepted", evidence=evidence),
            exhibit=exhibit,
            room={"gate": {"before": gate, "after": gate}},
        )
    )


def bodies(store: BlobStore) -> Iterator[tuple[str, bytes]]:
    """The canonical bodies of a start and an end of each cell, over and over."""
    exhibits = [store.put_tree(Tree.of({"solution.py": f"x = {number}\n"})) for number in range(50)]
    made = [
        pair
        for number, cell in enumerate(cells())
        for pair in (
            ("cell.started", canonical_bytes({"cell": asdict(cell), "attempt": 1})),
            ("cell.ended", canonical_bytes(outcome(cell, exhibits[number % len(exhibits)]))),
        )
    ]
    while True:
        yield from made


def write_run(folder: Path, lines: int) -> int:
    """A run whose record has so many lines; how many bytes they are."""
    registration = Registration(
        name="long",
        question="How long does a million lines take?",
        experiment=parse_experiment(EXPERIMENT).model_dump(mode="json"),
        pins={"model m": {"served": "script", "digest": None}},
        cells=tuple(cells()),
        refused=(),
        outlook={},
        frozen_at=AT,
        source=None,
    )
    save_registration(folder, registration)
    rows, prev = bodies(BlobStore(folder / "blobs")), registration.digest
    with (folder / "record.jsonl").open("wb", buffering=1 << 20) as file:
        for seq in range(lines):
            kind, body = next(rows) if seq else ("run.opened", canonical_bytes({"registration": registration.id}))
            # The canonical line, put together: its keys in order, its body canonical already.
            core = b'{"at":"%s","body":%s,"kind":"%s","prev":"%s","seq":%d}' % (
                *(AT.encode(), body, kind.encode(), prev.encode()),
                seq,
            )
            prev = digest_bytes(core)
            file.write(core[:-1] + b',"sha256":"%s"}\n' % prev.encode())
    (folder / "head").write_text(f"{lines - 1}:{prev}\n", "ascii")
    return (folder / "record.jsonl").stat().st_size


def hashed(folder: Path) -> str:
    """The bytes of the record, hashed line by line and no more."""
    with (folder / "record.jsonl").open("rb") as file:
        for line in file:
            hashlib.sha256(line).hexdigest()
    return "ok"


def verified(folder: Path) -> str:
    """What `proctor verify` does."""
    found = verify_run(folder)
    assert found.chain.complete is not False, found.problems
    return "ok" if found.ok else f"problems: {found.problems[:3]}"


def audited(folder: Path) -> str:
    """What `proctor audit` does; a made-up record is not clean, and is read to its end all the same."""
    found = audit_run(folder)
    assert not found.unchecked, found.findings
    return found.verdict


WAYS: dict[str, Callable[[Path], str]] = {"hash": hashed, "verify": verified, "audit": audited}


def measured(way: str, folder: Path) -> dict[str, Any]:
    """Seconds and peak memory of one way, in a process of its own."""
    told = subprocess.run(
        [sys.executable, __file__, "--way", way, "--folder", str(folder)], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def one_way(way: str, folder: Path) -> None:
    """Do it here, and print what it took."""
    start, used = time.perf_counter(), time.process_time()
    said = WAYS[way](folder)
    seconds, cpu_s = time.perf_counter() - start, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"said": said, "seconds": seconds, "cpu_s": cpu_s, "peak_mb": peak}))


def compare(lines: int, limit_s: float, *, audit: bool) -> int:
    """Write both records, measure each way, print a line each; 1 over a limit."""
    with tempfile.TemporaryDirectory() as scratch:
        long, short = Path(scratch, "long"), Path(scratch, "short")
        start = time.perf_counter()
        size = write_run(long, lines)
        write_run(short, lines // 10)
        print(f"{lines} lines, {size / 1e6:.0f} MB, written in {time.perf_counter() - start:.0f} s")
        plain, whole, tenth = measured("hash", long), measured("verify", long), measured("verify", short)
        rows = [("hash", plain), ("verify", whole), ("verify, a tenth", tenth)]
        if audit:
            rows.append(("audit", measured("audit", long)))
    for name, row in rows:
        clock, cpu, peak = row["seconds"], row["cpu_s"], row["peak_mb"]
        print(f"{name:16} {clock:7.1f} s, of the processor {cpu:6.1f} s, peak {peak:5.0f} MB: {row['said']}")
    growth, ratio = whole["peak_mb"] / tenth["peak_mb"], whole["cpu_s"] / plain["cpu_s"]
    print(f"verify takes {ratio:.1f} times the processor's time of hashing the same bytes")
    print(f"ten times the lines take {growth:.2f} times the memory")
    return int(whole["seconds"] > limit_s or growth > FLAT or whole["said"] != "ok")


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--limit-s", type=float, default=60.0)
    parser.add_argument("--no-audit", action="store_true")
    parser.add_argument("--way", choices=sorted(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.way:
        one_way(args.way, args.folder)
        return 0
    return compare(args.lines, args.limit_s, audit=not args.no_audit)


if __name__ == "__main__":
    sys.exit(main())
