"""
The judge's own two programs in Lean 4. Both read compiled files as data and import Lean alone: no macro, initialiser or
plugin of the exhibit is in force where they run. Each says a nonce in every line, and ends with one that says so.

`used` imports without extensions, and says so: in a program that `lean --run` runs, initialisers are enabled, and an
import with extensions would run the exhibit's. A Lean that has no such import does not compile it, and decides nothing.

`form` holds a compiled file to what replaying it takes for granted. A compiled file is two lists, names and
declarations. `leanchecker` keeps them by name in a map: of two declarations of one name it checks the last, while who
imports the file gets the first. Nor did it look whether a declaration bears the name it is filed under (issue 15100 of
leanprover/lean4), or at what stands in one that calls itself a part of `Quot` (issue 15101). A file that `lean` made
has none of these.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["form", "used"]

_HEAD = r"""import Lean
open Lean

def plain (name : Name) : String :=
  (toString name).map fun c => if c.isAlphanum || c == '.' || c == '_' || c == '\'' then c else '?'
"""

_FORM = r"""
def faults (data : ModuleData) : Array String := Id.run do
  let mut seen : NameSet := {}
  let mut found : Array String := #[]
  if data.constNames.size != data.constants.size then
    found := found.push s!"{data.constNames.size} names for {data.constants.size} declarations"
  for name in data.constNames, info in data.constants do
    if info.name != name then
      found := found.push s!"{plain info.name} is filed under {plain name}"
    if seen.contains name then
      found := found.push s!"{plain name} is declared twice"
    seen := seen.insert name
    match info with
    | .quotInfo _ => found := found.push s!"{plain name} calls itself a part of Quot"
    | _ => pure ()
  return found

def main : IO Unit := do
  IO.println "NONCE reading"
  (← IO.getStdout).flush
  let (data, _) ← readModuleData "FILE"
  for fault in (faults data).toList.take 5 do
    IO.println s!"NONCE fault {fault}"
  IO.println "NONCE end"
"""

_USED = r"""
def uses (info : ConstantInfo) : Array Name :=
  let inside := match info with
    | .defnInfo v => v.value.getUsedConstants
    | .thmInfo v => v.value.getUsedConstants
    | .opaqueInfo v => v.value.getUsedConstants
    | .inductInfo v => v.ctors.toArray
    | _ => #[]
  info.type.getUsedConstants ++ inside

partial def axiomsOf (env : Environment) (todo : List Name) (seen : NameSet) (found : List Name) : List Name :=
  match todo with
  | [] => found
  | name :: rest =>
    if seen.contains name then axiomsOf env rest seen found
    else match env.find? name with
      | none => axiomsOf env rest (seen.insert name) (name :: found)
      | some info =>
        let found := match info with
          | .axiomInfo _ => name :: found
          | _ => found
        axiomsOf env ((uses info).toList ++ rest) (seen.insert name) found

def main : IO Unit := do
  initSearchPath (← findSysroot)
  let env ← importModules #[{ module := `CHECK }] {} (loadExts := false)
  for goal in [GOALS] do
    let found := axiomsOf env [goal] {} []
    IO.println s!"NONCE {goal} {found.length} {String.intercalate " " (found.map plain)}"
  IO.println "NONCE end"
"""


def form(file: str, nonce: str) -> bytes:
    """A program that reads the compiled file at `file`: a line for each of its first faults."""
    return (_HEAD + _FORM.replace("FILE", file).replace("NONCE", nonce)).encode()


def used(check: str, goals: Sequence[str], nonce: str) -> bytes:
    """A program that imports the module `check`: for each of the `goals`, how many axioms it rests on, and which."""
    text = _USED.replace("CHECK", check).replace("NONCE", nonce)
    return (_HEAD + text.replace("GOALS", ", ".join(f"`{goal}" for goal in goals))).encode()
