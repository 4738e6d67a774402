#!/bin/sh
# Harbor's own way in; Proctor does not use it. It runs the suite beside the candidate, without Proctor's two rooms.
mkdir -p /logs/verifier
if PYTHONPATH=/workspace python -B -m pytest -q -p no:cacheprovider -c /dev/null --rootdir /tests /tests; then
    echo 1 >/logs/verifier/reward.txt
else
    echo 0 >/logs/verifier/reward.txt
fi
