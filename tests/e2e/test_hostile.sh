#!/bin/bash
# `run` on what nobody should send: each file is either refused with exit 3 and a reason, or made
# into just what it holds.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# A file that names another one. The other is a pipe: whoever opens it is seen.
disguise() { # TEXT with @ for the other file
    clip other.ts 1
    mkfifo pipe.ts
    (cat other.ts >pipe.ts && touch opened) 2>/dev/null &
    printf '%b' "${1//@/$PWD/pipe.ts}" >in.mp4
    refused 3 . in.mp4
    [ ! -e opened ] || fail "the file that it names was opened"
}

protocol() { # URL with @ for a real clip
    clip other.mp4 1
    exits 3 timeout 60 "$TRANSCODE" run "${1//@/$PWD/other.mp4}" -o out --quiet
}

patch() { # FILE OFFSET HEX
    printf '%b' "$(sed -E 's/(..)/\\x\1/g' <<<"$3")" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

offsets() { # FILE BYTES-AS-PERL-REGEX: where they are, one a line
    LC_ALL=C grep -obUaP "$2" "$1" | cut -d: -f1
}

# The container says 64x64; the JPEG picture inside says 30000x30000.
huge_picture() {
    encode -f lavfi -i color=red:size=64x64:rate=25:duration=1 -c:v mjpeg in.avi
    local at
    while read -r at; do
        patch in.avi $((at + 5)) 75307530
    done < <(offsets in.avi '\xff\xc0\x00\x11\x08')
    refused 3 'max_pixels|dimension|picture|decode' in.avi
}

huge_container() {
    clip in.mkv 1
    refused 3 'max_pixels' in.mkv --limit max_pixels=10000
}

# A header may claim 27 hours: a hint, no more. The result is what is there.
endless_claim() {
    clip in.mp4 2
    local at
    while read -r at; do
        # Version 0: the box's name, flags, two times and the scale; then the duration.
        patch in.mp4 $((at + 20)) 7fffffff
    done < <(offsets in.mp4 'm[vd]hd')
    run in.mp4 --allow-truncated
    has_frames 50
}

# Three frames that lie 40,000 s apart are a real length.
endless() {
    encode -f lavfi -i testsrc2=size=320x180:rate=25:duration=0.12 -vf 'settb=1/1000,setpts=N*40000000' \
        -fps_mode passthrough -enc_time_base 1:1000 -c:v libx264 -preset ultrafast in.mkv
    refused 3 max_duration_s in.mkv --limit max_duration_s=3600
}

cut_at() { # FILE PERCENT
    truncate -s $(($(stat -c %s "$1") * $2 / 100)) "$1"
}

truncated() { # EXTENSION FFMPEG-ARG...
    local n
    clip "in.$1" 6 "${@:2}"
    cut_at "in.$1" 60
    refused 3 'truncated|ends early|cut' "in.$1"
    says 'allow-truncated' stderr
    exits 0 timeout 120 "$TRANSCODE" run "in.$1" -o out --profile "$here/small.yaml" --allow-truncated
    cat stdout stderr >said && says 'truncated|ends early|cut' said
    n=$(frames out/high/index.m3u8)
    [ "$n" -ge 50 ] && [ "$n" -lt 150 ] || fail "$n of 150 frames from 60 % of the file"
    equal "frames in the other rendition" "$n" "$(frames out/low/index.m3u8)"
}

headless() {
    clip in.mp4 3
    cut_at in.mp4 60
    refused 3 . in.mp4
}

bytes() { # COMMAND that prints them
    "$@" >in.mp4
    refused 3 . in.mp4
}

noise() {
    LC_ALL=C awk 'BEGIN {srand(7); for (i = 0; i < 65536; i++) printf "%c", int(256 * rand())}'
}

wrong_extension() { # NAME
    clip in.mp4 2
    mv -- in.mp4 "$1"
    run "./$1"
    has_frames 50
}

short_video() { # FRAMES
    encode -f lavfi -i testsrc2=size=320x180:rate=25 -frames:v "$1" -c:v libx264 -preset ultrafast in.mp4
    run in.mp4
    has_frames "$1"
}

cover_art() {
    encode -f lavfi -i color=red:size=300x300 -frames:v 1 cover.jpg
    encode -f lavfi -i sine=duration=3 -i cover.jpg -map 0 -map 1 -c:a libmp3lame -c:v copy \
        -disposition:v attached_pic in.mp3
    run in.mp3
    ! grep -q RESOLUTION out/master.m3u8 || fail "the cover became video"
}

only_cover_art() {
    encode -f lavfi -i color=red:size=300x300 -frames:v 1 cover.jpg
    encode -i cover.jpg -c copy -disposition:v attached_pic in.mp4
    refused 3 'neither|no (video|audio)|nothing' in.mp4
}

only_subtitles() {
    printf '1\n00:00:00,000 --> 00:00:02,000\nHello\n' >in.srt
    encode -i in.srt -c:s srt in.mkv
    refused 3 'neither|no (video|audio)|nothing' in.mkv
}

hdr() {
    encode -f lavfi -i testsrc2=size=320x180:rate=25:duration=1 -pix_fmt yuv420p10le -c:v libx265 \
        -preset ultrafast -x265-params log-level=error:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc in.mp4
    run in.mp4
    says 'VIDEO-RANGE=SDR' out/master.m3u8
    rm -r out
    run in.mp4 --allow-hdr-as-is
    says 'VIDEO-RANGE=PQ' out/master.m3u8
}

over_limit() { # NAME VALUE
    clip in.mp4 3
    refused 3 "$1" in.mp4 --limit "$1=$2"
}

unknown_limit() {
    clip in.mp4 1
    refused 2 max_pixels in.mp4 --limit max_wishes=3
}

check "playlist in disguise" disguise '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n@\n#EXT-X-ENDLIST\n'
check "relative playlist in disguise" disguise '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\npipe.ts\n#EXT-X-ENDLIST\n'
check "concat script in disguise" disguise 'ffconcat version 1.0\nfile pipe.ts\n'
check "DASH manifest in disguise" disguise '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period><AdaptationSet><Representation><BaseURL>@</BaseURL></Representation></AdaptationSet></Period></MPD>'
check "session description in disguise" disguise 'v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n'
check "protocol concat:" protocol 'concat:@|@'
check "protocol subfile:" protocol 'subfile,,start,0,end,0,,:@'
check "huge picture in a small container" huge_picture
check "huge dimensions" huge_container
check "endless duration, only claimed" endless_claim
check "endless duration" endless
check "truncated mp4" truncated mp4 -movflags +faststart
check "truncated mkv" truncated mkv
check "mp4 without its index" headless
check "zero bytes" bytes true
check "one byte" bytes printf x
check "random bytes" bytes noise
check "zeros" bytes head -c 100000 /dev/zero
check "wrong extension" wrong_extension in.avi
check "no extension" wrong_extension clip
check "a name like an option" wrong_extension -x.txt
check "1-frame video" short_video 1
check "3-frame video" short_video 3
check "cover art beside sound" cover_art
check "cover art only" only_cover_art
check "subtitles only" only_subtitles
check "HDR" hdr
check "limit max_streams" over_limit max_streams 1
check "limit max_frames" over_limit max_frames 20
check "limit max_duration_s" over_limit max_duration_s 1
check "limit max_output_bytes" over_limit max_output_bytes 5000
check "unknown limit" unknown_limit
finish
