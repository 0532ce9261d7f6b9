#!/bin/bash
# Every shell script passes shellcheck.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
command -v shellcheck >/dev/null || { echo "skipped: shellcheck is not here" && exit 77; }

bad=$(mktemp -d) && trap 'rm -rf "$bad"' EXIT
# shellcheck disable=SC2016
printf '#!/bin/bash\nrm -rf $1/*\n' >"$bad/bad.sh"
! shellcheck "$bad/bad.sh" >/dev/null || { echo "self-test: a bad script passed" && exit 1; }

{
    find . \( -name 'build*' -o -name node_modules -o -name .git \) -prune -o -name '*.sh' -print0
    printf '.ci/run\0'
} | xargs -0 shellcheck
