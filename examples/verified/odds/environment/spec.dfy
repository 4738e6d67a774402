module Spec {
  function Odds(n: nat): nat {
    if n == 0 then 0 else Odds(n - 1) + 2 * n - 1
  }
}
