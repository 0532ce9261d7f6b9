#!/bin/bash
# Builds and runs every test; the last line is "N passed, N failed, N skipped".
#
#     tests/run.sh                all of it: unit and shell tests, lints, clang, ASan+UBSan, TSan
#     tests/run.sh --quick        one build, unit and shell tests, lints
#     tests/run.sh --witnesses    installs chromium and npm too; a missing witness is a failure
#     tests/run.sh [...] WORD...  only tests whose name holds one of the words
#
# A test is a program: tests/<part>/test_*.c (cmocka, one program each, by tests/CMakeLists.txt),
# tests/<part>/test_*.sh (tests/lib.sh) or tests/lint/*.sh. Exit 0 is passed, 77 skipped with the
# reason in its last line. Where it prints cmocka's closing counts, those are counted; else it
# counts as one. A program that fails counts at least one failure, whatever it printed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
. deploy/packages.sh

quick=false
export WITNESSES=optional
while [[ ${1-} == --* ]]; do
    case $1 in
    --quick) quick=true ;;
    --witnesses) WITNESSES=required ;;
    *) sed -n '2,13s/^# \{0,1\}//p' "$0" && exit 2 ;;
    esac
    shift
done
words=("$@")
sets=(build run sample test)
$quick || sets+=(full)
[ $WITNESSES = optional ] || sets+=(witness)
packages_need "${sets[@]}" || exit 1

cores=$(nproc)
logs=$(mktemp -d "${TMPDIR:-/tmp}/transcode-run.XXXXXX")
trap 'rm -rf "$logs"' EXIT
export LC_ALL=C.UTF-8
passed=0 failed=0 skipped=0

wanted() { # NAME
    [ ${#words[@]} -eq 0 ] && return 0
    local word
    for word in "${words[@]}"; do [[ $1 == *$word* ]] && return 0; done
    return 1
}

# The number in cmocka's closing line "[  PASSED  ] (group: )N test(s)", summed over groups.
count() { # PASSED|FAILED|SKIPPED LOG
    sed -nE "s/^\[ +$1 +\] ([^:]*: )?([0-9]+) test.*/\2/p" "$2" | awk '{n += $1} END {print n + 0}'
}

# Adds one finished program to the sum and shows what a person needs to see.
tally() { # NAME LOG EXIT-CODE SECONDS
    local p f s
    p=$(count PASSED "$2") f=$(count FAILED "$2") s=$(count SKIPPED "$2")
    case $3 in
    0) [ $((p + s)) -gt 0 ] || p=1 ;;
    77) [ "$s" -gt 0 ] || s=1 ;;
    *) [ "$f" -gt 0 ] || f=1 ;;
    esac
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-44s %4d passed %2d failed %2d skipped %5d s\n' "$1" "$p" "$f" "$s" "$4"
    [ "$s" -eq 0 ] || grep -E '^skipped: ' "$2" | sort | uniq -c | sed 's/^ */    /'
    [ "$f" -eq 0 ] && return
    if [ "$3" -eq 124 ] || [ "$3" -eq 137 ]; then echo "    killed: it ran past its limit"; fi
    tail -n 60 "$2" | sed 's/^/    | /'
}

run_one() { # DIR NAME COMMAND
    local start=$SECONDS rc=0
    timeout --kill-after=10 600 bash -c "$3" >"$1/$2.log" 2>&1 </dev/null || rc=$?
    echo "$rc $((SECONDS - start))" >"$1/$2.rc"
}

# Runs tests from "NAME<tab>COMMAND" lines on stdin, one per core, each within 10 minutes.
run_all() { # LABEL
    local dir="$logs/$1" name command rc seconds
    mkdir -p "$dir"
    while IFS=$'\t' read -r name command; do
        while [ "$(jobs -rp | wc -l)" -ge "$cores" ]; do wait -n; done
        run_one "$dir" "$name" "$command" &
    done
    wait
    for log in "$dir"/*.log; do
        [ -e "$log" ] || return 0
        name=$(basename "$log" .log)
        read -r rc seconds <"$dir/$name.rc"
        tally "$1: $name" "$log" "$rc" "$seconds"
    done
}

unit_tests() { # BUILD-DIR [WRAPPER]
    local program
    for program in "$1"/tests/test_*; do
        if [ -x "$program" ] && [ -f "$program" ] && wanted "$(basename "$program")"; then
            printf '%s\t%s\n' "$(basename "$program")" "${2-} $PWD/$program"
        fi
    done
}

shell_tests() { # PART...
    local script name part
    for part in "$@"; do
        for script in "tests/$part"/*.sh; do
            [ -x "$script" ] || continue
            name=$(basename "$(dirname "$script")").$(basename "$script" .sh)
            ! wanted "$name" || printf '%s\t%s\n' "$name" "$script"
        done
    done
}

# Builds one configuration; the build is a test of its own. A broken one is a failure and ends what
# depends on it.
build() { # DIR [CMAKE-ARG...]
    local dir=$1 start=$SECONDS rc=0
    shift
    {
        cmake -S . -B "$dir" -G Ninja -DWERROR=ON "$@" --log-level=WARNING &&
            ninja -C "$dir" -j "$cores"
    } >"$logs/$dir.log" 2>&1 || rc=$?
    tally "build: $dir" "$logs/$dir.log" $rc $((SECONDS - start))
    return $rc
}

close() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] && exit 0
    exit 1
}

run_all lint < <(shell_tests lint)
build build-test -DCMAKE_BUILD_TYPE=RelWithDebInfo || close
export TRANSCODE=$PWD/build-test/transcode
run_all unit < <(unit_tests build-test)
run_all shell < <(shell_tests e2e hls cli media)
$quick && close
run_all chaos < <(shell_tests chaos)

build build-clang -DCMAKE_C_COMPILER=clang

# Leaks count: LeakSanitizer is on with ASan. Allocation failure must look as it does without.
if build build-asan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DSANITIZE=address,undefined; then
    export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
    export UBSAN_OPTIONS=print_stacktrace=1
    export TRANSCODE=$PWD/build-asan/transcode
    run_all asan < <(unit_tests build-asan)
    run_all asan-shell < <(shell_tests e2e cli)
fi

# Threads: one an encoder, the agent's two, and what they share.
threaded='exact|warm|agent|tonemap|log|err|process|lease_keeper|protocol'

# ThreadSanitizer cannot map its shadow where a kernel randomises addresses with more than 28 bits:
# setarch -R. Only our own code is instrumented, so reports about the inside of libav are left out.
if build build-tsan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DSANITIZE=thread; then
    export TSAN_OPTIONS=suppressions=$PWD/tests/tsan.txt:second_deadlock_stack=1
    export TRANSCODE=$PWD/build-tsan/transcode
    run_all tsan < <(unit_tests build-tsan "setarch -R" | grep -E "^test_($threaded)[[:blank:]]")
fi
close
