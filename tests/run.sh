#!/bin/bash
# Builds and runs every test; the last line is "N passed, N failed, N skipped".
#
#     tests/run.sh                all of it: unit and shell tests, lints, ASan+UBSan by gcc, TSan by clang
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
# Fewer random histories where each step is slow.
declare -A arguments=([asan.test_queue_history]=20)

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
tally() { # NAME LOG EXIT-CODE SECONDS CPU-SECONDS
    local p f s
    p=$(count PASSED "$2") f=$(count FAILED "$2") s=$(count SKIPPED "$2")
    case $3 in
    0) [ $((p + s)) -gt 0 ] || p=1 ;;
    77) [ "$s" -gt 0 ] || s=1 ;;
    *) [ "$f" -gt 0 ] || f=1 ;;
    esac
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-44s %4d passed %2d failed %2d skipped %5d s %5d s CPU\n' "$1" "$p" "$f" "$s" "$4" "$5"
    [ "$s" -eq 0 ] || grep -E '^skipped: ' "$2" | sort | uniq -c | sed 's/^ */    /'
    [ "$f" -eq 0 ] && return
    if [ "$3" -eq 124 ] || [ "$3" -eq 137 ]; then echo "    killed: it ran past its limit"; fi
    tail -n 60 "$2" | sed 's/^/    | /'
}

run_one() { # DIR NAME COMMAND
    local rc=0 TIMEFORMAT='%0R %0U %0S'
    { time timeout --kill-after=10 600 bash -c "$3" >"$1/$2.log" 2>&1 </dev/null; } 2>"$1/$2.time" || rc=$?
    echo "$rc $(cat "$1/$2.time")" >"$1/$2.rc"
}

# What takes long, and about how many seconds: begun first, so that all cores are busy to the end. A
# later line counts where two fit.
weights='
*                     1
*test_exact           20
*test_audio_track     20
*test_queue_*         15
lint.lint.headers     30
*test_simgpu_decode   15
*test_nvenc*          10
*test_agent           60
*cli.test_cli         50
*hls.test_witness     80
*e2e.test_*           60
*e2e.test_cuda        200
*test_queue_history   90
*chaos.test_chaos     100
'

longest_first() { # of "NAME<tab>COMMAND" lines
    local name command pattern seconds weight
    while IFS=$'\t' read -r name command; do
        while read -r pattern seconds; do
            # shellcheck disable=SC2053
            [[ -z $pattern || $name != $pattern ]] || weight=$seconds
        done <<<"$weights"
        printf '%d\t%s\t%s\n' "$weight" "$name" "$command"
    done | sort -s -k 1,1nr | cut -f 2-
}

# Runs tests from "NAME<tab>COMMAND" lines on stdin, each within 10 minutes. One more at a time than
# there are cores: many of them wait for time to pass.
run_all() { # LABEL
    local dir="$logs/$1" name command rc real user system
    mkdir -p "$dir"
    while IFS=$'\t' read -r name command; do
        while [ "$(jobs -rp | wc -l)" -gt "$cores" ]; do wait -n; done
        run_one "$dir" "$name" "$command" &
    done < <(longest_first)
    wait
    for log in "$dir"/*.log; do
        [ -e "$log" ] || return 0
        name=$(basename "$log" .log)
        read -r rc real user system <"$dir/$name.rc"
        tally "${name/./: }" "$log" "$rc" "$real" $((user + system))
    done
}

unit_tests() { # LABEL BUILD-DIR [WRAPPER]: "NAME<tab>COMMAND" lines
    local program name
    for program in "$2"/tests/test_*; do
        name=$(basename "$program")
        if [ -x "$program" ] && [ -f "$program" ] && wanted "$name"; then
            printf '%s.%s\t%s\n' "$1" "$name" "${3-} $PWD/$program ${arguments[$1.$name]-}"
        fi
    done
}

shell_tests() { # LABEL WRAPPER PART...
    local label=$1 wrapper=$2 script name part
    shift 2
    for part in "$@"; do
        for script in "tests/$part"/*.sh; do
            [ -x "$script" ] || continue
            name=$part.$(basename "$script" .sh)
            ! wanted "$name" || printf '%s.%s\t%s\n' "$label" "$name" "$wrapper $script"
        done
    done
}

# Builds one configuration; the build is a test of its own. A broken one is a failure and ends what
# depends on it.
build() { # DIR [CMAKE-ARG...]
    local dir=$1
    shift
    run_one "$logs" "$dir" "cmake -S . -B $dir -G Ninja -DWERROR=ON $* --log-level=WARNING &&
        ninja -C $dir -k 0 -j $cores"
    local rc real user system
    read -r rc real user system <"$logs/$dir.rc"
    tally "build: $dir" "$logs/$dir.log" "$rc" "$real" $((user + system))
    return "$rc"
}

close() {
    echo "$((SECONDS / 60)) min $((SECONDS % 60)) s in all, on $cores cores"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] && exit 0
    exit 1
}

build build-test -DCMAKE_BUILD_TYPE=RelWithDebInfo || close
plain="env TRANSCODE=$PWD/build-test/transcode"
run_all plain < <(
    shell_tests lint "$plain" lint
    unit_tests unit build-test "$plain"
    shell_tests shell "$plain" e2e hls cli media
    $quick || shell_tests chaos "$plain" chaos
)
$quick && close

# The second one is built by clang, so that two compilers have seen all of the code.
# Leaks count: LeakSanitizer is on with ASan. Allocation failure must look as it does without.
asan="env ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1"
asan+=" TRANSCODE=$PWD/build-asan/transcode"
sanitized=()
! build build-asan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 \
    -DSANITIZE=address,undefined || sanitized+=(asan)

# Threads: one an encoder, the agent's two, and what they share.
threaded='exact|warm|agent|tonemap|log|err|process|lease_keeper|protocol'

# ThreadSanitizer cannot map its shadow where a kernel randomises addresses with more than 28 bits:
# setarch -R. Only our own code is instrumented, so reports about the inside of libav are left out.
tsan="setarch -R env TSAN_OPTIONS=suppressions=$PWD/tests/tsan.txt:second_deadlock_stack=1"
tsan+=" TRANSCODE=$PWD/build-tsan/transcode"
! build build-tsan -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 \
    -DSANITIZE=thread || sanitized+=(tsan)

run_all sanitized < <(
    case " ${sanitized[*]} " in *" asan "*)
        unit_tests asan build-asan "$asan"
        shell_tests asan-shell "$asan" e2e cli
        ;;
    esac
    case " ${sanitized[*]} " in *" tsan "*)
        unit_tests tsan build-tsan "$tsan" | grep -E "^tsan\.test_($threaded)[[:blank:]]"
        ;;
    esac
)
close
