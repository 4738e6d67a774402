#!/bin/sh
# The container engine of the live tests. `engine.sh answers` exits 0 when one does; `engine.sh start` finds or starts
# one and prints nothing but what it did; `engine.sh stop` ends the one that `start` began, and no other.
set -eu
. "$(dirname "$0")/steps.sh"

MARK=$BUILD/engine   # what `start` began: a process id, or "systemd"
LOG=$BUILD/dockerd.log
PIDFILE=/var/run/docker.pid

answers() { "$VENV/bin/python" .ci/engine_answers.py; }
runs() { [ -f "$PIDFILE" ] && [ -d "/proc/$(cat "$PIDFILE")" ]; }

# wait_for SECONDS : until an engine answers, or the one that was started has ended.
wait_for() {
    tries=0
    while [ "$tries" -lt "$1" ]; do
        if answers >/dev/null 2>&1; then return 0; fi
        sleep 1
        tries=$((tries + 1))
    done
    return 1
}

start() {
    if answers; then
        say "   it was there before"
        return 0
    fi
    # shellcheck disable=SC2153 # the user's variable
    [ -z "${DOCKER_HOST:-}" ] || fail "DOCKER_HOST is $DOCKER_HOST, and no engine answers there: start it, or unset DOCKER_HOST"
    # An engine lists a container's processes by `ps`, which a minimal Debian has not.
    have dockerd && have iptables && have ps || need "container engine" docker.io iptables procps || exit 1
    may_be_root || fail "no container engine answers, and starting one needs root: sudo systemctl start docker"
    if [ -d /run/systemd/system ]; then
        as_root systemctl start docker
        echo systemd >"$MARK"
    elif ! runs; then
        # A session of its own, so that a Ctrl-C in the terminal ends the tests first and the engine after them.
        as_root setsid dockerd --group "$(id -gn)" >"$LOG" 2>&1 </dev/null &
        echo pid >"$MARK"
    fi
    if ! wait_for 60; then
        say "no container engine answers after 60 s; the end of $LOG:" >&2
        tail -n 15 "$LOG" >&2 || true
        stop
        exit 1
    fi
    answers
    say "   started by this run; log in $LOG"
}

stop() {
    [ -f "$MARK" ] || return 0
    what=$(cat "$MARK")
    rm -f "$MARK"
    if [ "$what" = systemd ]; then
        as_root systemctl stop docker.socket docker
    elif runs; then
        as_root kill "$(cat "$PIDFILE")"
        tries=0
        while runs && [ "$tries" -lt 30 ]; do
            sleep 1
            tries=$((tries + 1))
        done
    fi
    say "   the container engine that this run started has ended"
}

case ${1:-} in
    answers) answers >/dev/null 2>&1 ;;
    start) start ;;
    stop) stop ;;
    *) fail "engine.sh: expected answers, start or stop" ;;
esac
