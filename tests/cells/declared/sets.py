"""A small declared set for the tests: a table of cells of our own, and its declaration, as text that tests change."""

from cells.declared.opening import read_declared

HEADER = "cell,run,task,arm,end,suite,usd,bound,tokens,note"

ROWS = """\
a1,r1,LRU,plain,LANDED,PASS,2.00,False,100,x
a2,r1,LRU,diet,LANDED,PASS,3.00,True,150,x
a3,r1,LZW,plain,LANDED,FAIL,4.00,False,100,x
a4,r1,LZW,diet,CAP,PASS,9.00,False,900,x
a5,r1,LZW,diet,BOOT,FAIL,,,,x
a1,r2,LRU,plain,LANDED,PASS,1.00,False,90,y"""

DECLARATION = """
question = "Does the diet cost more?"

[[sources]]
files = ["cells.csv"]
labels = { note = "note" }
[sources.columns]
id = "cell"
run = "run"
task = "task"
arm = "arm"
end = "end"
reading = "suite"
usd = "usd"
lower_bound = "bound"
tokens = "tokens"
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

[[analysis.ratios]]
name = "premium"
quantity = "usd"
treatment = "diet"
control = "plain"
alternative = "greater"
sd_ln = 0.3

[[readings]]
name = "all"
includes = ["first"]
cells = ["r2/a1"]

[[readings]]
name = "first"
cells = ["r1/a1", "r1/a2", "r1/a3", "r1/a4", "r1/a5"]
"""


def written(folder, rows=ROWS, declaration=DECLARATION, header=HEADER):
    """The declaration's path, with the table beside it."""
    (folder / "cells.csv").write_text(f"{header}\n{rows}\n", "utf-8")
    path = folder / "declaration.toml"
    path.write_text(declaration, "utf-8")
    return path


def read(folder, **changes):
    """The readings of the small set, with some text of it changed."""
    return read_declared(written(folder, **changes))
