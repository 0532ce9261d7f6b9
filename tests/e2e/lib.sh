# Sourced by the tests of the main job: clips made by ffmpeg, `run`, and what ffmpeg and ffprobe see
# in the result.
#
# shellcheck shell=bash
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
here=$root/tests/e2e

encode() { # FFMPEG-ARG...: output options default to small and quick
    ffmpeg -nostdin -v error -y "$@" || fail "ffmpeg could not make the clip"
}

# A test card of so many seconds with a tone: 25 frames/s, GOPs of 1 s, B-frames. One that another case
# had is not made again.
clip() { # FILE SECONDS [FFMPEG-OUTPUT-ARG...]
    local kept
    kept=$scratch/clips/$(sha256sum <<<"${*:2}" | cut -c 1-16).${1##*.}
    mkdir -p "$scratch/clips"
    [ -e "$kept" ] || make_clip "$kept" "${@:2}"
    cp "$kept" "$1"
}

make_clip() { # as clip
    encode -f lavfi -i "testsrc2=size=320x180:rate=25:duration=$2" \
        -f lavfi -i "sine=frequency=440:sample_rate=48000:duration=$2" \
        -c:v libx264 -preset ultrafast -bf 2 -g 25 -pix_fmt yuv420p -c:a aac "${@:3}" "$1"
}

# The main job, which must succeed into ./out, and whose result must decode without a complaint.
run() { # INPUT [ARG...]
    local said
    rm -rf out
    [[ " $* " == *" --profile "* ]] || set -- "$@" --profile "$here/small.yaml"
    exits 0 timeout 120 "$TRANSCODE" run "$1" -o out --quiet "${@:2}"
    [ -s out/master.m3u8 ] || fail "no master playlist"
    said=$(ffmpeg -nostdin -v error -i out/master.m3u8 -map 0 -f null - 2>&1) || fail "ffmpeg cannot decode it: $said"
    [ -z "$said" ] || fail "ffmpeg complains: $said"
}

# A job that must end in this exit code, in one line that matches, and leave no master playlist.
refused() { # CODE REGEX INPUT [ARG...]
    rm -rf out
    exits "$1" timeout 120 "$TRANSCODE" run "$3" -o out --profile "$here/small.yaml" --quiet "${@:4}"
    says "$2" stderr
    equal "lines on stderr" 1 "$(grep -c . stderr)"
    [ ! -e out/master.m3u8 ] || fail "a master playlist was written"
}

probe() { # ENTRIES FILE [FFPROBE-ARG...]: values, one a line
    ffprobe -v error -show_entries "$1" -of default=nokey=1:noprint_wrappers=1 "${@:3}" "$2"
}

frames() { # FILE
    probe stream=nb_read_packets "$1" -count_packets -select_streams v:0 | sed -n 1p
}

size() { # FILE: WIDTHxHEIGHT
    probe stream=width,height "$1" -select_streams v:0 | sed -n 1,2p | paste -sd x
}

largest() { # the media playlist that the master names first
    grep -m 1 -A 1 '^#EXT-X-STREAM-INF' out/master.m3u8 | sed -n '2s,^,out/,p'
}

# Every video rendition holds exactly so many frames.
has_frames() { # COUNT
    local list n=0
    for list in out/high/index.m3u8 out/low/index.m3u8; do
        [ -e "$list" ] || continue
        equal "frames in $list" "$1" "$(frames "$list")" && n=$((n + 1))
    done
    [ $n -gt 0 ] || fail "no video rendition"
}

# Average PSNR of two pictures or videos of one size, in whole dB.
psnr() { # A B [FILTER-OF-B]
    ffmpeg -nostdin -v info -i "$1" -i "$2" -lavfi "[1:v]${3:-null}[b];[0:v][b]psnr" -f null - 2>&1 |
        sed -nE 's/.*PSNR.*average:([0-9]+|inf).*/\1/p' | sed 's/inf/99/' | tail -n 1
}
