include "spec.dfy"

module Solution {
  import opened Spec

  method Partition(a: array<int>, pivot: int) returns (cut: int)
    modifies a
    ensures 0 <= cut <= a.Length
    ensures Below(a[..cut], pivot) && NotBelow(a[cut..], pivot)
    ensures multiset(a[..]) == multiset(old(a[..]))
  {
    cut := 0;
    var next := 0;
    while next < a.Length
      invariant 0 <= cut <= next <= a.Length
      invariant forall i :: 0 <= i < cut ==> a[i] < pivot
      invariant forall i :: cut <= i < next ==> a[i] >= pivot
      invariant multiset(a[..]) == multiset(old(a[..]))
    {
      if a[next] < pivot {
        a[cut], a[next] := a[next], a[cut];
        cut := cut + 1;
      }
      next := next + 1;
    }
  }
}
