#!/bin/sh
# Makes sure that the image of the live tests of proof kernels and program verifiers is in the store.
set -eu
. "$(dirname "$0")/steps.sh"

if "$VENV/bin/proctor" image list | grep -q '^proctor-provers '; then exit 0; fi
step "image proctor-provers" quietly "$BUILD/prover_image.log" \
    "$VENV/bin/python" -c "from tests.live.images import prover_image; prover_image()"
