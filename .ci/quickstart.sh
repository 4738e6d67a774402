#!/bin/sh
# The main job on this machine: installs what is missing, asks nothing, and runs the example experiment to its
# scoreboard. Ends with the experiment's own exit status (0 done, 1 incomplete, 2 usage, 3 a gate refused).
set -eu
. "$(dirname "$0")/steps.sh"

EXPERIMENT=${1:-examples/quickstart}

# What a run on this machine needs besides Python's packages. What can't be had is named by `proctor prepare`.
system_packages() {
    wanted=""
    if .ci/engine.sh answers; then
        say "   workspaces: the container engine that answers"
        have ps || wanted="procps" # an engine lists a container's processes by it
    else
        say "   workspaces: no container engine answers, so the embedded one (bubblewrap)"
        have bwrap || wanted="bubblewrap"
    fi
    # An image is made from Debian's packages by root only; others copy this host's Python, which needs nothing.
    if [ "$(id -u)" -eq 0 ] && ! have debootstrap && ! "$VENV/bin/proctor" image list | grep -q '^proctor-seat '; then
        wanted="$wanted debootstrap"
    fi
    # shellcheck disable=SC2086 # a list of words
    if [ -n "$wanted" ]; then need "system packages" $wanted || true; fi
}

.ci/venv.sh run
step "workspace" system_packages
step "image and model" "$VENV/bin/proctor" prepare "$EXPERIMENT" || {
    status=$?
    say "quickstart: nothing was run, since something that it needs is missing (above); then \`make quickstart\` again"
    exit "$status"
}
step "experiment" "$VENV/bin/proctor" run "$EXPERIMENT" || {
    status=$?
    case $status in
        1) say "quickstart: incomplete (status 1); what was finished is kept: \`make quickstart\` goes on" ;;
        3)
            say "quickstart: a gate refused (status 3, named above). If a pin has drifted, since Proctor or this machine"
            say "  changed, register the experiment anew: $VENV/bin/proctor freeze $EXPERIMENT; then \`make quickstart\`"
            ;;
        *) say "quickstart: the run ended with status $status" ;;
    esac
    exit "$status"
}
