#!/bin/bash
# The main job on the cuda device, under the simulated driver (tests/simgpu): exact like on the CPU,
# without a byte of picture over the bus, and refused with the reason where the GPU cannot.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
build=$(dirname "$TRANSCODE")
driver=$build/tests/simgpu
[ -e "$driver/libnvcuvid.so.1" ] || { echo "skipped: the simulated driver is not built"; exit 77; }

simulated() { # COMMAND [ARG...]
    LD_LIBRARY_PATH=$driver SIMGPU_STATS=$PWD/stats.%p "$@"
}

counter() { # NAME: summed over the processes
    jq -s "map(.counters.$1 // 0) | add" stats.*
}

needs_kernels() {
    grep -aq '[.]visible [.]entry tonemap' "$TRANSCODE" || skip "the program was built without a CUDA compiler"
}

# Every clip in many chunkings; each source frame decoded once for three renditions.
exact() {
    DEVICE=cuda:0 simulated timeout 500 "$build/tests/test_exact" >log 2>&1 ||
        fail "$(grep -E 'ERROR|FAILED' log | head -n 3)"
    equal "bytes to the device" 0 "$(counter htod_bytes)"
    equal "bytes from the device" 0 "$(counter dtoh_bytes)"
    equal "objects left" 0 "$(jq -s '[.[].live | to_entries[].value] | add' stats.*)"
    [ "$(counter frames_encoded)" -gt "$(counter frames_decoded)" ] || fail "a frame was decoded for each rendition"
}

# The pictures are the CPU's to the byte, and each comes down once: asserted in there.
thumbnails() {
    needs_kernels
    DEVICE=cuda:0 simulated timeout 200 "$build/tests/test_thumbnails" >log 2>&1 ||
        fail "$(grep -E 'ERROR|FAILED' log | head -n 3)"
    equal "objects left" 0 "$(jq -s '[.[].live | to_entries[].value] | add' stats.*)"
    [ "$(counter dtoh_bytes)" -gt 0 ] || fail "nothing came down"
}

durations() { # DIR
    grep -h EXTINF "$1"/*/index.m3u8
}

# What a session keeps from chunk to chunk does not show in the bytes of the next one.
warm() {
    DEVICE=cuda:0 simulated timeout 200 "$build/tests/test_warm" >log 2>&1 ||
        fail "$(grep -E 'ERROR|FAILED' log | head -n 3)"
    equal "objects left" 0 "$(jq -s '[.[].live | to_entries[].value] | add' stats.*)"
}

same_timing() {
    clip in.mp4 6
    run in.mp4
    mv out cpu
    exits 0 simulated timeout 120 "$TRANSCODE" run in.mp4 -o out --quiet --json --device cuda:0 --profile "$here/small.yaml"
    says 'cuda .*h264_nvenc' stdout
    equal "durations" "$(durations cpu)" "$(durations out)"
    has_frames 150
}

# HDR becomes SDR by the same kernel on both devices.
tonemapped() { # PIXEL-FORMAT
    needs_kernels
    clip in.mp4 2 -pix_fmt "$1" -c:v libx265 -x265-params log-level=error -color_primaries bt2020 \
        -color_trc smpte2084 -colorspace bt2020nc -tag:v hvc1
    run in.mp4
    mv out cpu
    exits 0 simulated timeout 120 "$TRANSCODE" run in.mp4 -o out --quiet --device cuda:0 --profile "$here/small.yaml"
    grep -q VIDEO-RANGE=SDR out/master.m3u8 || fail "not SDR: $(grep RANGE out/master.m3u8)"
    [ "$(psnr cpu/high/index.m3u8 out/high/index.m3u8)" -ge 30 ] || fail "the two devices do not show the same picture"
}

# What cannot run there is not done elsewhere in silence: exit 5 and one line.
refuses() { # MODEL REGEX FFMPEG-OUTPUT-ARG...
    clip in.mp4 2 "${@:3}"
    SIMGPU_MODEL=$1 TRANSCODE_SESSION_ENV=SIMGPU_MODEL \
        exits 5 simulated timeout 120 "$TRANSCODE" run in.mp4 -o out --quiet --device cuda --profile "$here/small.yaml"
    says "$2" stderr
    [ ! -e out/master.m3u8 ] || fail "a master playlist was written"
}

no_driver() {
    clip in.mp4 2
    exits 5 timeout 120 "$TRANSCODE" run in.mp4 -o out --quiet --device cuda --profile "$here/small.yaml"
    says 'device cuda:0: .*--device cpu' stderr
}

check "exact however it is cut, nothing over the bus" exact
check "a chunk has its bytes whatever came before" warm
check "thumbnails" thumbnails
check "the same timing as on the CPU" same_timing
check "HDR to SDR" tonemapped yuv420p10le
check "HDR of 8 bits to SDR" tonemapped yuv420p
check "a GPU without an encoder" refuses H200 'h264_nvenc does not open on cuda:0: .*unsupported device'
check "4:2:2, which NVDEC does not decode" refuses L4 'cuda:0 cannot decode this h264 video .High 4:2:2' \
    -pix_fmt yuv422p -profile:v high422
check "no driver" no_driver
finish
