#!/bin/bash
# Sound stays where it was against the picture: pulses in the sound and the first frame's time, in the
# source and in what a player finds from the master playlist, to within 1 ms. The sound starts late and
# ends early, a second track in another codec runs from the start.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
CLIP=$(dirname "$TRANSCODE")/tests/clip
[ -x "$CLIP" ] || { echo "skipped: the clip maker is not built"; exit 77; }

# Times of the pulses of a sound track, less that of the first frame: seconds, one a line.
pulses() { # FILE TRACK
    local first
    first=$("$CLIP" read "$1" 2>>log | awk 'NR == 1 {print $2}')
    "$CLIP" audio "$1" "$2" 2>>log | awk -v "first=$first" '/^pulse/ {printf "%.6f\n", $3 - first}'
}

in_sync() { # EXTENSION SEGMENTS
    local track
    "$CLIP" make "in.$1" --frames 150 --b-frames 2 --audio codec=aac,start=0.3,end=5.5 \
        --audio codec=ac3,language=deu 2>>log || fail "the clip could not be made: $(tail -n 1 log)"
    exits 0 "$TRANSCODE" run "in.$1" -o out --quiet --profile "$here/small.yaml" --segments "$2" --chunk 2
    for track in 0 1; do
        pulses "in.$1" "$track" >there
        pulses out/master.m3u8 "$track" >here
        equal "pulses of track $track" 6 "$(grep -c . here)"
        paste there here | awk '{d = $1 - $2; if (d > 0.001 || d < -0.001) exit 1}' ||
            fail "track $track: in the source at $(paste -sd ' ' there), made at $(paste -sd ' ' here)"
    done
}

for container in mp4 ts mkv; do
    for segments in fmp4 ts; do check "$container to $segments" in_sync "$container" "$segments"; done
done
finish
