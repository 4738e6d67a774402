#!/bin/sh
# Builds the image `mini-swe-agent`. As root it is made from Debian's packages, with the wheels of image.lock; otherwise
# out of this host's own Python, with what pip resolves for it. Its batch mode and Amazon's models are left out.
set -eu
cd "$(dirname "$0")"
set -- image build --name mini-swe-agent --python-package mini-swe-agent==2.4.6 \
    --python-without datasets --python-without boto3
if [ "$(id -u)" -ne 0 ]; then
    set -- "$@" --from host
elif [ "$(uname -m)" = x86_64 ]; then
    set -- "$@" --python-lock image.lock
fi
exec "${PROCTOR:-proctor}" "$@"
