"""
How the time of code extraction grows with the length of a reply: four times the length against four times the time.

    python bench/extraction.py

Prints the worst ratio over the repeated units of the tests, and exits 1 above 12, three times what linear growth gives.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.seats.extraction import extract_code
from tests.seats.test_extraction import SHAPES, UNITS

LIMIT = 12.0
FLOOR_S = 0.01


def seconds(shape: str, unit: str, size: int) -> float:
    """CPU seconds of one extraction, the best of three."""
    reply = SHAPES[shape](unit, size // len(unit))
    times = []
    for _ in range(3):
        start = time.process_time()
        extract_code(reply, "f")
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Measure every unit in every shape."""
    worst = (0.0, "none")
    for shape in SHAPES:
        for unit in UNITS:
            ratio = seconds(shape, unit, 120_000) / max(seconds(shape, unit, 30_000), FLOOR_S)
            worst = max(worst, (ratio, f"{unit!r} as {shape}"))
    print(f"worst growth for four times the length: {worst[0]:.1f} times ({worst[1]}); limit {LIMIT:.0f}")
    sys.exit(0 if worst[0] <= LIMIT else 1)


if __name__ == "__main__":
    main()
