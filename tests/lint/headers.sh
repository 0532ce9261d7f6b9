#!/bin/bash
# Each header compiles alone, with every compiler that is here.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

flags=(-std=gnu17 -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror -x c)
read -ra include < <(pkg-config --cflags libavformat libavcodec libavfilter hiredis jansson yaml-0.1 libseccomp)

headers() { # ROOT
    local header compiler faults=0
    cd "$1" || return 2
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        while read -r header; do
            # Twice, so that a missing guard shows too.
            printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
                $compiler "${flags[@]}" -I. "${include[@]}" - || {
                echo "$header does not compile alone ($compiler)"
                faults=$((faults + 1))
            }
        done < <(find . \( -name 'build*' -o -name node_modules \) -prune -o -name '*.h' -print | sed 's,^\./,,')
    done
    return $((faults > 0))
}

bad=$(mktemp -d) && trap 'rm -rf "$bad"' EXIT
for text in 'size_t missing_include(void);' 'struct no_guard { int a; };'; do
    echo "$text" >"$bad/bad.h"
    ! (headers "$bad") >/dev/null 2>&1 || { echo "self-test: '$text' passed" && exit 1; }
done
headers "$PWD"
