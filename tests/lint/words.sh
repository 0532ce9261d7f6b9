#!/bin/bash
# Nothing in the sources speaks of the machine they were written on: no home or build folders, no
# hosts of package mirrors or registries (asked of this machine's own settings), no locked package
# with the address it came from, and nothing left "to do".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

# Written so that this file does not match itself.
patterns=('(^|[^A-Za-z0-9_.$}])/(work|home|root|Users)/[A-Za-z]' '\b(TO)(DO)\b|\bFIX(ME)\b' '"resolved"[:]')
# shellcheck disable=SC2016
hosts=$({
    apt-get indextargets --format '$(REPO_URI)'
    npm config get registry
} 2>/dev/null | sed -nE 's,^[a-z+]+://([^/@]*@)?([^/:]+).*,\2,p' | sort -u)

words() { # ROOT
    local pattern host faults=0
    cd "$1" || return 2
    found() { grep -rnI "$@" --exclude=.git --exclude-dir={.git,node_modules,'build*'} . && faults=$((faults + 1)); }
    for pattern in "${patterns[@]}"; do found -E -e "$pattern"; done
    for host in $hosts; do found -F -e "$host"; done
    return $((faults > 0))
}

bad=$(mktemp -d) && trap 'rm -rf "$bad"' EXIT
{
    printf '%s\n' 'see /ro''ot/x' 'TO''DO: later' '"res''olved": "x"'
    [ -z "$hosts" ] || echo "http://${hosts%%$'\n'*}/"
} | while read -r line; do
    echo "$line" >"$bad/bad.txt"
    ! (words "$bad") >/dev/null || { echo "self-test: '$line' passed" && exit 1; }
done || exit 1
words "$PWD"
