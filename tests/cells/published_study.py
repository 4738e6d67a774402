"""
Pairs with the discordant counts that a study published, and the figures that it printed of them.

Source: arXiv:2606.31511v1, tables 6 to 10 and 12, and its power statement. The unlocks of each arm by cell are table
8's; which units they fall on was not published, and is made up here so that every printed discordant count comes out.
"""

from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome

ARMS = {"P": "P", "B": "B", "T": "TC", "C": "CF-SF", "G": "GR-SHAPE", "I": "BI"}
"""The arms by a letter each."""

CELLS = {
    ("HE+", "qwen-1.5b", 24, 0): "PCI PCI CG BI BI B B G G G T",
    ("MBPP+", "qwen-1.5b", 47, 0): "PCI CB CB CG C C BI G T T",
    ("HE+", "qwen-0.5b-inst", 40, 0): "PCI PB CB CB CG C C C B G T T T",
    ("MBPP+", "qwen-0.5b-inst", 60, 47): "P C C BI BI BT B B T I I I I I I I I I I I",
    ("HE+", "deepseek-1.3b", 59, 0): "C C BTI BTI B B G G T T T T",
    ("MBPP+", "deepseek-1.3b", 60, 83): "PC P CB CB CG C C BI B B B T",
}
"""By benchmark, model, units and the number of the first task: which arms unlock a unit; those not listed, none does."""

UNLOCKS = {"P": 8, "B": 26, "TC": 15, "CF-SF": 26, "GR-SHAPE": 11}
NETS = {"C1": (2, 2, 2, 4, 4, 4), "C2": (1, 5, 5, 1, 2, 4), "C3": (-1, 4, 5, 2, 0, 5)}
"""Tables 7 and 8, in the order of the cells above."""

PRINTED = {
    "C1": (25, 7, "0.001051", "0.002102", "0.78", ("0.60", "0.91"), "3.40"),
    "C2": (21, 3, "0.0001386", "0.0004157", "0.88", ("0.68", "0.97"), "6.14"),
    "C3": (22, 7, "0.004065", "0.004065", "0.76", ("0.56", "0.90"), "3.00"),
    "D1": (18, 15, "0.3642", "0.3642", "0.55", ("0.36", "0.72"), "1.19"),
    "D2": (19, 4, "0.0013", "0.002599", "0.83", ("0.61", "0.95"), "4.33"),
}
"""Tables 6 and 10: b01, b10, one-sided exact p, Holm p, share, its 95 % interval, smoothed odds ratio."""

DESCRIBED = {
    "CF-SF - B": (20, 20, "0.5627"),
    "TC - B": (12, 23, "0.9795"),
    "GR-SHAPE - P": (11, 8, "0.3238"),
}
"""Table 9."""

RISKS = {
    "C1": (6.21, 2.48, 10.00),
    "C2": (6.21, 3.06, 9.57),
    "C3": (5.17, 1.68, 8.81),
    "CF-SF - B": (0.0, -4.40, 4.39),
}
"""Table 12: the paired risk difference in percentage points, and its cluster bootstrap's ends."""

BOOTSTRAP = {"cluster": "task", "strata": ["benchmark"], "replicates": 50_000, "seed": 1}

ANALYSIS = {
    "family": "primary",
    "contrasts": [
        {"name": "C1", "treatment": "B", "control": "P", "power": {"pairs": 38, "share": 0.737}},
        {"name": "C2", "treatment": "CF-SF", "control": "P", "power": {"pairs": 36, "share": 0.75}},
        {"name": "C3", "treatment": "CF-SF", "control": "GR-SHAPE"},
        {"name": "D1", "treatment": "B", "control": "BI", "family": "sixth arm"},
        {"name": "D2", "treatment": "BI", "control": "P", "family": "sixth arm"},
        *(
            {"name": name, "treatment": name.split(" - ")[0], "control": name.split(" - ")[1], "family": "descriptive"}
            for name in DESCRIBED
        ),
    ],
    "guards": [
        {"name": "rescue", "kind": "material-rescue", "placebo": "GR-SHAPE - P", "treatment": "C2", "share": 0.5},
        {"name": "harm C1", "kind": "harm-gate", "contrast": "C1", "most": 0.02},
        {"name": "harm C2", "kind": "harm-gate", "contrast": "C2", "most": 0.02},
        {"name": "cells C3", "kind": "stratum-gate", "contrast": "C3", "worst_net": -2, "alpha": 0.05},
    ],
}


def study():
    """The declared cells and their outcomes, and the analysis as it was registered: strata and clusters on each."""
    declared, outcomes = [], []
    for (benchmark, model, units, first), words in CELLS.items():
        unlocks = words.split()
        for at in range(units):
            letters = unlocks[at] if at < len(unlocks) else ""
            for letter, arm in ARMS.items():
                declared.append(key(f"t{first + at}", arm, benchmark=benchmark, model=model))
                outcomes.append(outcome(declared[-1], "PASS" if letter in letters else "FAIL"))
    contrasts = [
        item | {"strata": ["benchmark", "model"]} | ({"bootstrap": BOOTSTRAP} if item["name"] in RISKS else {})
        for item in ANALYSIS["contrasts"]
    ]
    return declared, outcomes, Analysis.model_validate(ANALYSIS | {"contrasts": contrasts})
