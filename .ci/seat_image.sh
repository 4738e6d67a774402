#!/bin/sh
# Makes sure that workspaces can be opened here: bubblewrap is installed, and the image `proctor-seat` is in the store.
set -eu
. "$(dirname "$0")/steps.sh"

packages=""
have bwrap || packages="bubblewrap"
missing=""
"$VENV/bin/proctor" image list | grep -q '^proctor-seat ' || missing=image
# Only root can lay out a root file system from Debian's packages; others copy this host's Python.
if [ "$(id -u)" -eq 0 ]; then from=debian; else from=host; fi
if [ -n "$missing" ] && [ "$from" = debian ]; then have debootstrap || packages="$packages debootstrap"; fi

# shellcheck disable=SC2086 # a list of words
if [ -n "$packages" ]; then need "workspaces" $packages; fi
if [ -n "$missing" ]; then
    step "image proctor-seat" quietly "$BUILD/image.log" "$VENV/bin/proctor" image build --from "$from"
fi
