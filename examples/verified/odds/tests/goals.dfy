module Goals {
  import opened Spec
  import Solution

  lemma OddsAreSquares(n: nat)
    ensures Odds(n) == n * n
  {
    Solution.OddsAreSquares(n);
  }

  method SumOfOdds(n: nat) returns (sum: nat)
    ensures sum == Odds(n)
  {
    sum := Solution.SumOfOdds(n);
  }
}
