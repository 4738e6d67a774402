(* Somebody drinks only if everybody does. *)

Definition paradox : Prop :=
  forall (guest : Type) (drinks : guest -> Prop), inhabited guest ->
  exists x : guest, drinks x -> forall y : guest, drinks y.
