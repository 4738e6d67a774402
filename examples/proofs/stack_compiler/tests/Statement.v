(* Expressions, a stack machine, a compiler from the one to the other, and what is to be proved of it. *)

Require Import List.
Import ListNotations.

Inductive expression : Set :=
| Const (n : nat)
| Plus (a b : expression)
| Times (a b : expression)
| IfZero (c a b : expression).

Fixpoint value (e : expression) : nat :=
  match e with
  | Const n => n
  | Plus a b => value a + value b
  | Times a b => value a * value b
  | IfZero c a b => match value c with 0 => value a | S _ => value b end
  end.

Inductive instruction : Set := Push (n : nat) | Add | Mul | Choose.

Definition step (i : instruction) (stack : list nat) : option (list nat) :=
  match i, stack with
  | Push n, _ => Some (n :: stack)
  | Add, y :: x :: rest => Some (x + y :: rest)
  | Mul, y :: x :: rest => Some (x * y :: rest)
  | Choose, b :: a :: c :: rest => Some (match c with 0 => a | S _ => b end :: rest)
  | _, _ => None
  end.

Fixpoint run (program : list instruction) (stack : list nat) : option (list nat) :=
  match program with
  | [] => Some stack
  | i :: rest => match step i stack with Some next => run rest next | None => None end
  end.

Fixpoint compile (e : expression) : list instruction :=
  match e with
  | Const n => [Push n]
  | Plus a b => compile a ++ compile b ++ [Add]
  | Times a b => compile a ++ compile b ++ [Mul]
  | IfZero c a b => compile c ++ compile a ++ compile b ++ [Choose]
  end.

Definition compiler_is_right : Prop := forall e : expression, run (compile e) [] = Some [value e].
