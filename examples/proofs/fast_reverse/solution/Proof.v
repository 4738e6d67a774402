Require Import List Statement.
Import ListNotations.

Lemma onto_appends : forall (A : Type) (l done : list A), onto l done = slow l ++ done.
Proof.
  induction l as [| x rest IH]; intros done; simpl.
  - reflexivity.
  - rewrite IH, <- app_assoc. reflexivity.
Qed.

Theorem same : fast_is_slow.
Proof.
  intros A l. unfold fast. rewrite onto_appends. apply app_nil_r.
Qed.

Lemma slow_of_append : forall (A : Type) (l : list A) (x : A), slow (l ++ [x]) = x :: slow l.
Proof.
  induction l as [| y rest IH]; intros x; simpl.
  - reflexivity.
  - rewrite IH. reflexivity.
Qed.

Theorem twice : fast_undoes_itself.
Proof.
  intros A l. rewrite !same.
  induction l as [| x rest IH]; simpl.
  - reflexivity.
  - rewrite slow_of_append, IH. reflexivity.
Qed.
