Require Import List Statement.

Theorem same : fast_is_slow.
Proof.
Admitted.

Theorem twice : fast_undoes_itself.
Proof.
Admitted.
