(* Two reversals of a list, and what is to be proved of them. *)

Require Import List.
Import ListNotations.

Fixpoint slow {A : Type} (l : list A) : list A :=
  match l with
  | [] => []
  | x :: rest => slow rest ++ [x]
  end.

Fixpoint onto {A : Type} (l done : list A) : list A :=
  match l with
  | [] => done
  | x :: rest => onto rest (x :: done)
  end.

Definition fast {A : Type} (l : list A) : list A := onto l [].

Definition fast_is_slow : Prop := forall (A : Type) (l : list A), fast l = slow l.

Definition fast_undoes_itself : Prop := forall (A : Type) (l : list A), fast (fast l) = l.
