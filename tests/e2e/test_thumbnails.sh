#!/bin/bash
# Thumbnails of the main job: the same files however it is cut and packed, and a WebVTT track that a
# parser of its own reads and whose every picture is there.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

profile() { # small.yaml with thumbnails
    cat "$here/small.yaml"
    echo "thumbnails: {every: 1.5, height: 90}"
}

# A cue for each picture, one after another without a hole, over the whole film.
valid_track() { # SECONDS CUES
    local vtt=out/thumbnails/thumbnails.vtt from to name end=0.000000 n=0
    equal "first line" WEBVTT "$(sed -n 1p "$vtt")"
    if grep -qvE '^(WEBVTT||[0-9]{2,}:[0-5][0-9]:[0-5][0-9]\.[0-9]{3} --> [0-9]{2,}:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}|[0-9]{6}-[0-9a-f]{16}\.jpg)$' "$vtt"; then
        fail "not of WebVTT: $(cat "$vtt")"
    fi
    ffprobe -v error -show_entries packet=pts_time,duration_time -of csv=p=0 "$vtt" >cues || fail "ffprobe cannot read $vtt"
    while IFS=, read -r from to; do
        equal "start of cue $n" "$end" "$from"
        end=$(awk "BEGIN { printf \"%.6f\", $from + $to }")
        n=$((n + 1))
    done <cues
    equal cues "$2" "$n"
    equal end "$1" "$end"
    grep '[.]jpg$' "$vtt" >named
    (cd out/thumbnails && ls -- *.jpg) >there
    diff named there || fail "the track does not name the files that are there"
    while read -r name; do
        equal "size of $name" 160x90 "$(size "out/thumbnails/$name")"
        equal "hash in the name" "$(sha256sum "out/thumbnails/$name" | cut -c 1-16)" "$(sed -E 's/.*-(.*)\..*/\1/' <<<"$name")"
    done <named
}

whatever_the_cut() {
    profile >p.yaml
    clip in.mp4 8
    run in.mp4 --profile ./p.yaml --chunk 1000
    valid_track 8.000000 6
    mv out/thumbnails whole
    run in.mp4 --profile ./p.yaml --chunk 2 --sessions 2
    diff -r whole out/thumbnails || fail "chunks are to be seen in the thumbnails"
    run in.mp4 --profile ./p.yaml --chunk 4 --segments ts
    diff -r whole out/thumbnails || fail "MPEG-TS has other thumbnails"
}

reported() {
    profile >p.yaml
    clip in.mp4 3
    exits 0 timeout 120 "$TRANSCODE" run in.mp4 -o out --profile ./p.yaml
    says '^2 thumbnails: .*/out/thumbnails/thumbnails.vtt$' stdout
    exits 0 "$TRANSCODE" plan in.mp4 --profile ./p.yaml
    says '^thumbnails of 160x90, every 1.5 s$' stdout
}

none() {
    profile >p.yaml
    clip in.mp4 3
    run in.mp4
    [ ! -e out/thumbnails ] || fail "thumbnails nobody asked for"
    encode -i in.mp4 -vn -c copy sound.m4a
    run sound.m4a --profile ./p.yaml
    [ ! -e out/thumbnails ] || fail "thumbnails of a sound"
}

faults() {
    profile | sed 's/every: 1.5/every: soon/; s/height: 90/height: 9000/' >p.yaml
    clip in.mp4 1
    exits 2 "$TRANSCODE" run in.mp4 -o out --profile ./p.yaml
    says 'p.yaml:[0-9]+:21: thumbnails.every: expected' stderr
    says 'p.yaml:[0-9]+:[0-9]+: thumbnails.height: expected' stderr
}

check "the same files however the film is cut" whatever_the_cut
check "told of in the report and in the plan" reported
check "none without a picture, none by default" none
check "faults of the profile" faults
finish
