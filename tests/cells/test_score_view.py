"""What a person sees of a scoreboard: a golden text, tables that fit a terminal, and nothing that a name can break."""

import io

import pytest
from rich.console import Console

from cells.readings import score
from cells.score_view import plain_scoreboard, render_scoreboard
from harness.analysis import Analysis
from tests.cells.scoring_cases import key, outcome, table

ROWS = [
    ("PASS", "FAIL"),
    ("PASS", "PASS"),
    ("PASS", "HALT(tokens)"),
    ("NO_BUILD", "VOID(fence)"),
]

GOLDEN = """\
registration made-0123456789ab
record head 9:feed
status final: 8 of 8 declared cells in the record

Outcome classes by condition
task|arm  PA  FA  NB  IM  TO  ME  CR  US  HA  FB  VO  RE  MI  DO
1|A        1   0   0   0   0   0   0   0   0   0   0   0   0   0
1|B        0   1   0   0   0   0   0   0   0   0   0   0   0   0
2|A        1   0   0   0   0   0   0   0   0   0   0   0   0   0
2|B        1   0   0   0   0   0   0   0   0   0   0   0   0   0
3|A        1   0   0   0   0   0   0   0   0   0   0   0   0   0
3|B        0   0   0   0   0   0   0   0   1   0   0   0   0   0
4|A        0   0   1   0   0   0   0   0   0   0   0   0   0   0
4|B        0   0   0   0   0   0   0   0   0   0   1   0   0   0
The same in all rows: benchmark made, extras none, model m.
PA PASS, FA FAIL, NB NO_BUILD, IM INTERFACE_MISS, TO TIMEOUT, ME MEMORY, CR CRASH, US UNSCORABLE, HA HALT, FB \
FAILED_BOOT, VO VOID, RE REFUSED, MI MISSING, DO DOUBLED

Cost by condition: medians over n declared or halted cells
task|arm  n     tokens      calls     wall s                    usd  exact/bound/void
1|A       1        100          2       3.00                 0.5000             1/0/0
1|B       1        100          2       3.00                 0.5000             1/0/0
2|A       1        100          2       3.00                 0.5000             1/0/0
2|B       1        100          2       3.00  undefined (1 unknown)             0/0/1
3|A       1        100          2       3.00                 0.5000             1/0/0
3|B       1        100          2       3.00                 0.5000             1/0/0
4|A       1        100          2       3.00                 0.5000             1/0/0
4|B       0  undefined  undefined  undefined              undefined             0/0/0
The same in all rows: benchmark made, extras none, model m.
Medians over the n cells that ended by themselves or at a limit; one unknown figure makes one undefined.
exact/bound/void: how many of the n prices are which.

Outcome classes by arm
class                      A  B
planned                    4  4
buildable                  4  4
fired                      4  4
declared                   4  2
judged                     4  2
priced                     4  2
PASS                       3  1
FAIL                       0  1
NO_BUILD                   1  0
INTERFACE_MISS             0  0
TIMEOUT                    0  0
MEMORY                     0  0
CRASH                      0  0
UNSCORABLE                 0  0
HALT                       0  1
- HALT(tokens)             0  1
- HALT(usd)                0  0
- HALT(calls)              0  0
- HALT(wall)               0  0
- HALT(output)             0  0
FAILED_BOOT                0  0
VOID                       0  1
- VOID(model-server)       0  0
- VOID(request-refused)    0  0
- VOID(context-truncated)  0  0
- VOID(workspace)          0  0
- VOID(fence)              0  1
- VOID(referee)            0  0
- VOID(seat)               0  0
- VOID(mirror)             0  0
- VOID(mirror-audit)       0  0
- VOID(tokens-audit)       0  0
- VOID(no briefing)        0  0
- VOID(interrupted)        0  0
- VOID(harness)            0  0
- VOID(unknown)            0  0
REFUSED                    0  0
MISSING                    0  0
DOUBLED                    0  0

Cost by arm: medians over n declared or halted cells
arm  n  tokens  calls  wall s                    usd  exact/bound/void  usd, exact alone
A    4     100      2    3.00                 0.5000             4/0/0            0.5000
B    3     100      2    3.00  undefined (1 unknown)             2/0/1            0.5000
The same in all rows: extras none, model m.
Medians over the n cells that ended by themselves or at a limit; one unknown figure makes one undefined.
exact/bound/void: how many of the n prices are which.
usd, exact alone: over the exact prices, as if all others had been left out.
Not known, and so perhaps different between the arms (extras none, model m): load (7 of 7 cells), cells at once (7 of \
7 cells), served model (7 of 7 cells), date of the rates (7 of 7 cells), backend (7 of 7 cells).

What was paid, by arm and charge: sums over tries
arm       charge  ended as                        tries              usd  exact/bound/void  calls  wall s  tokens
A         ARM     NO_BUILD 1, PASS 3                  4           2.0000             4/0/0      8   12.00     400
A         SUNK    none                                0           0.0000             0/0/0      0    0.00       0
A         both                                        4           2.0000             4/0/0      8   12.00     400
B         ARM     FAIL 1, HALT(tokens) 1, PASS 1      3  at least 1.0000             2/0/1      6    9.00     300
B         SUNK    VOID(fence) 1                       1           0.5000             1/0/0      2    3.00     100
B         both                                        4  at least 1.5000             3/0/1      8   12.00     400
all arms  ARM                                         7  at least 3.0000             6/0/1     14   21.00     700
all arms  SUNK                                        1           0.5000             1/0/0      2    3.00     100
all arms  both                                        8  at least 3.5000             7/0/1     16   24.00     800
The same in all rows: extras none, model m.
ARM: tries that declared or halted, whatever their class.
SUNK: tries that were voided, refused or never booted: paid, and charged to no arm.
exact/bound/void: how many prices, of tries that had a call, are which.

What an outcome cost, by arm: the ARM charge over its denominator
arm  per           n              usd  calls  wall s  tokens
A    declared end  4           0.5000   2.00    3.00     100
A    attempt       4           0.5000   2.00    3.00     100
A    pass          3           0.6667   2.67    4.00   133.3
B    declared end  2  at least 0.2500   2.00    3.00     100
B    attempt       3  at least 0.3333   2.00    3.00     100
B    pass          1  at least 1.0000   6.00    9.00     300
The same in all rows: extras none, model m.
Per declared end: what those ends cost, over them. Per attempt: what all that declared or halted cost.
Per pass: what all attempts cost, over those that passed; undefined where none did. SUNK is in none.
Not known, and so perhaps different between the arms (extras none, model m): load (7 of 7 cells), cells at once (7 of \
7 cells), served model (7 of 7 cells), date of the rates (7 of 7 cells), backend (7 of 7 cells).

Pass rates by arm
arm  beside                           passed   rate  if halts fail  if halts pass
A    4 of 4 judged, 0 halted, 0 void       3  0.750          0.750          0.750
B    2 of 4 judged, 1 halted, 1 void       1  0.500          0.333          0.667
The same in all rows: extras none, model m.
The rates under other readings are bounds over SET 53eb865dcba2 (8 cells).
Every halted cell is a control cell: 1 of 1 are B.
Every void cell is a control cell: 1 of 1 are B.
Every cell without a price is a control cell: 1 of 1 are B.

R: median usd of A over B
benchmark|model|task             A                B      ratio
made|m|1              0.5000 (n 1)     0.5000 (n 1)     1.0000
made|m|2              0.5000 (n 1)  undefined (n 1)  undefined
made|m|3              0.5000 (n 1)     0.5000 (n 1)     1.0000
made|m|4              0.5000 (n 1)  undefined (n 0)  undefined
Sign test over tasks, two-sided: p undefined, qualifiers none; 0 above 1, 0 below, 2 ties, 2 undefined; best \
attainable p over all 4 tasks 0.125.
Halted cells among the figures, at what they cost when stopped: A 0, B 1.
Not known, and so perhaps different between the arms (extras none, model m): load (7 of 7 cells), cells at once (7 of \
7 cells), served model (7 of 7 cells), date of the rates (7 of 7 cells), backend (7 of 7 cells).

Contrasts, family primary: exact McNemar
contrast  claim                 qualifiers       verdict        b01  b10  exact p  Holm p
C1        A passes more than B  task 4 replaced  not supported    1    0      0.5     0.5
Holm over 1, level 0.05.

Beside the contrasts: pairs of cells
contrast  pairs  both pass  b01  b10  neither  halted  no verdict  best p
C1            4          1    1    0        0       1           1  0.0625
b01: the treatment alone passes; b10: the control alone; best p: the smallest so many pairs can give.
C1: on 2 common pairs A passes 2, B 1; smoothed odds ratio 3.00; share of the discordant pairs 1.000, exact 95 % \
interval 0.025 to 1.000.
C1: 1 of 4 pairs without a verdict.
C1: 1 of 4 pairs halted; with each halt read as a pass or as a failure, p is 0.25 at least and 0.5 at most, \
qualifiers task 4 replaced.
C1: the sign holds under every reading of halted cells (1): difference 0.333 to 0.667; the verdict holds. Taken over \
SET 53eb865dcba2.
C1: the sign depends on all cells without a number (2); the verdict holds. Taken over SET 53eb865dcba2.
C1: HALT(tokens): A 0, B 1.
C1: VOID(fence): A 0, B 1.
"""


def made_board(rows=None, *, drop=0, **names):
    """The scoreboard of a small made-up set."""
    declared, outcomes = table(rows or ROWS)
    outcomes = [outcome(item.cell, "PASS", usd=None) if item.cell == key(2, "B") else item for item in outcomes]
    analysis = Analysis(
        contrasts=[{"name": "C1", "treatment": "A", "control": "B", "qualifiers": ["task 4 replaced"]} | names],
        ratios=[{"name": "R", "quantity": "usd", "treatment": "A", "control": "B", "alternative": "two-sided"}],
    )
    return score(
        declared, outcomes[: len(outcomes) - drop], analysis, head="9:feed", registration_id="made-0123456789ab"
    )


def shown(board, *, terminal, width=100):
    """What a console of this kind is given."""
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    render_scoreboard(board, console)
    return console.file.getvalue()


def test_the_golden_scoreboard():
    """A small set with every kind of pair prints as this text, to the letter."""
    assert plain_scoreboard(made_board()) == GOLDEN


def test_a_pipe_gets_the_plain_text():
    """A console that is no terminal gets the plain text, whatever width it believes in."""
    assert shown(made_board(), terminal=False, width=40) == GOLDEN


def test_a_terminal_gets_tables_in_its_width():
    """On a terminal of 100 columns no line is longer, and every figure of the tests is there in full."""
    text = shown(made_board(), terminal=True)
    assert all(len(line) <= 100 for line in text.splitlines())
    for part in ("not supported", "0.0625", "4 of 4 judged, 0 halted, 0 void", "task 4 replaced", "- VOID(fence)"):
        assert part in text


def test_a_long_table_is_left_out_of_a_terminal_and_not_of_a_pipe():
    """Two hundred conditions are named as a count on a terminal and listed through a pipe."""
    board = made_board([("PASS", "FAIL")] * 100)
    text = shown(board, terminal=True)
    assert "Outcome classes by condition: 200 rows, in the report, the JSON, and through a pipe" in text
    assert "99|A" not in text
    assert "99|A" in shown(board, terminal=False)


def test_a_verdict_is_withheld_in_words():
    """While a cell is missing no p-value is printed, the word `withheld` is, and the cell is named."""
    text = plain_scoreboard(made_board(drop=1))
    assert "status incomplete: 7 of 8 declared cells in the record" in text
    assert "- missing cell made|4|B|none|m|1: the record has no outcome of it" in text
    (row,) = [line for line in text.splitlines() if line.startswith("C1  ")][:1]
    assert row.split()[-5:] == ["withheld", "1", "0", "withheld", "withheld"]
    assert "p is withheld at least" in text
    assert "p withheld" in text


def test_many_missing_cells_are_counted():
    """Ten missing cells are named, the others counted."""
    board = made_board([("PASS", "FAIL")] * 20, drop=13)
    text = plain_scoreboard(board)
    assert text.count("- missing cell") == 10
    assert "- and 3 more missing cells, all named in the JSON" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_a_name_can_do_nothing_to_a_terminal(terminal):
    """Markup, escape sequences and right-to-left marks in a name are printed as text."""
    board = made_board(name="[red]C1\x1b[2J\u202e", qualifiers=["[link=x]q[/link]\x07"])
    text = shown(board, terminal=terminal, width=200)
    assert "[red]C1\\x1b[2J\\u202e" in text
    assert "[link=x]q[/link]\\x07" in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


def test_what_is_out_of_the_ordinary_is_said():
    """Retries, repeated lines, replicated units, late contrasts, a narrowed comparison and lower bounds are in words."""
    declared = [key(1, arm, replicate, extras="statement") for arm in "AB" for replicate in (1, 2)]
    outcomes = [outcome(cell, "PASS", attempt=2, usd=1.0, lower_bound=cell.arm == "A") for cell in declared]
    outcomes += [outcome(declared[0], "VOID(fence)"), outcomes[1]]
    scope = {"treatment": "A", "control": "B", "extras": "statement", "model": "m"}
    analysis = Analysis(
        contrasts=[{"name": "C1", **scope}],
        ratios=[{"name": "R", "quantity": "usd", "alternative": "greater", "sd_ln": 0.3, **scope}],
    )
    late = Analysis(contrasts=[{"name": "late", "alternative": "less", **scope}]).contrasts
    text = plain_scoreboard(score(declared, outcomes, analysis, head="9:feed", registration_id="r", added=late))
    assert "outcomes recorded a second time, word for word, each counted once: 1" in text
    assert "made|1|A|statement|m|1  VOID(fence), PASS" in text
    assert "A passes more than B, extras statement, model m" in text
    assert "late      A passes less than B, extras statement, model m  none        outside the family" in text
    assert "C1: units have more than one pair; the test takes pairs for independent." in text
    assert "R: median usd of A over B, extras statement, model m" in text
    assert "at least 1.0000" in text
    assert "Lower bounds among the figures: A 2, B 0." in text
