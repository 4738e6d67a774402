Require Import List Statement.

Theorem main : compiler_is_right.
Proof.
Admitted.
