"""
A published campaign's cells, read four ways, come out as it published them.

SaltBench v3, matrix 1: arXiv:2609.11076, public repository jyh/saltbench, data CC BY 4.0. The figures below are its
prices; the tests marked `only_with` read its own table of cells.
"""

import os
from pathlib import Path

import pytest

from cells.declared.declaration import load_declaration
from cells.declared.making import cells_of
from cells.declared.opening import read_declared
from cells.declared.view import parts_of
from cells.score_view import plain
from tests.cells.test_readings_cost import PRICES
from tests.pages import ROOT

EXAMPLE = ROOT / "examples" / "saltbench" / "declaration.toml"

STATEMENT = {
    ("Crc32", "plain", "statement"): "6.36 8.64< 6.66",
    ("Crc32", "salt-diet", "statement"): "8.56< 5.65 6.25",
    ("LRU", "plain", "statement"): "9.36 8.92 15.12",
    ("LRU", "salt-diet", "statement"): "18.65< 14.24 13.65",
    ("FreeList", "plain", "statement"): "17.72< 18.26 18.42",
    ("FreeList", "salt-diet", "statement"): "29.0 21.18 27.84",
}
"""The prices of the statement arm, in the same marks as `PRICES`."""

HEADER = "cell,root,stage,account,task,arm,card_extras,end_kind,suite_result,price_usd,T,meter_lower_bound,wall_s"
ADDED = {"13.01<", "9.87", "20.16"}
"""The prices of the cells that were added to reach three a condition."""


def rows():
    """Each published price as a row of a table of ours, under a name of ours, with the set that it is of."""
    for (task, arm, extras), prices in (PRICES | STATEMENT).items():
        for number, text in enumerate(prices.split(), start=1):
            kind = "smoke" if text.endswith("A") else "added" if text in ADDED and arm == "plain" else "matrix"
            kind = "statement" if extras == "statement" else kind
            end = "FAILED-BOOTS" if text == "None" else "CAP-COST" if "cap" in text else "LANDED"
            usd = "" if text == "None" else text.rstrip("<AFcap")
            bound = "" if text == "None" else str("<" in text)
            suite = "FAIL" if "F" in text or text == "None" else "PASS"
            name = f"{task}-{arm}-{extras}-{number}"
            in_a = kind != "statement" or task == "LZW"
            yield f"{name},{kind},,,{task},{arm},{extras},{end},{suite},{usd},,{bound},", (kind, name, in_a)


@pytest.fixture
def ours(tmp_path):
    """The example's analysis over a table of ours, with the readings named by our own names."""
    made = list(rows())
    (tmp_path / "cells.csv").write_text("\n".join([HEADER, *(text for text, _ in made)]) + "\n", "utf-8")
    of = {kind: [f"{kind}/{name}" for _, (at, name, _a) in made if at == kind] for kind in ("matrix", "added", "smoke")}
    lzw = [f"statement/{name}" for _, (kind, name, in_a) in made if kind == "statement" and in_a]
    gold = [f"statement/{name}" for _, (kind, name, _a) in made if kind == "statement"]
    declaration, _digest = load_declaration(EXAMPLE)
    cells = {"A": of["smoke"], "B": of["added"], "neither": [*of["matrix"], *lzw], "gold": gold}
    text = EXAMPLE.read_text("utf-8").partition("[[readings]]")[0]
    for reading in declaration.readings:
        includes = f"includes = {reading.includes}\n" if reading.includes else ""
        text += f"[[readings]]\nname = {reading.name!r}\n{includes}comparisons = {reading.comparisons}\n"
        text += f"cells = {cells[reading.name]}\n"
    (tmp_path / "declaration.toml").write_text(text, "utf-8")
    return read_declared(tmp_path / "declaration.toml", files=[tmp_path / "cells.csv"])


PREMIUMS = {
    "A": {"Crc32": 1.1610, "FreeList": 2.8070, "LRU": 1.2826, "LZW": 1.3749, "Paxos": 2.4306},
    "B": {"Crc32": 1.1610, "FreeList": 2.8879, "LRU": 1.1521, "LZW": 1.3749, "Paxos": 2.2437},
    "neither": {"Crc32": 1.1610, "FreeList": None, "LRU": None, "LZW": 1.3749, "Paxos": None},
    "gold": {"Crc32": 0.9384, "FreeList": 1.5246, "LRU": 1.5214, "LZW": 1.8105},
}


def holds(found):
    """Everything that was published of the four readings holds of `found`."""
    readings = {reading.name: reading for reading in found.readings}
    assert found.final
    assert {name: (each.declared, each.priced, len(each.without_price)) for name, each in readings.items()} == {
        "A": (43, 39, 4),
        "B": (40, 36, 4),
        "neither": (37, 33, 4),
        "gold": (24, 24, 0),
    }
    ratios = {name: each.board.ratios[0] for name, each in readings.items()}
    for name, premiums in PREMIUMS.items():
        got = {task.unit.rpartition("|")[2]: task.ratio and round(task.ratio, 4) for task in ratios[name].tasks}
        assert got == premiums
    assert {name: (ratio.wins, ratio.losses, ratio.p_value) for name, ratio in ratios.items()} == {
        "A": (5, 0, 0.03125),
        "B": (5, 0, 0.03125),
        "neither": (2, 0, 0.25),
        "gold": (3, 1, 0.3125),
    }
    assert ratios["gold"].best_attainable_p == 0.0625
    clear = {
        name: {task.unit.rpartition("|")[2] for task in ratio.tasks if task.resolved} for name, ratio in ratios.items()
    }
    assert clear == {"A": {"FreeList", "Paxos"}, "B": {"FreeList", "Paxos"}, "neither": set(), "gold": set()}
    classes = {name: count for name, count in readings["A"].classes.items() if count}
    assert classes == {"PASS": 35, "FAIL": 1, "HALT": 3, "FAILED_BOOT": 4}
    assert (readings["A"].classes["NO_BUILD"], readings["A"].classes["INTERFACE_MISS"]) == (0, 0)
    assert "Every halted cell is a treatment cell: 3 of 3 are salt-diet." in readings["A"].board.sentences
    assert found.accords[0].sentence == (
        "A and B agree in sign and not in magnitude on premium: LRU 1.2826 against 1.1521, Paxos 2.4306 against 2.2437, "
        "FreeList 2.8070 against 2.8879; they agree in significance; they agree in which tasks clear the floor."
    )
    lines = plain(parts_of(found)).splitlines()
    assert lines[1].startswith("- A and B agree in sign and not in magnitude")
    assert any(
        "2 of 2 tasks above 1, p 0.25, no verdict: best attainable p 0.25 at level 0.05" in line for line in lines
    )
    assert any(
        "p 0.3125, no verdict: best attainable p 0.0625 at level 0.05; clear the floor: none" in line for line in lines
    )


def test_the_four_readings_of_the_published_prices(ours):
    """Over a table that holds the published prices under names of ours."""
    holds(ours)


def campaign():
    """The campaign's own table of cells."""
    return Path(os.environ["PROCTOR_CAMPAIGN_FILES"]) / "cells_declared_set.csv"


@pytest.mark.only_with("campaign-files")
def test_the_four_readings_of_the_campaigns_own_table():
    """Over its own 61 rows, by its own names."""
    found = read_declared(EXAMPLE, files=[campaign()])
    holds(found)
    a, b, *_ = found.readings
    assert set(a.without_price) == {
        f"cells-matrix1/{name}" for name in ("59c93bbe", "7fa6c322", "823de693", "879326db")
    }
    assert a.without_price == b.without_price
    assert found.elsewhere == ()


@pytest.mark.only_with("campaign-files")
def test_cents_are_a_registered_rounding_and_raw_prices_are_others(tmp_path):
    """Crc32's premium is 1.1610 by the meter's cents and 1.1603 raw; the raw column rounded to cents is the meter's."""
    text = EXAMPLE.read_text("utf-8")
    ratios = {}
    for rounding in ("raw", "cents"):
        changed = text.replace('usd = "price_usd"', 'usd = "raw_cost_usd"').replace('"raw"', f'"{rounding}"', 1)
        (tmp_path / "d.toml").write_text(changed, "utf-8")
        b = read_declared(tmp_path / "d.toml", files=[campaign()]).readings[1]
        ratios[rounding] = {task.unit.rpartition("|")[2]: round(task.ratio, 4) for task in b.board.ratios[0].tasks}
    assert ratios["raw"]["Crc32"] == 1.1603
    assert ratios["cents"] == PREMIUMS["B"]


@pytest.mark.only_with("campaign-files")
def test_a_changed_campaign_table_is_found(tmp_path):
    """A row removed, doubled with another price, or renamed is named, and refuses the readings that it is in."""
    lines = campaign().read_text("utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("011fe22f"))
    changes = {
        "missing": [*lines[:at], *lines[at + 1 :]],
        "conflicting": [*lines, lines[at].replace("11.19", "11.18")],
        "undeclared": [*lines, lines[at].replace("011fe22f", "011fe22e")],
    }
    for what, changed in changes.items():
        (tmp_path / f"{what}.csv").write_text("\n".join(changed), "utf-8")
        found = read_declared(EXAMPLE, files=[tmp_path / f"{what}.csv"])
        assert not found.final
        named = "cells-matrix1/011fe22e" if what == "undeclared" else "cells-matrix1/011fe22f"
        assert getattr(found.readings[0], what) == (named,)
        assert found.readings[0].board.ratios[0].p_value is None


@pytest.mark.only_with("campaign-files")
def test_the_sessions_end_decides_before_the_suite():
    """A raw tally of the suite's word would read five failures; one cell failed."""
    declaration, _digest = load_declaration(EXAMPLE)
    cells = list(cells_of(campaign(), declaration.sources[0]))
    assert len(cells) == 61
    assert sum(cell.outcome_class == "FAIL" for cell in cells) == 1
    assert sum(cell.outcome_class == "FAILED_BOOT" for cell in cells) == 4
