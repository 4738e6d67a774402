module Spec {
  predicate Below(s: seq<int>, pivot: int) {
    forall i :: 0 <= i < |s| ==> s[i] < pivot
  }

  predicate NotBelow(s: seq<int>, pivot: int) {
    forall i :: 0 <= i < |s| ==> s[i] >= pivot
  }
}
