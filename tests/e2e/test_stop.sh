#!/bin/bash
# `run` that is stopped, killed or hurt on its way, and then ends with the very bytes of a calm run.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

film() { # long enough to be in the middle of it
    encode -f lavfi -i testsrc2=size=640x360:rate=25:duration=8 -f lavfi -i sine=duration=8 \
        -c:v libx264 -preset ultrafast -bf 2 -g 50 -pix_fmt yuv420p -c:a aac "$scratch/film.mp4"
    cp "$scratch/film.mp4" in.mp4
    run in.mp4 --profile "$here/slow.yaml" --chunk 2
    mv out "$scratch/calm"
}

begin() { # [ARG...]: the same job in the background; its process is $job
    [ -d "$scratch/calm" ] || fail "there is no calm run to compare with"
    "$TRANSCODE" run "$scratch/film.mp4" -o out --profile "$here/slow.yaml" --chunk 2 --quiet "$@" \
        >stdout 2>stderr &
    job=$!
}

# Waits until at least so many segments have reached the output.
has_segments() { # COUNT
    local i
    for ((i = 0; i < 600; i++)); do
        [ "$(find out -path '*/.transcode' -prune -o -name '*.m4s' -print 2>/dev/null | wc -l)" -lt "$1" ] || return 0
        sleep 0.05
    done
    fail "no $1 segments within 30 s"
}

ends() { # CODE
    local rc=0
    wait "$job" || rc=$?
    [ "$rc" -eq "$1" ] || fail "expected exit $1, got $rc: $(tail -n 5 stderr)"
}

descendants() { # PID
    local child
    for child in $(ps -o pid= --ppid "$1"); do
        descendants "$child"
        echo "$child"
    done
}

named() { # TITLE: descendants of the job whose title holds it
    local pid
    for pid in $(descendants "$job"); do
        ! tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -- "$1" || echo "$pid"
    done
}

same_as_calm() {
    diff -r "$scratch/calm" out >difference || fail "differs from a calm run: $(sed -n 1,3p difference | paste -sd ' ')"
}

gone() { # PID...: nothing of it is left within 5 s
    local i pid left
    for ((i = 0; i < 50; i++)); do
        left=
        for pid in "$@"; do
            case $(ps -o stat= -p "$pid") in
            "" | Z*) ;;
            *) left=$pid ;;
            esac
        done
        [ -n "$left" ] || return 0
        sleep 0.1
    done
    fail "process $left is left: $(tr '\0' ' ' <"/proc/$left/cmdline")"
}

# What no way of cutting may change: playlists but for the hashes in names, the times and keyframes of
# all frames, and to the byte the audio and the thumbnails, which are not cut at all.
shape() { # DIR
    local list
    for list in master.m3u8 high/index.m3u8 low/index.m3u8; do
        sed -E 's/-[0-9a-f]{16}\././; s/BANDWIDTH=[0-9]+//g' "$1/$list"
    done
    for list in high low; do
        ffprobe -v error -show_entries packet=pts,flags -of csv=p=0 "$1/$list/index.m3u8" | sort -n
    done
    (cd "$1" && sha256sum -- audio/* thumbnails/*)
}

cut_otherwise() { # ARG...
    exits 0 "$TRANSCODE" run "$scratch/film.mp4" -o out --profile "$here/slow.yaml" --quiet "$@"
    shape "$scratch/calm" >want
    shape out >got
    diff want got >difference || fail "not the shape of the calm run: $(sed -n 1,3p difference | paste -sd ' ')"
}

shared_otherwise() { # ARG...
    begin "$@"
    ends 0
    same_as_calm
}

interrupted() { # SIGNAL
    local all
    begin
    has_segments 3
    mapfile -t all < <(descendants "$job")
    kill -s "$1" "$job"
    ends 6
    says 'resume' stderr
    [ ! -e out/master.m3u8 ] || fail "a master playlist of an unfinished run"
    gone "${all[@]}"
    begin --resume
    ends 0
    same_as_calm
    begin --resume
    ends 0
    same_as_calm
}

# Not even a moment to clean up: the children must not outlive it.
killed() {
    local all
    begin
    has_segments 3
    mapfile -t all < <(descendants "$job")
    kill -s KILL "$job"
    ends 137
    gone "${all[@]}"
    begin --resume
    ends 0
    same_as_calm
}

loses() { # TITLE COUNT: kills such a child so many times; the run goes on
    local i pid
    begin
    for ((i = 1; i <= $2; i++)); do
        has_segments "$i"
        pid=$(named "$1" | sed -n 1p)
        [ -n "$pid" ] || fail "no process is called '$1'"
        kill -s KILL "$pid"
    done
    ends 0
    same_as_calm
}

not_twice() {
    begin
    has_segments 1
    exits 2 "$TRANSCODE" run "$scratch/film.mp4" -o out --profile "$here/slow.yaml" --quiet
    kill -s INT "$job"
    ends 6
    exits 2 "$TRANSCODE" run "$scratch/film.mp4" -o out --profile "$here/slow.yaml" --quiet
    says 'resume' stderr
}

check "calm run" film
check "one chunk" cut_otherwise --chunk 1000
check "fewer chunks" cut_otherwise --chunk 4
check "one session" shared_otherwise --sessions 1
check "three sessions" shared_otherwise --sessions 3
check "SIGINT, then --resume" interrupted INT
check "SIGTERM, then --resume" interrupted TERM
check "SIGKILL, then --resume" killed
check "a session killed" loses "transcode: session" 2
check "the worker killed" loses "transcode: agent" 1
check "the dispatcher killed" loses "transcode: dispatcher" 1
check "an output directory in use" not_twice
finish
