#!/bin/bash
# Programs that know nothing of ours look at what `run` has made: ffprobe and ffmpeg, the npm package
# hls-parser in strict mode (strict.js), and Chromium with hls.js (play.js). WITNESSES=required (set
# by tests/run.sh --witnesses) makes a missing one a failure instead of a skipped test.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh"
hls=$root/tests/hls
results=$scratch/results # FORMAT/: what the first case makes and the others look at

absent() { # REASON
    [ "${WITNESSES-}" != required ] || fail "$1"
    skip "$1"
}

# The locked versions, installed where the lock file lies; nothing is asked of the network when they
# are there already.
npm_packages() {
    command -v node >/dev/null || absent "node is not here"
    [ "$hls/node_modules/.package-lock.json" -nt "$hls/package-lock.json" ] && return
    command -v npm >/dev/null || absent "npm is not here"
    (cd "$hls" && npm ci --ignore-scripts) >npm.log 2>&1 ||
        absent "the npm packages cannot be installed: $(grep -m 1 . npm.log)"
}

# A film of 17 s and 29.97 frames/s with B-frames and open GOPs that fit no segment, cut into chunks
# of one segment each, so that every border is a join.
make() { # FORMAT
    encode -f lavfi -i testsrc2=size=640x360:rate=30000/1001:duration=17 \
        -f lavfi -i sine=frequency=440:sample_rate=44100:duration=17 -c:v libx264 -preset veryfast -bf 3 \
        -g 70 -x264-params open-gop=1 -pix_fmt yuv420p -c:a aac in.mp4
    run in.mp4 --chunk 4 --segments "$1" --profile "$hls/witness.yaml"
    mkdir -p "$results" && cp in.mp4 "$results/$1.mp4" && mv out "$results/$1"
}

result() { # FORMAT
    [ -d "$results/$1" ] || fail "there is no result to look at"
    cp -r "$results/$1" out
}

# Presentation times of all packets of a stream, in order, in ms.
times() { # FILE STREAM
    ffprobe -v error -select_streams "$2" -show_entries packet=pts_time -of csv=p=0 "$1" |
        tr -d , | grep . | sort -n | awk '{printf "%.0f\n", 1000 * $1}'
}

# The times of the frames are those of the source, counted from its first, in every rendition.
ffprobe_sees() { # FORMAT
    local list from
    result "$1"
    times "$results/$1.mp4" v | awk 'NR == 1 {t = $1} {print $1 - t}' >want
    for list in out/*/index.m3u8; do
        [ "$(probe stream=codec_type "$list" | sed -n 1p)" = video ] || continue
        from=$(times "$list" v | sed -n 1p)
        times "$list" v | awk -v t="$from" '{print $1 - t}' >got
        diff want got >difference || fail "$list: frame times differ: $(head -n 3 difference | paste -sd ' ')"
    done
}

# Every rendition decodes to the end without a word, and looks like the source.
ffmpeg_plays() { # FORMAT
    local list said db
    result "$1"
    for list in out/*/index.m3u8; do
        said=$(ffmpeg -nostdin -v error -i "$list" -f null - 2>&1)
        [ -z "$said" ] || fail "$list: $said"
        [ "$(probe stream=codec_type "$list" | sed -n 1p)" = video ] || continue
        db=$(psnr "$list" "$results/$1.mp4" "scale=$(size "$list" | tr x :)")
        [ "$db" -ge 28 ] || fail "$list: PSNR of only $db dB"
    done
}

strict_parses() { # FORMAT
    npm_packages
    result "$1"
    node "$hls/strict.js" out
}

# A witness that never complains is none: take a segment away, lie about a rate.
strict_complains() {
    npm_packages
    result fmp4
    local segment
    segment=$(find out -name '*.m4s' | sort | sed -n 1p)
    mv "$segment" away
    ! node "$hls/strict.js" out >said || fail "a missing segment goes unseen"
    says 'missing' said
    mv away "$segment" && cp "$segment" out/stray.m4s
    ! node "$hls/strict.js" out >said || fail "a stray file goes unseen"
    says 'no playlist names it' said
    rm out/stray.m4s && sed -i -E 's/([:,])BANDWIDTH=[0-9]+/\1BANDWIDTH=1000/' out/master.m3u8
    ! node "$hls/strict.js" out >said || fail "a wrong BANDWIDTH goes unseen"
}

chromium_plays() { # FORMAT
    npm_packages
    command -v "${CHROMIUM:-/usr/bin/chromium}" >/dev/null || absent "chromium is not here"
    result "$1"
    timeout 240 node "$hls/play.js" out
}

chromium_complains() {
    npm_packages
    command -v "${CHROMIUM:-/usr/bin/chromium}" >/dev/null || absent "chromium is not here"
    result fmp4
    find out -name '*.m4s' | sort | sed -n 2p | xargs rm
    ! timeout 240 node "$hls/play.js" out >said || fail "a missing segment goes unseen"
}

for format in fmp4 ts; do
    check "$format: made" make $format
    check "$format: ffprobe sees the frames of the source" ffprobe_sees $format
    check "$format: ffmpeg plays it" ffmpeg_plays $format
    check "$format: hls-parser reads it in strict mode" strict_parses $format
    check "$format: Chromium plays it with hls.js" chromium_plays $format
done
check "hls-parser and strict.js complain of faults" strict_complains
check "Chromium and play.js complain of faults" chromium_complains
finish
