#!/bin/bash
# `run` on what people really have: shapes, containers, tracks and offsets that are not the plain
# case.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

plain() {
    clip in.mp4 7
    run in.mp4 --chunk 2
    has_frames 175
    equal "size" 320x180 "$(size out/high/index.m3u8)"
    equal "smaller size" 160x90 "$(size out/low/index.m3u8)"
    [ "$(psnr out/high/index.m3u8 in.mp4)" -ge 28 ] || fail "the pictures are not those of the source"
}

container() { # EXTENSION FFMPEG-ARG...
    clip "in.$1" 3 "${@:2}"
    run "in.$1"
    has_frames "$(frames "in.$1")"
}

odd_size() {
    encode -f lavfi -i testsrc2=size=161x121:rate=25:duration=2 -c:v libvpx-vp9 -cpu-used 8 -deadline realtime in.webm
    run in.webm
    has_frames 50
    local width height
    IFS=x read -r width height < <(size "$(largest)")
    [ $((width % 2 + height % 2)) -eq 0 ] || fail "odd output ${width}x$height"
    # The shape is kept to within the two pixels that evenness may take.
    [ $((width * 121 - height * 161)) -le 322 ] && [ $((height * 161 - width * 121)) -le 322 ] ||
        fail "161x121 became ${width}x$height"
}

# What a player shows of the source is what ours must hold: ffmpeg turns it by itself.
rotation() { # DEGREES
    encode -f lavfi -i testsrc2=size=320x180:rate=25:duration=2 -c:v libx264 -preset ultrafast flat.mp4
    ffmpeg -nostdin -v error -y -display_rotation "$1" -i flat.mp4 -c copy in.mp4 2>/dev/null ||
        encode -i flat.mp4 -c copy -metadata:s:v "rotate=$1" in.mp4
    run in.mp4
    has_frames 50
    local size
    size=$(size out/high/index.m3u8)
    [ "$1" -eq 180 ] && equal "size" 320x180 "$size"
    [ "$1" -eq 180 ] || [ "${size%x*}" -lt "${size#*x}" ] || fail "a portrait video became $size"
    [ "$(psnr out/high/index.m3u8 in.mp4 "scale=${size/x/:}")" -ge 25 ] || fail "turned the wrong way"
    equal "rotation left over" "" "$(probe stream_side_data=rotation out/high/index.m3u8 | grep -v '^0$' | sort -u)"
}

# 4:3 in non-square pixels: square ones, and still 4:3.
aspect() {
    encode -f lavfi -i testsrc2=size=180x144:rate=25:duration=2 -vf setsar=16/15 -c:v libx264 -preset ultrafast in.mp4
    run in.mp4
    local width height sar
    IFS=x read -r width height < <(size "$(largest)")
    [ $((300 * width / height)) -ge 392 ] && [ $((300 * width / height)) -le 408 ] || fail "4:3 became ${width}x$height"
    sar=$(probe stream=sample_aspect_ratio "$(largest)" | sed -n 1p)
    [[ $sar == 1:1 || $sar == N/A ]] || fail "pixels are $sar"
}

no_upscale() {
    clip in.mp4 1 -vf scale=128:72
    run in.mp4
    local list height
    for list in out/*/index.m3u8; do
        height=$(size "$list")
        [ -z "$height" ] || [ "${height#*x}" -le 72 ] || fail "72 lines became $height"
    done
}

audio_only() {
    encode -f lavfi -i sine=duration=5 -c:a libmp3lame in.mp3
    run in.mp3
    ! grep -q RESOLUTION out/master.m3u8 || fail "video in an audio ladder"
    says 'CODECS="mp4a.40.2"' out/master.m3u8
    equal "codec" aac "$(probe stream=codec_name out/master.m3u8 | sort -u)"
}

no_audio() {
    clip in.mp4 3 -an
    run in.mp4
    has_frames 75
    ! grep -q 'TYPE=AUDIO' out/master.m3u8 || fail "an audio group without audio"
    ! grep -q mp4a out/master.m3u8 || fail "CODECS names audio"
}

languages() {
    encode -f lavfi -i testsrc2=size=320x180:rate=25:duration=3 -f lavfi -i sine=f=300:sample_rate=48000:duration=3 \
        -f lavfi -i sine=f=600:sample_rate=48000:duration=3 -map 0 -map 1 -map 2 -c:v libx264 -preset ultrafast -c:a aac \
        -metadata:s:a:0 language=eng -metadata:s:a:1 language=deu -metadata:s:a:1 title=Kommentar \
        -disposition:a:0 default -disposition:a:1 0 in.mkv
    run in.mkv
    equal "audio renditions" 2 "$(grep -c 'EXT-X-MEDIA:TYPE=AUDIO' out/master.m3u8)"
    equal "audio groups" 1 "$(grep -oE 'GROUP-ID="[^"]*"' out/master.m3u8 | sort -u | grep -c .)"
    equal "defaults" 1 "$(grep -c 'DEFAULT=YES' out/master.m3u8)"
    grep 'DEFAULT=YES' out/master.m3u8 >default && says 'LANGUAGE="en' default
    grep 'LANGUAGE="de' out/master.m3u8 >german && says 'NAME="Kommentar' german
    # Which sound is in which: the second is an octave higher, so it crosses zero about twice as often.
    local list rate
    while read -r list; do
        rate=$(ffmpeg -nostdin -i "out/$list" -af astats=measure_perchannel=Zero_crossings_rate:measure_overall=none \
            -f null - 2>&1 | sed -nE 's/.*Zero crossings rate: ([0-9.]+).*/\1/p' | sed -n 1p)
        awk -v f="$rate" -v second="$(grep -cF "$list" german)" \
            'BEGIN {f *= 24000; exit !(second ? f > 520 && f < 750 : f > 250 && f < 420)}' ||
            fail "$list holds the wrong track (rate $rate)"
    done < <(grep 'TYPE=AUDIO' out/master.m3u8 | sed -E 's/.*URI="([^"]*)".*/\1/')
}

# A flash and a beep at the same time: their distance in a file, in ms, as a player would see it.
distance() { # FILE
    ffmpeg -nostdin -i "$1" -vf blackdetect=d=0.1:pic_th=0.9 -af silencedetect=n=-40dB:d=0.1 -f null - 2>&1 |
        tr '\r' '\n' | sed -nE 's/.*black_end:([0-9.]+).*/v \1/p; s/.*silence_end: ([0-9.]+).*/a \1/p' |
        awk '!seen[$1]++ {t[$1] = $2} END {if (!("v" in t) || !("a" in t)) exit 1; printf "%.0f\n", 1000 * (t["a"] - t["v"])}'
}

# One track begins later than the other; what belongs together stays together.
late() { # VIDEO-DELAY AUDIO-DELAY
    encode -itsoffset "$1" -f lavfi -i "color=black:size=320x180:rate=25:duration=6,drawbox=color=white:t=fill:enable='gte(t,2)'" \
        -itsoffset "$2" -f lavfi -i "sine=frequency=1000:sample_rate=48000:duration=6,volume='gte(t,2)':eval=frame" \
        -map 0 -map 1 -c:v libx264 -preset ultrafast -g 25 -c:a aac in.mkv
    run in.mkv --chunk 2
    has_frames 150
    local before after
    before=$(distance in.mkv) || fail "no flash or beep in the source"
    after=$(distance out/master.m3u8) || fail "no flash or beep in the result"
    [ $((after - before)) -ge -3 ] && [ $((after - before)) -le 3 ] ||
        fail "sound came $before ms after the picture, now $after ms"
}

ends_early() {
    encode -f lavfi -i testsrc2=size=320x180:rate=25:duration=6 -f lavfi -i sine=duration=2.5 \
        -c:v libx264 -preset ultrafast -c:a aac in.mp4
    run in.mp4
    has_frames 150
}

check "plain clip" plain
check "mov" container mov
check "mkv" container mkv
check "mpeg-ts" container ts
check "mpeg-ps" container mpg -c:v mpeg2video -c:a mp2
check "avi" container avi -c:v mpeg4 -c:a libmp3lame
check "flv" container flv
check "webm" container webm -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus
check "odd size" odd_size
check "rotation 90" rotation 90
check "rotation 180" rotation 180
check "rotation 270" rotation 270
check "pixels that are not square" aspect
check "never upscaled" no_upscale
check "audio only" audio_only
check "no audio" no_audio
check "audio tracks with languages" languages
check "late audio" late 0 1.5
check "late video" late 1.5 0
check "audio ends early" ends_early
finish
