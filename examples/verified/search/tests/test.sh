#!/bin/sh
# Harbor's own way in; Proctor does not use it. It takes the verifier's summary at its word, as no referee should.
mkdir -p /logs/verifier
cd /workspace && cp /tests/goals.dfy . || exit 1
if dafny /compile:0 spec.dfy solution.dfy goals.dfy | grep -q ' 0 errors$'; then
    echo 1 >/logs/verifier/reward.txt
else
    echo 0 >/logs/verifier/reward.txt
fi
