#!/bin/sh
# The measured promises: start-up, the price of a trivial cell, memory of a long run. Fails when one is not kept.
set -u
. "$(dirname "$0")/steps.sh"

.ci/venv.sh run || exit 1
trap '.ci/engine.sh stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
FAILED=0
step "start-up" "$VENV/bin/python" bench/startup.py || FAILED=1
step "verify" "$VENV/bin/python" bench/verify.py || FAILED=1
for bench in trivial_cell cell_gate file_tools memory first_verdict; do
    [ -f "bench/$bench.py" ] || continue
    .ci/engine.sh answers || step "container engine" .ci/engine.sh start || FAILED=1
    .ci/seat_image.sh || FAILED=1
    step "$bench" "$VENV/bin/python" "bench/$bench.py" || FAILED=1
done
exit "$FAILED"
