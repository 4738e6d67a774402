# Sourced by the scripts of this folder: steps with their times, and Debian's packages.
# shellcheck shell=sh

cd "$(dirname "$0")/.." || exit
# shellcheck disable=SC2034 # for the scripts that source this one
VENV=.venv
BUILD=build/gate # logs and results of the last gate; safe to delete
mkdir -p "$BUILD"
# Daemons and debootstrap live in the sbin folders, which an ordinary user's PATH leaves out on Debian.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export PATH

say() { printf '%s\n' "$*"; }

fail() {
    say "$*" >&2
    exit 1
}

now() { date +%s; }

have() { command -v "$1" >/dev/null 2>&1; }

# step TITLE COMMAND... : runs a command, says how long it took, keeps its status.
step() {
    title=$1
    shift
    say "== $title"
    began=$(now)
    status=0
    "$@" || status=$?
    took=$(($(now) - began))
    if [ "$status" -eq 0 ]; then say "   $title: $took s"; else say "   $title: FAILED (status $status) after $took s"; fi
    return "$status"
}

# quietly LOG COMMAND... : a long command's output goes into a file, and its end is shown if it fails.
quietly() {
    log=$1
    shift
    if "$@" >"$log" 2>&1; then return 0; else status=$?; fi
    say "   \`$*\` failed; the end of $log:" >&2
    tail -n 15 "$log" >&2
    return "$status"
}

# as_root COMMAND... : as root, or by a sudo that asks nothing.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_be_root() { [ "$(id -u)" -eq 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }

# need WHY PACKAGE... : installs Debian packages; without apt or root it says what to do and returns 1.
need() {
    why=$1
    shift
    if ! have apt-get; then
        say "   $why: install what your system calls $*, then try again" >&2
        return 1
    fi
    if ! may_be_root; then
        say "   $why: this needs root, and there is no sudo that asks nothing; run \`sudo apt-get install $*\`, then try again" >&2
        return 1
    fi
    say "   $why: installing $* from Debian"
    # The lists of a new machine are empty or old: fetched once, and again only when a package isn't found in them.
    install="env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends"
    # shellcheck disable=SC2086 # a list of words
    as_root $install "$@" >"$BUILD/apt.log" 2>&1 && return 0
    as_root apt-get -q update >>"$BUILD/apt.log" 2>&1 || true
    # shellcheck disable=SC2086
    quietly "$BUILD/apt.log" as_root $install "$@"
}

has_library() { ldconfig -p | grep -q "$1"; }
