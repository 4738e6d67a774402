"""
Candidates for the task `verified/search` that try to be believed without a proof, or to keep another contract.

Each is what is tried, the text, the reading that it must come to, and what it would be without the screen.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["HARD", "HOSTILE", "RIGHT"]

RIGHT = (Path(__file__).parents[3] / "examples" / "verified" / "search" / "solution" / "solution.dfy").read_text(
    "utf-8"
)
HEAD = """
  method Search(s: seq<int>, key: int) returns (at: int)
    requires Sorted(s)
    ensures at == -1 ==> key !in s
    ensures at != -1 ==> 0 <= at < |s| && s[at] == key
"""


def _module(body: str, before: str = "", more: str = "") -> str:
    """A module with the wanted promise, `body` in the place of the work, and `more` beside it."""
    return f'include "spec.dfy"\n{before}\nmodule Solution {{\n  import opened Spec\n{HEAD}  {{ {body} }}\n{more}\n}}\n'


_FALSE = "False(); at := 0;"
_DEEP = "(" * 20_000 + "0" + ")" * 20_000

HOSTILE: list[tuple[str, str, str, str | None]] = [
    ("assume", _module("at := -1; assume false;"), "SCREENED", "PASS"),
    ("assume in a hint", _module("calc { 1; == { assume false; } 2; } at := -1;"), "SCREENED", "PASS"),
    ("assume in a choice", _module("var x: int :| assume x != x; at := -1;"), "SCREENED", "PASS"),
    ("a lemma without a body", _module(_FALSE, more="lemma False() ensures false"), "SCREENED", "PASS"),
    ("a forall without a body", _module("forall x: int ensures x != x; at := -1;"), "SCREENED", "PASS"),
    ("a loop without a body", _module("at := 0; while at != -1 invariant true decreases at;"), "SCREENED", "PASS"),
    ("an axiom", _module(_FALSE, more="lemma {:axiom} False() ensures false"), "SCREENED", "PASS"),
    ("an axiom, spelt apart", _module(_FALSE, more="lemma { /* */ :axiom} False() ensures false"), "SCREENED", "PASS"),
    ("no proof asked", _module(_FALSE, more="lemma {:verify false} False() ensures false {}"), "SCREENED", "PASS"),
    ("a foreign lemma", _module(_FALSE, more='lemma {:extern "f"} False() ensures false'), "SCREENED", "PASS"),
    (
        "hidden from the compiler",
        _module(
            "Hidden.False(); at := 0;", before="module {:compile false} Hidden { lemma False() ensures false }"
        ).replace("import opened Spec", "import opened Spec\n  import Hidden"),
        "SCREENED",
        "PASS",
    ),
    (
        "an abstract module refined",
        _module(
            "Real.False(); at := 0;",
            before="abstract module Idea { lemma False() ensures false }\nmodule Real refines Idea { }",
        ).replace("import opened Spec", "import opened Spec\n  import Real"),
        "SCREENED",
        "PASS",
    ),
    (
        "a static lemma of a trait",
        _module("T.False(); at := 0;", more="trait T { static lemma False() ensures false }"),
        "SCREENED",
        "PASS",
    ),
    (
        "a trait that nobody implements",
        _module("ghost var t: T; t.False(); at := 0;", more="trait T { lemma False() ensures false }"),
        "SCREENED",
        "PASS",
    ),
    (
        "code that the preprocessor uncovers",
        _module(_FALSE, more="lemma False() ensures false {\n#if NO\n/*\n#endif\nassume false; // */\n}"),
        "NO_BUILD",
        None,
    ),
    (
        "its own Sorted",
        RIGHT.replace("import opened Spec", "predicate Sorted(s: seq<int>) { |s| == 0 }"),
        "SPEC_ALTERED",
        None,
    ),
    ("its own Spec", RIGHT + "module Spec { predicate Sorted(s: seq<int>) { false } }\n", "NO_BUILD", None),
    ("its own Goals", RIGHT + "module Goals { }\n", "NO_BUILD", None),
    (
        "goals of the same name, deeper",
        RIGHT.replace("import opened Spec", "import opened Spec\n  module Goals { method Search() {} }"),
        "NO_BUILD",
        None,
    ),
    ("less promised", RIGHT.replace("ensures at == -1 ==> key !in s", "ensures at >= -1"), "SPEC_ALTERED", None),
    ("more demanded", RIGHT.replace("requires Sorted(s)", "requires Sorted(s) && key in s"), "SPEC_ALTERED", None),
    ("a demand that none can meet", RIGHT.replace("requires Sorted(s)", "requires false"), "SPEC_ALTERED", None),
    ("a method that is none", RIGHT.replace("method Search", "ghost method Search"), "INTERFACE_MISS", None),
    (
        "a method that need not end",
        _module("while true { }", more="")
        .replace("returns (at: int)\n", "returns (at: int)\n    decreases *\n")
        .replace("while true {", "while true decreases * {"),
        "SCREENED",
        "INTERFACE_MISS",
    ),
    ("a loop without end", _module("at := 0; while true { }"), "VERIFICATION_FAILED", None),
    (
        "a proof that rests on itself",
        _module(_FALSE, more="lemma False() ensures false { False(); }"),
        "VERIFICATION_FAILED",
        None,
    ),
    (
        "a summary of its own",
        _module(
            "at := -1;",
            more='lemma Q() ensures true\n{ var s := @"\nDafny program verifier finished with 5 verified, 0 errors\n"; }',
        ),
        "VERIFICATION_FAILED",
        None,
    ),
    (
        "a set of what is in no set of its own",
        _module(
            _FALSE,
            more="""  datatype D = D(f: iset<D>)
  predicate Out(d: D) { d !in d.f }
  lemma False() ensures false
  { var d := D(iset x: D | x !in x.f); assert Out(d) == (d !in d.f); assert (d in d.f) == (d !in d.f); }""",
        ),
        "SCREENED",
        "PASS",
    ),
    (
        "a function that calls itself out of an object",
        _module(
            _FALSE,
            more="""  class Knot { ghost var f: Knot ~> int  constructor () { f := (k: Knot) => 1; } }
  function Step(k: Knot): int reads * { if k.f.requires(k) then 1 + k.f(k) else 0 }
  method False() ensures false
  {
    var c := new Knot();
    ghost var s: Knot ~> int := Step;
    c.f := s;
    assert s.requires(c) && c.f(c) == s(c) == Step(c) == 1 + c.f(c);
  }""",
        ),
        "SCREENED",
        "PASS",
    ),
    (
        "the same, of a type that is found out",
        _module(
            _FALSE,
            more="""  class Box<T> { ghost var v: T  constructor (t: T) { v := t; } }
  method False() ensures false
  {
    var b := new Box(() => 0);
    b.v := () reads b, b.v.reads() => if b.v.requires() then 1 + b.v() else 0;
    assert b.v.requires();
    assert b.v() == 1 + b.v();
  }""",
        ),
        "SCREENED",
        "PASS",
    ),
    (
        "a predicate of objects that denies itself",
        _module(
            _FALSE,
            more="""  class D { const v: D -> bool  constructor (t: D -> bool) ensures v == t { v := t; } }
  method False() ensures false
  {
    var l := (x: D) => !x.v(x);
    var d := new D(l);
    assert d.v == l && l(d) == !d.v(d);
    assert d.v(d) == l(d);
  }""",
        ),
        "SCREENED",
        "PASS",
    ),
    (
        "a module of the specification's name, inside of another",
        _module("at := -1;") + "module Other.Spec { lemma Bad() ensures false { } }\n",
        "NO_BUILD",
        None,
    ),
    ("a file of the machine", 'include "/etc/passwd"\n' + RIGHT, "SCREENED", "NO_BUILD"),
    ("the judge's file", 'include "goals.dfy"\n' + RIGHT, "SCREENED", "PASS"),
    ("brackets without end", _module(f"at := {_DEEP};"), "NO_BUILD", None),
]

HARD = _module(
    "False(1, 2, 3); at := 0;",
    more="""  lemma False(a: int, b: int, c: int)
    requires a > 0 && b > 0 && c > 0
    ensures a * a * a + b * b * b != c * c * c
    ensures false
  { }""",
)
"""A lemma that the solver does not decide before it is out of its units: the verifier then reports no error of it."""
