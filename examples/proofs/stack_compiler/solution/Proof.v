Require Import List Statement.
Import ListNotations.

Lemma run_append : forall (p q : list instruction) (stack : list nat),
  run (p ++ q) stack = match run p stack with Some next => run q next | None => None end.
Proof.
  induction p as [| i rest IH]; intros q stack; simpl.
  - reflexivity.
  - destruct (step i stack); [apply IH | reflexivity].
Qed.

Lemma pushes : forall (e : expression) (stack : list nat), run (compile e) stack = Some (value e :: stack).
Proof.
  induction e as [n | a IHa b IHb | a IHa b IHb | c IHc a IHa b IHb]; intros stack; simpl;
    repeat rewrite run_append; try rewrite IHc; simpl; try rewrite IHa; simpl;
    repeat rewrite run_append; try rewrite IHa; try rewrite IHb; simpl;
    repeat rewrite run_append; try rewrite IHb; reflexivity.
Qed.

Theorem main : compiler_is_right.
Proof.
  intros e. apply pushes.
Qed.
