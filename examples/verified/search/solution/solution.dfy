include "spec.dfy"

module Solution {
  import opened Spec

  method Search(s: seq<int>, key: int) returns (at: int)
    requires Sorted(s)
    ensures at == -1 ==> key !in s
    ensures at != -1 ==> 0 <= at < |s| && s[at] == key
  {
    var low, high := 0, |s|;
    while low < high
      invariant 0 <= low <= high <= |s|
      invariant forall i :: 0 <= i < low ==> s[i] < key
      invariant forall i :: high <= i < |s| ==> key < s[i]
    {
      var middle := (low + high) / 2;
      if s[middle] < key {
        low := middle + 1;
      } else if key < s[middle] {
        high := middle;
      } else {
        return middle;
      }
    }
    return -1;
  }
}
