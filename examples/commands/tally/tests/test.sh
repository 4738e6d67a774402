#!/bin/sh
# Harbor's own way in; Proctor does not use it. It runs the suite beside the candidate, without Proctor's two rooms.
mkdir -p /logs/verifier /tmp/bin
printf '#!/bin/sh\ncd /workspace && exec ./tally "$@"\n' >/tmp/bin/subject
chmod +x /tmp/bin/subject
if PATH=/tmp/bin:$PATH sh /tests/tally.sh | grep -q '^not ok'; then
    echo 0 >/logs/verifier/reward.txt
else
    echo 1 >/logs/verifier/reward.txt
fi
