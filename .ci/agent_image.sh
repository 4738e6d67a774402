#!/bin/sh
# Makes sure that the image of the live test of a foreign agent is in the store. Its packages come from a Python index.
set -eu
. "$(dirname "$0")/steps.sh"

if "$VENV/bin/proctor" image list | grep -q '^mini-swe-agent '; then exit 0; fi
PROCTOR="$PWD/$VENV/bin/proctor"
export PROCTOR
step "image mini-swe-agent" quietly "$BUILD/agent_image.log" sh examples/agents/image.sh
