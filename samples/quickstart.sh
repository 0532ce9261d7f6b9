#!/bin/bash
# From a fresh Debian 12 or 13 to a playable HLS ladder: packages, build, sample clip, main job.
# Everything lands in build/; run again, it does only what is missing and the job itself.
#
#     samples/quickstart.sh [INPUT]       your own video instead of the sample clip
set -euo pipefail
input=${1:+$(realpath -- "$1")}
cd "$(dirname "$0")/.."
. deploy/packages.sh

step() { printf '\n== %s\n' "$*"; }

step "packages"
packages_need build run sample

step "build"
[ -f build/build.ninja ] ||
    cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release --log-level=WARNING
ninja -C build --quiet transcode 2>/dev/null || ninja -C build transcode

if [ -z "$input" ]; then
    step "sample clip"
    input=build/quickstart/sample.mp4
    mkdir -p build/quickstart
    if [ ! -s "$input" ]; then
        # A moving test card and a tone, with B-frames: what a camera or an editor would hand over.
        ffmpeg -nostdin -v error -y \
            -f lavfi -i testsrc2=size=1280x720:rate=30:duration=10 \
            -f lavfi -i sine=frequency=440:sample_rate=48000:duration=10 \
            -c:v libx264 -preset veryfast -pix_fmt yuv420p -g 60 -c:a aac -b:a 128k \
            -movflags +faststart "$input.part.mp4"
        mv "$input.part.mp4" "$input"
    fi
    echo "$input"
fi

step "job"
out=build/quickstart/hls
rm -rf "$out"
build/transcode run "$input" -o "$out" --profile h264-fast

step "play it"
cat <<END
The result is $PWD/$out/master.m3u8:

  ffplay $out/master.m3u8
  mpv $out/master.m3u8
  cd $out && python3 -m http.server 8000      then open http://localhost:8000/master.m3u8
                                              in Safari, VLC or any page with hls.js
END
