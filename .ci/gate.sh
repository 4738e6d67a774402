#!/bin/sh
# The gate, whole or in parts: `gate.sh lint types fast live`. Every part runs even when an earlier one failed; the
# end lists each with its time, and the status is 0 only if all of them passed.
# shellcheck disable=SC2317 # functions are called by their names, through `step`
set -u
. "$(dirname "$0")/steps.sh"

BIN=$VENV/bin
SUMMARY=$BUILD/summary
FAILED=0
: >"$SUMMARY"
trap '.ci/engine.sh stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

part() {
    step "$@" || FAILED=1
    if [ "$status" -eq 0 ]; then word=passed; else word=FAILED; fi
    printf '%6s s  %-7s %s\n' "$took" "$word" "$title" >>"$SUMMARY"
}

# Two cores are the machine that the gate is made for; live tests mostly wait, so that two at once cost one little.
WORKERS=${WORKERS:-2}

# Published cells of a real campaign, where PROCTOR_CAMPAIGN_FILES names the folder that holds them.
fast_extras() { [ -z "${PROCTOR_CAMPAIGN_FILES:-}" ] || printf ' --with campaign-files'; }

fast_tests() {
    # shellcheck disable=SC2046 # a list of words
    "$BIN/pytest" -q -n "$WORKERS" $(fast_extras) --durations=5 --junitxml="$BUILD/fast.xml"
}

coverage_figure() {
    COVERAGE_FILE=$BUILD/.coverage "$BIN/coverage" run -m pytest -q || return 1
    COVERAGE_FILE=$BUILD/.coverage "$BIN/coverage" report >"$BUILD/missed-lines.txt"
    figure=$(COVERAGE_FILE=$BUILD/.coverage "$BIN/coverage" report --format=total --precision=1)
    say "   coverage of the fast tests, lines and branches: $figure % (missed lines: $BUILD/missed-lines.txt)"
}

live_needs() {
    have chromium || need "the page of a report" chromium || return 1
    .ci/engine.sh start && .ci/seat_image.sh || return 1
    # Both wait for the network most of the time.
    .ci/agent_image.sh &
    agent=$!
    provers=0
    .ci/prover_image.sh || provers=1
    wait "$agent" && [ "$provers" -eq 0 ] || return 1
    quietly "$BUILD/model.log" "$BIN/proctor" model fetch smollm2-135m-instruct
}

# live_extras : the options that add tests of what only some machines have.
live_extras() {
    [ -n "${HUMANEVAL_OVERRIDE_PATH:-}" ] && [ -n "${MBPP_OVERRIDE_PATH:-}" ] || return 0
    printf ' --with evalplus-files'
    if "$BIN/python" -c 'import evalplus.data.mbpp' 2>/dev/null; then printf ' --with evalplus-package'; fi
}

live_tests() {
    rm -f "$BUILD/live.xml"
    live_status=0
    extras=$(live_extras)
    say "   tests of EvalPlus's own files: ${extras:-left out, HUMANEVAL_OVERRIDE_PATH and MBPP_OVERRIDE_PATH are not set}"
    # shellcheck disable=SC2086 # a list of words
    "$BIN/pytest" -q --live-only -n "$WORKERS" --dist loadscope $extras --durations=10 --junitxml="$BUILD/live.xml" || live_status=$?
    # A green run that left tests out is no green run.
    "$BIN/python" .ci/live_ran.py "$BUILD/live.xml" || live_status=1
    return "$live_status"
}

.ci/venv.sh dev || exit 1
for name in "${@:-none}"; do
    case $name in
        lint)
            part "ruff format" "$BIN/ruff" format --check -q .
            part "ruff check" "$BIN/ruff" check -q .
            ;;
        types) part "mypy" "$BIN/mypy" ;;
        fast) part "fast tests" fast_tests ;;
        live)
            part "container engine, images, model" live_needs
            if [ "$status" -eq 0 ]; then
                part "live tests" live_tests
            else
                say "   live tests: NOT RUN"
                printf '%6s s  %-7s %s\n' 0 "NOT RUN" "live tests" >>"$SUMMARY"
            fi
            ;;
        coverage) part "coverage" coverage_figure ;;
        *) fail "gate.sh: unknown part '$name': expected lint, types, fast, live or coverage" ;;
    esac
done

say "== the gate"
cat "$SUMMARY"
if [ "$FAILED" -eq 0 ]; then say "   passed"; else say "   FAILED"; fi
exit "$FAILED"
