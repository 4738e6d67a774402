module Goals {
  import opened Spec
  import Solution

  method Search(s: seq<int>, key: int) returns (at: int)
    requires Sorted(s)
    ensures at == -1 ==> key !in s
    ensures at != -1 ==> 0 <= at < |s| && s[at] == key
  {
    at := Solution.Search(s, key);
  }
}
