# Sourced by the benches: how wall time, CPU time and peak memory are measured, the same for every
# program.
#
# shellcheck shell=bash
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/deploy/packages.sh"
packages_need build run sample full
TRANSCODE=${TRANSCODE:-$root/build/transcode}
# A bench is a comparison on this machine, not a test: it builds nothing.
[ -x "$TRANSCODE" ] || { echo "$TRANSCODE is not there: build first (samples/quickstart.sh)" >&2 && exit 2; }
# shellcheck disable=SC2034 # for those who source this
bench=$root/tests/bench
work=${WORK:-$root/build-bench}
mkdir -p "$work"

note() { echo "-- $*" >&2; }

# Runs a command; appends "WALL CPU" in seconds to $work/LABEL.times. CPU is that of the command and
# of all descendants it has waited for.
timed() { # LABEL COMMAND...
    local label=$1 wall user system
    shift
    note "$label"
    /usr/bin/time -o "$work/time" -f '%e %U %S' "$@" >"$work/$label.log" 2>&1 ||
        { tail -n 5 "$work/$label.log" >&2 && exit 1; }
    read -r wall user system < <(tail -n 1 "$work/time")
    awk -v w="$wall" -v u="$user" -v s="$system" 'BEGIN {print w, u + s}' >>"$work/$label.times"
}

median() { # LABEL COLUMN
    sort -n -k "$2,$2" "$work/$1.times" | awk -v c="$2" '{v[NR] = $c} END {print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'
}

# A process and all its descendants, a line each: proportional set size, what of it is its own and no
# file's, both in KiB, title.
tree_pss() { # PID
    local pids pid title key value pss
    pids=$(ps -e -o pid=,ppid= | awk -v root="$1" '
        {child[$2] = child[$2] " " $1}
        END {n = split(root, todo); for (i = 1; i <= n; i++) {
            print todo[i]; m = split(child[todo[i]], c); for (j = 1; j <= m; j++) todo[++n] = c[j]}}')
    for pid in $pids; do
        { IFS= read -r -d '' title <"/proc/$pid/cmdline" &&
            while read -r key value _; do
                case $key in
                Pss:) pss=$value ;;
                Pss_Anon:) echo "$pss $value $title" ;;
                esac
            done <"/proc/$pid/smaps_rollup"; } 2>/dev/null || true
    done
}

# The peak of their sum, sampled ten times a second; all samples stay in $work/peak.samples. Sampling
# costs time, so it is done in a run of its own.
peak() { # COMMAND...: prints MiB
    local pid now max=0
    : >"$work/peak.samples"
    "$@" >"$work/peak.log" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        tree_pss $pid >"$work/peak.sample"
        cat "$work/peak.sample" >>"$work/peak.samples"
        now=$(awk '{sum += $1} END {print sum + 0}' "$work/peak.sample")
        [ "$now" -le "$max" ] || max=$now
        sleep 0.08
    done
    wait $pid || { tail -n 5 "$work/peak.log" >&2 && exit 1; }
    echo $((max / 1024))
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.3f", a / b}'; }

# One line of the closing table; a measure over its aim is marked, and makes the bench exit 1.
missed=0
row() { # WHAT MEASURED AIM [VALUES]: at most AIM is well
    local mark=
    awk -v m="$2" -v a="$3" 'BEGIN {exit !(m <= a)}' || { mark="  MISSED" && missed=$((missed + 1)); }
    printf '%-52s %9s  aim <= %-7s %s%s\n' "$1" "$2" "$3" "${4-}" "$mark"
}
