#!/bin/bash
# clang-format leaves every C file as it is. Versions format differently: 14 (Debian 12) decides.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

format=
for f in clang-format-14 clang-format; do
    if command -v $f >/dev/null && $f --version | grep -q 'version 14\.'; then format=$f && break; fi
done
[ -n "$format" ] || { echo "skipped: clang-format 14 is not here" && exit 77; }

bad=$(mktemp -d) && trap 'rm -rf "$bad"' EXIT
cp .clang-format "$bad"
echo 'int  f( void ) { return 0; }' >"$bad/bad.c"
! "$format" --dry-run -Werror "$bad/bad.c" 2>/dev/null || { echo "self-test: a bad file passed" && exit 1; }

find . \( -name 'build*' -o -name node_modules -o -name .git \) -prune -o -name '*.[ch]' -print0 |
    xargs -0 "$format" --dry-run -Werror
