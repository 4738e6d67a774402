#!/bin/sh
# Makes .venv and installs Proctor into it: `venv.sh run` for experiments, `venv.sh dev` with the gate's tools too.
# Does nothing, and needs no network, when pyproject.toml has not changed since. PYTHON names another interpreter.
set -eu
. "$(dirname "$0")/steps.sh"

PYTHON=${PYTHON:-python3}
case ${1:-run} in
    run) extras=local-model,ollama,report ;;
    dev) extras=dev ;;
    *) fail "venv.sh: unknown profile '$1': expected run or dev" ;;
esac

have "$PYTHON" || fail "there is no $PYTHON: install Python 3.11 or later (Debian: apt-get install python3)"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$PYTHON" --version) is too old: Proctor needs Python 3.11 or later; name one by PYTHON=/path/to/python3"

# What was installed is a function of these bytes and of the place; `dev` holds everything that `run` does.
wanted=$({ pwd && cat pyproject.toml .ci/venv.sh; } | sha256sum | cut -d' ' -f1)
is_done() { [ "$(cat "$VENV/proctor-$1" 2>/dev/null)" = "$wanted" ] && "$VENV/bin/python" -c '' 2>/dev/null; }
if is_done "${1:-run}" || is_done dev; then exit 0; fi

# The embedded model's engine is compiled; a minimal Debian has no OpenMP.
missing=""
has_library libgomp.so.1 || missing="$missing libgomp1"
has_library libstdc++.so.6 || missing="$missing libstdc++6"
has_pip() { "$VENV/bin/python" -m pip --version >/dev/null 2>&1; }
if ! has_pip && ! "$PYTHON" -c 'import ensurepip' 2>/dev/null; then missing="$missing python3-venv"; fi
# shellcheck disable=SC2086 # a list of words
if [ -n "$missing" ]; then need "system packages" $missing || true; fi # what is still missing is named below

make_venv() {
    # An environment whose Python is gone, or whose tree was moved since, can't be mended.
    [ "$(cat "$VENV/proctor-place" 2>/dev/null || pwd)" = "$(pwd)" ] && has_pip && return 0
    rm -rf "$VENV"
    if "$PYTHON" -c 'import ensurepip' 2>/dev/null; then
        "$PYTHON" -m venv "$VENV"
    elif have virtualenv; then
        virtualenv -q -p "$PYTHON" "$VENV"
    elif "$PYTHON" -m pip --version >/dev/null 2>&1; then
        # The interpreter has a pip of its own: it can put another one into an environment without.
        "$PYTHON" -m venv --without-pip "$VENV"
        "$PYTHON" -m pip --python "$VENV/bin/python" install -q pip
    else
        fail "$PYTHON can make no virtual environment: it has neither ensurepip nor pip (Debian: the package python3-venv)"
    fi
}

step "virtual environment" make_venv
install_it() {
    quietly "$BUILD/pip.log" "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input -e ".[$extras]"
}
step "Proctor and what it needs (half a minute to a few, once)" install_it
# Tests grade by the real harness; what it depends on is half a gigabyte that grading has no use for.
if [ "$extras" = dev ]; then
    quietly "$BUILD/pip.log" "$VENV/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps swebench==5.0.2
fi
"$VENV/bin/python" -c 'import xllamacpp' 2>"$BUILD/xllamacpp.log" ||
    say "   the embedded model's engine does not load: $(tail -n 1 "$BUILD/xllamacpp.log"); a model server still works"
pwd >"$VENV/proctor-place"
echo "$wanted" >"$VENV/proctor-${1:-run}"
