include "spec.dfy"

module Solution {
  import opened Spec

  lemma OddsAreSquares(n: nat)
    ensures Odds(n) == n * n
  {
    if n > 0 {
      OddsAreSquares(n - 1);
      assert (n - 1) * (n - 1) == n * n - 2 * n + 1;
    }
  }

  method SumOfOdds(n: nat) returns (sum: nat)
    ensures sum == Odds(n)
  {
    OddsAreSquares(n);
    sum := n * n;
  }
}
