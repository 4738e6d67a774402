module Goals {
  import opened Spec
  import Solution

  method Partition(a: array<int>, pivot: int) returns (cut: int)
    modifies a
    ensures 0 <= cut <= a.Length
    ensures Below(a[..cut], pivot) && NotBelow(a[cut..], pivot)
    ensures multiset(a[..]) == multiset(old(a[..]))
  {
    cut := Solution.Partition(a, pivot);
  }
}
