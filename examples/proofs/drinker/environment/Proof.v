Require Import Statement.

Theorem main : paradox.
Proof.
Admitted.
