"""
A first declaration for a file of cells: every cell by name, every word of its columns, for a person to complete.

What a column holds is taken from its name alone, and what a word means is known for a few words that say it. The rest
is left as a question that stops the declaration from being used as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cells.declared.declaration import ASKED, open_questions
from cells.declared.opening import file_digest
from cells.declared.rows import Name, name_text
from cells.declared.source import CONDITION, Columns
from cells.declared.tables import header_of, rows_of
from cells.declared.words import is_end_word
from harness.errors import DeclarationError

__all__ = ["draft"]

USUAL: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "cell", "cell_id", "trial", "trial_name", "sample_id"),
    "run": ("run", "run_id", "root", "job", "job_id", "campaign"),
    "end": ("end", "end_kind", "class", "outcome", "status"),
    "benchmark": ("benchmark", "dataset", "suite"),
    "task": ("task", "task_id", "task_name", "problem"),
    "arm": ("arm", "treatment", "variant", "agent"),
    "extras": ("extras", "card_extras"),
    "model": ("model", "model_name"),
    "replicate": ("replicate", "epoch", "seed_number"),
    "attempt": ("attempt", "try"),
    "reading": ("reading", "suite_result", "verdict", "result"),
    "usd": ("usd", "price_usd", "cost_usd", "price", "cost"),
    "lower_bound": ("lower_bound", "meter_lower_bound"),
    "tokens": ("tokens", "total_tokens", "T"),
    "calls": ("calls", "n_calls"),
    "wall_s": ("wall_s", "seconds", "duration_s"),
}
"""The names under which tables usually have a field."""

ENDS = dict.fromkeys(("DECLARED", "PASS", "FAIL"), "DECLARED") | {"FAILED_BOOT": "FAILED_BOOT"}
VERDICTS = {"PASS": "accepted", "FAIL": "rejected", "UNSCORABLE": "unscorable"}


def draft(path: Path, out: Path) -> tuple[int, list[str]]:
    """
    Write a declaration of the file's cells to `out`, and their names to a text file beside it.

    Returns how many cells there are, and what a person has to say before it can be used. Raises `DeclarationError` for
    a file that can't be read or has no column for the id, and for an `out` that is there already or can't be written.
    """
    names_file = out.with_suffix(".cells.txt")
    for target in (out, names_file):
        if target.exists():
            raise DeclarationError(f"{target} is there already: expected a new name, so that nothing is overwritten")
    columns = _columns(header_of(path), path)
    names, words = _words(path, columns)
    names = list(dict.fromkeys(names))  # a cell that was tried again has several rows, and one name
    lines = [f"question = {_toml(ASKED)}", "", *_source(path, _beside(path, out), columns, words)]
    lines += ["", "[[readings]]", 'name = "all"', f"cells_file = {_toml(names_file.name)}", ""]
    text = "\n".join(lines)
    _write({names_file: "".join(f"{name_text(name)}\n" for name in names), out: text})
    return len(names), open_questions(text)


def _write(texts: Mapping[Path, str]) -> None:
    """Write all of the new files, or none of them."""
    for path, text in texts.items():
        try:
            path.write_text(text, "utf-8")
        except OSError as error:
            for written in texts:
                with suppress(OSError):
                    written.unlink()
            raise DeclarationError(f"{path} can't be written: {error.strerror}: name another folder") from None


def _columns(header: Sequence[str], path: Path) -> dict[str, str]:
    known = {name.lower(): name for name in header}
    found = {
        field: known[usual.lower()]
        for field, candidates in USUAL.items()
        for usual in [next((name for name in candidates if name.lower() in known), "")]
        if usual
    }
    if "id" not in found:
        raise DeclarationError(
            f"{path}: no column is called {', '.join(USUAL['id'])}: expected one that names the cells, write the "
            f"declaration by hand. Columns: {', '.join(header)}"
        )
    if "lower_bound" in found and "usd" not in found:
        del found["lower_bound"]
    return found


def _words(path: Path, columns: Mapping[str, str]) -> tuple[list[Name], dict[str, list[str]]]:
    """The names of the cells, in order, and the words of their ends and verdicts."""
    wanted = [columns.get(field, columns["id"]) for field in ("id", "run", "end", "reading")]
    names: list[Name] = []
    words: dict[str, set[str]] = {"ends": set(), "verdicts": set()}
    for _place, (identity, run, end, verdict) in rows_of(path, wanted)[1]:
        names.append((str(run) if "run" in columns else path.stem, str(identity)))
        if "end" in columns:
            words["ends"].add(str(end))
        if "reading" in columns and verdict not in {None, ""}:
            words["verdicts"].add(str(verdict))
    return names, {table: sorted(found) for table, found in words.items()}


def _source(path: Path, named: str, columns: Mapping[str, str], words: Mapping[str, Sequence[str]]) -> list[str]:
    """The lines of the table of the file, `named` as the declaration calls it."""
    lines = ["[[sources]]", f"files = [{_toml(named)}]", f"sha256 = [{_toml(file_digest(path))}]"]
    lines += ["", "[sources.columns]"]
    lines += [f"{field} = {_toml(columns[field])}" for field in Columns.model_fields if field in columns]
    lines += [] if "end" in columns else [f"end = {_toml(ASKED)}"]
    lines += ["", "[sources.constants]"]
    said = {"run": path.stem}
    unsaid = [field for field in CONDITION if field not in columns]
    lines += [f"{field} = {_toml(said.get(field, ASKED))}" for field in unsaid]
    for table, known in (("ends", ENDS), ("verdicts", VERDICTS)):
        lines += ["", f"[sources.{table}]"]
        lines += [f"{_toml(word)} = {_toml(_meant(table, word, known))}" for word in words[table]]
    return lines


def _meant(table: str, word: str, known: Mapping[str, str]) -> str:
    """What a word means by itself: an end that is told in words of ours, as `proctor import` does, means itself."""
    return known.get(word) or (word if table == "ends" and is_end_word(word) else ASKED)


def _beside(path: Path, out: Path) -> str:
    """The file as the declaration names it: relative to it where it is below its folder."""
    whole, folder = path.resolve(), out.resolve().parent
    return str(whole.relative_to(folder) if whole.is_relative_to(folder) else whole)


def _toml(text: str) -> str:
    """A TOML string; JSON's escapes are TOML's too, but for the one character that JSON may leave as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
