# Sourced by the shell tests. A test script defines functions, runs each by `check NAME FUNCTION
# [ARG...]` and ends with `finish`. What is printed is what cmocka prints, so that tests/run.sh
# counts C and shell cases alike.
#
# A case runs in a subshell under `set -e`, in an empty directory of its own; it passes when it
# returns 0 and is skipped when it returns 77 (print the reason, or call `skip`). TRANSCODE is the
# program under test.
#
# shellcheck shell=bash
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TRANSCODE=${TRANSCODE:-$root/build/transcode}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/transcode-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=() skipped=()

fail() { # MESSAGE
    echo "    $*" >&2
    exit 1
}

skip() { # REASON
    echo "skipped: $*"
    exit 77
}

end_jobs() {
    local group
    for group in $(jobs -p); do kill -KILL -- "-$group" 2>/dev/null || true; done
}

check() { # NAME FUNCTION [ARG...]
    local name=$1 rc
    shift
    [[ -z ${ONLY-} || $name == *"$ONLY"* ]] || return 0
    echo "[ RUN      ] $name"
    mkdir -p "$scratch/case"
    (
        set -e
        # Whatever a case has begun ends with it: each job is a process group.
        set -m
        trap end_jobs EXIT
        cd "$scratch/case"
        "$@"
    ) </dev/null
    rc=$?
    rm -rf "$scratch/case"
    case $rc in
    0) passed=$((passed + 1)) && echo "[       OK ] $name" ;;
    77) skipped+=("$name") && echo "[  SKIPPED ] $name" ;;
    *) failed+=("$name") && echo "[  FAILED  ] $name (exit $rc)" ;;
    esac
}

finish() {
    echo "[  PASSED  ] $passed test(s)."
    [ ${#skipped[@]} -eq 0 ] || echo "[  SKIPPED ] ${#skipped[@]} test(s), listed below: ${skipped[*]}"
    [ ${#failed[@]} -eq 0 ] && exit 0
    echo "[  FAILED  ] ${#failed[@]} test(s), listed below: ${failed[*]}"
    exit 1
}

equal() { # WHAT EXPECTED GOT
    [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# Runs a command, output into ./stdout and ./stderr, and wants exactly this exit code.
exits() { # CODE COMMAND [ARG...]
    local want=$1 rc=0
    shift
    "$@" >stdout 2>stderr || rc=$?
    [ "$rc" -eq "$want" ] && return 0
    echo "    $*: expected exit $want, got $rc; the end of its stderr:" >&2
    tail -n 20 stderr | sed 's/^/    | /' >&2
    exit 1
}

says() { # EXTENDED-REGEX FILE
    grep -qiE -- "$1" "$2" || fail "$2 does not say /$1/: $(tail -n 3 "$2")"
}
