Require Import Classical Statement.

Theorem main : paradox.
Proof.
  intros guest drinks [someone].
  destruct (classic (exists x, ~ drinks x)) as [[x sober] | none].
  - exists x. intros drunk. contradiction.
  - exists someone. intros _ y. apply NNPP. intros sober. apply none. exists y. exact sober.
Qed.
