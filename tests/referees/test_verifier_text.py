"""A candidate's text is read as the verifier reads it: what is a comment, a string or a word is the same to both."""

from __future__ import annotations

import pytest

from referees.verifier_screen import RULES, audited, screened
from referees.verifier_text import Unreadable, bodies, modules, read_text, tokens


def words(text: str) -> list[str]:
    """The tokens as texts."""
    return [token.text for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a /* b /* c */ d */ e", ["a", "e"]),
        ("a // b\nc", ["a", "c"]),
        ("a //* b\nc */ d", ["a", "c", "*", "/", "d"]),
        ('"/*" a "*/"', ['"/*"', "a", '"*/"']),
        ('@"a ""b" c', ['@"a ""b"', "c"]),
        ("'\"' a '\"'", ["'\"'", "a", "'\"'"]),
        ("'\\'' a", ["'\\''", "a"]),
        ("x' y'' a", ["x'", "y''", "a"]),
        ("'a'b '", ["'a'b", "'"]),
        ("a ... :| := ::", ["a", "...", ":|", ":=", "::"]),
        ("a==>b<==>c=>d -->e~>f", ["a", "==>", "b", "<==>", "c", "=>", "d", "-", "->", "e", "~>", "f"]),
        ("0abstract 1_0decreases 0xFase 1.5e", ["0", "abstract", "1_0", "decreases", "0xFa", "se", "1", ".", "5", "e"]),
        ('"open\n a', ['"', "open", "a"]),
        ("/* never closed", []),
    ],
)
def test_tokens(text: str, found: list[str]) -> None:
    """Comments nest, strings and characters hide what is in them, primes belong to names."""
    assert words(text) == found


def test_lines_are_counted_through_comments_and_strings() -> None:
    """A token's line is where it starts."""
    assert [token.line for token in tokens('a\n/*\n*/ b @"\n" c')] == [1, 3, 3, 4]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff", "not UTF-8"),
        ("module M {}".encode("utf-16"), "not UTF-8"),
        ("\ufeffmodule M {}".encode(), "holds the character"),
        (b"a\0b", "holds the character"),
        (b"  #if X\n", "line 1 starts with '#'"),
        (b"a" * (300 << 10), "bytes: at most"),
    ],
)
def test_what_is_no_plain_text_is_not_read(data: bytes, said: str) -> None:
    """Encodings, control characters and the preprocessor's lines would let two readers see two texts."""
    with pytest.raises(Unreadable, match=said):
        read_text(data)


def test_newlines_are_one_character() -> None:
    """A lone carriage return ends a comment for the verifier's reader: so it does here."""
    assert read_text(b"// a\rassume false;\r\nb") == "// a\nassume false;\nb"


def test_too_deep() -> None:
    """Brackets that would overflow the verifier's stack are refused; the same ones side by side are not."""
    with pytest.raises(Unreadable, match="brackets deep"):
        tokens("(" * 5000)
    assert len(tokens("()," * 5000)) == 15_000


@pytest.mark.parametrize(
    "text",
    [
        "var b := " + "!" * 5000 + "true;",
        "var b := " + "if true then 1 else " * 1000 + "1;",
        "var b := " + "if true then {} else " * 1000 + "{};",
        "if p { } " + "else if p { } " * 1500,
        "var b := " + "(" * 9 + "! ! ! " * 1400 + "p" + ")" * 9 + ";",
        "var b := " + ("- " * 500 + "(") * 9 + "1" + ")" * 9 + ";",
    ],
)
def test_too_long(text: str) -> None:
    """Expressions in which the verifier would lose itself; as many words in expressions of their own are read."""
    with pytest.raises(Unreadable, match="4000 words without"):
        tokens(text)


def test_long_files_of_short_expressions_are_read() -> None:
    """Statements, members, cases and the entries of a table, as many as there may be."""
    table = "const t := [" + ", ".join("-1" for _ in range(9000)) + "]"
    members = "lemma L(n: nat) requires n > 0 ensures F(n) == { } { } " * 2000
    cases = "match n { " + "case 1 => { x := 1; } case 2 => return; " * 1000 + "}"
    for text in (table, members, cases, "x := x + 1; " * 9000):
        assert len(tokens(text)) > 9000


def test_modules_and_bodies() -> None:
    """Names of modules at any depth and behind attributes; bodies, and not the sets of a contract."""
    text = "module {:a} M { module N { } lemma L(s: set<int>) ensures s != {} { var x := {1}; } method P() { } }"
    assert modules(tokens(text)) == ["M", "N"]
    assert modules(tokens("module A.B /* */ .C { } module {:a} D. { }")) == ["A", "B", "C", "D"]
    plain = text.replace("module N { } ", "")
    assert [plain[start:end] for start, end in bodies(tokens(plain))] == ["{ var x := {1}; }", "{ }"]


def refused(text: str, *more: str, attributes: tuple[str, ...] = ()) -> str | None:
    """What the screen says with all its rules and these words."""
    return screened(tokens(text), [*RULES, *more], attributes, "spec.dfy")


@pytest.mark.parametrize(
    "text",
    [
        "assume false;",
        "abstract module A {}",
        "trait T {}",
        'include "/etc/passwd"',
        "include",
        "decreases *",
        "...;",
        "lemma {:axiom} L()",
        "lemma { /* */ : axiom} L()",
        "{:",
        "lemma {:opaque} {:verify false} L()",
        "const c := 0abstract module A {}",
        "class C { const f: C -> bool }",
        "var f: int --> int;",
        "method M(f: C ~> int)",
        "f := () reads c => c.x;",
        "f := (x: int) requires x > 0 reads c, d.reads(x) => x;",
        "f := () reads match 0 case _ => {c} => c.x;",
        "f := () reads var d := c; {d} => 0;",
        "function F(): int reads c { 0 } const f := () reads c => 0",
        "datatype D = D(f: iset<D>)",
        "datatype D = D(f: imap<D, bool>)",
    ],
)
def test_each_rule_refuses(text: str) -> None:
    """What makes the verifier believe is found, however it is spelt; the same in a comment is not."""
    assert refused(text) is not None
    assert refused("/* " + text.replace("/* */", "") + " */ lemma L() ensures true { }") is None


@pytest.mark.parametrize(
    "text",
    [
        "var assumed := assume';",
        'include "spec.dfy"',
        "decreases n * 2",
        "forall x {:trigger f(x)} :: f(x)",
        "{ } : int",
        "a := new int[3](i => i);",
        "function F(): int reads this requires p ==> q { match d case A => 0 case B(n) => n }",
        "function F(): int reads this ensures match d case A => p case B(n) => q",
        "function F(): int reads this { 0 } const f := x => x",
        "function F(f: Fn): bool reads c requires G(x => x)",
        "if p { case x < 0 => y := -1; case x -y > 0 => y := 1; }",
        "var isets := imaps;",
    ],
)
def test_what_looks_alike_is_let_through(text: str) -> None:
    """Names that start with a word, the given file, products, and attributes that can do no harm."""
    assert refused(text) is None


def test_a_card_adds_words_and_attributes() -> None:
    """A word of the task's own is refused, an attribute that it allows is not."""
    assert refused("calc { }") is None
    assert "'calc'" in str(refused("calc { }", "calc"))
    assert refused("lemma {:fuel F, 2} L()") is not None
    assert refused("lemma {:fuel F, 2} L()", attributes=("fuel",)) is None


def test_the_second_look() -> None:
    """The compiler's own words count, and neither its other complaints nor a line that only looks like them."""
    assert "has no body" in str(audited("solution.dfy(4,8): Error: Method _1_S_Compile._default.L has no body"))
    assert audited("solution.dfy(4,8): Error: an assume statement cannot be compiled") is not None
    assert audited("solution.dfy(4,8): Error: a while statement without a body cannot be compiled") is not None
    assert audited("solution.dfy(4,8): Error: unresolved identifier: L") is None
    assert audited("x solution.dfy(4,8): an assume statement cannot be compiled") is None
