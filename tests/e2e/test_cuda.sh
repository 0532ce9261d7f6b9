#!/bin/bash
# The main job on the cuda device, under the simulated driver (tests/simgpu): exact like on the CPU,
# without a byte of picture over the bus; refused with the reason where the GPU cannot, or, where
# that is allowed, with one crossing of the bus for each picture.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
build=$(dirname "$TRANSCODE")
driver=$build/tests/simgpu
[ -e "$driver/libnvcuvid.so.1" ] || { echo "skipped: the simulated driver is not built"; exit 77; }

export TRANSCODE_SESSION_ENV="SIMGPU_MODEL SIMGPU_NVENC_API SIMGPU_FAULT"

simulated() { # COMMAND [ARG...]
    LD_LIBRARY_PATH=$driver SIMGPU_STATS=$PWD/stats.%p "$@"
}

counter() { # NAME: summed over the processes
    jq -s "map(.counters.$1 // 0) | add" stats.*
}

needs_kernels() {
    grep -aq '[.]visible [.]entry tonemap' "$TRANSCODE" || skip "the program was built without a CUDA compiler"
}

exactness() { # [TEST]: of tests/media/test_exact
    DEVICE=cuda:0 simulated timeout 500 "$build/tests/test_exact" "$@" >log 2>&1 ||
        fail "$(grep -E 'ERROR|FAILED' log | head -n 3)"
    equal "objects left" 0 "$(jq -s '[.[].live | to_entries[].value] | add' stats.*)"
}

# Many chunkings of every clip; each source frame decoded once for three renditions.
exact() {
    exactness
    equal "bytes to the device" 0 "$(counter htod_bytes)"
    equal "bytes from the device" 0 "$(counter dtoh_bytes)"
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

# NVDEC, scaling on the GPU, encoders on the CPU: each picture of 192x108 and of 160x90 comes down
# once, for 4 clips of 150 frames at 3 chunkings, and none goes up.
exact_down() {
    FALLBACK=1 CHUNKS_STEP=5 SIMGPU_MODEL=H200 exactness 'test_*gop'
    equal "bytes to the device" 0 "$(counter htod_bytes)"
    equal "bytes from the device" $((4 * 150 * 3 * (192 * 108 + 160 * 90) * 3 / 2)) "$(counter dtoh_bytes)"
    equal "frames encoded there" 0 "$(counter frames_encoded)"
}

# The CPU decodes, the GPU scales and encodes: each picture goes up once, and none comes down.
exact_up() {
    export FALLBACK=1 SIMGPU_FAULT=cuvidGetDecoderCaps@1+=801
    CHUNKS_STEP=12 exactness test_closed_gop
    equal "bytes to the device" $((150 * 192 * 108 * 3 / 2)) "$(counter htod_bytes)"
    CHUNKS_STEP=5 exactness 'test_*gop'
    equal "bytes from the device" 0 "$(counter dtoh_bytes)"
    equal "frames decoded there" 0 "$(counter frames_decoded)"
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

# Both devices show the same picture. A portrait's renditions must not be too narrow for NVENC.
same_picture() { # MIN-DB RENDITION RUN-ARG...: of ./in
    local list=$2/index.m3u8 db
    sed 's/height: 90/height: 162/' "$here/small.yaml" >own.yaml
    run in --profile own.yaml
    mv out cpu
    exits 0 simulated timeout 120 "$TRANSCODE" run in -o out --quiet --json --device cuda --profile own.yaml "${@:3}"
    db=$(psnr "cpu/$list" "out/$list")
    [ "${db:-0}" -ge "$1" ] || fail "the two devices do not show the same picture: ${db:-?} dB"
}

fell_back() { # DECODE FILTER ENCODE: what the report in ./stdout says
    equal "route" "$1 $2 $3" "$(jq -r '.report.route | "\(.decode) \(.filter) \(.encode)"' stdout)"
    equal "chunks that fell back" "$(jq .report.chunks stdout)" "$(jq .report.chunks_fallen_back stdout)"
    jq -e '.report.notes | any(startswith("not on cuda:0 (NVIDIA "))' stdout >/dev/null || fail "no note in the report"
}

stays() { # what the report in ./stdout says
    equal "chunks that fell back" 0 "$(jq .report.chunks_fallen_back stdout)"
    equal "route" "gpu gpu gpu" "$(jq -r '.report.route | "\(.decode) \(.filter) \(.encode)"' stdout)"
}

turned() { # DEGREES
    needs_kernels
    clip flat.mp4 1
    ffmpeg -nostdin -v error -y -display_rotation "$1" -i flat.mp4 -c copy in.mp4 2>/dev/null ||
        encode -i flat.mp4 -c copy -metadata:s:v "rotate=$1" in.mp4
    mv in.mp4 in
    same_picture 30 high
    stays
}

# Margins above and to the left, which libavcodec leaves on a surface; full range.
cured() { # RENDITION FFMPEG-OUTPUT-ARG...
    needs_kernels
    clip in.mp4 1 "${@:2}"
    mv in.mp4 in
    same_picture 30 "$1"
    stays
}

interlaced() {
    clip in.mp4 1 -vf tinterlace=interleave_top,fieldorder=tff -flags +ildct+ilme -x264-params tff=1
    mv in.mp4 in
    same_picture 28 high # yadif_cuda there, bwdif here
    stays
}

odd_size() {
    encode -f lavfi -i testsrc2=size=321x181:rate=25:duration=1 -c:v libvpx-vp9 -cpu-used 8 -deadline realtime in.webm
    mv in.webm in
    same_picture 30 high
    stays
}

ten_bits() { # ENCODER: what the GPU has for it makes 10 bits
    clip in.mp4 1
    sed "s/libx264/$1/; s/preset: ultrafast/pix_fmt: yuv420p10le/" "$here/small.yaml" >own.yaml
    exits 0 simulated timeout 120 "$TRANSCODE" run in.mp4 -o out --quiet --json --device cuda --profile own.yaml
    has_frames 25
    equal "pixel format" yuv420p10le "$(probe stream=pix_fmt out/high/index.m3u8 | sort -u)"
    stays
}

av1() {
    ffmpeg -nostdin -v error -encoders >encoders
    grep -q av1_nvenc encoders ||
        skip "this FFmpeg has no av1_nvenc, which came with 6.0"
    ten_bits libsvtav1
    says av1_nvenc stdout
}

# What the GPU cannot do is done on the CPU where that is allowed, and said.
falls_back() { # MODEL DECODE FILTER ENCODE FFMPEG-OUTPUT-ARG...
    clip in.mp4 1 "${@:5}"
    mv in.mp4 in
    SIMGPU_MODEL=$1 same_picture 30 high --allow-fallback
    fell_back "$2" "$3" "$4"
}

# What is known from the plan is said by it, too.
planned() {
    clip in.mp4 1
    export SIMGPU_MODEL=H200
    exits 5 simulated timeout 60 "$TRANSCODE" plan in.mp4 --device cuda --profile "$here/small.yaml"
    says 'encode: h264_nvenc: this GPU has no encoder .*--allow-fallback' stderr
    exits 0 simulated timeout 60 "$TRANSCODE" plan in.mp4 --device cuda --allow-fallback --profile "$here/small.yaml"
    says 'decode on cuda:0, filters on cuda:0, encode on cpu .NVIDIA H200' stdout
    exits 0 simulated timeout 60 "$TRANSCODE" run in.mp4 -o out --device cuda --allow-fallback --profile "$here/small.yaml"
    says '^fallback: 1 of 1 chunks .decode gpu, filters gpu, encode cpu.: encode: h264_nvenc' stdout
}

# auto says what it took and why: on stderr, and in the report.
auto() { # REGEX DEVICE COMMAND...
    clip in.mp4 1
    exits 0 "${@:3}" timeout 120 "$TRANSCODE" run in.mp4 -o out --json --device auto --profile "$here/small.yaml"
    says "$1" stderr
    jq -r '.report.notes[]' stdout >notes
    says "$1" notes
    [[ $(jq -r .report.device stdout) == "$2 "* ]] || fail "it ran on $(jq -r .report.device stdout)"
}

# What cannot run there is not done elsewhere in silence: exit 5 and one line.
refuses() { # NAME=VALUE REGEX FFMPEG-OUTPUT-ARG...
    clip in.mp4 1 "${@:3}"
    exits 5 simulated env "$1" timeout 120 "$TRANSCODE" run in.mp4 -o out --quiet --device "${device-cuda}" \
        --profile "${profile-$here/small.yaml}"
    says "$2" stderr
    equal "lines that say so" 1 "$(grep -cE "$2" stderr)"
    [ ! -e out/master.m3u8 ] || fail "a master playlist was written"
}

too_small() {
    sed 's/height: 90/height: 40/' "$here/small.yaml" >own.yaml
    profile=own.yaml refuses SIMGPU_MODEL=L4 'rendition low: h264_nvenc does not encode 72x40, only 145x49 to'
}

no_driver() {
    clip in.mp4 1
    exits 5 timeout 120 "$TRANSCODE" run in.mp4 -o out --quiet --device cuda --profile "$here/small.yaml"
    says 'device cuda:0: .*--device cpu' stderr
}

check "exact at each chunking, nothing over the bus" exact
check "exact with encoders on the CPU, one download a picture" exact_down
check "exact with the decoder on the CPU, one upload a picture" exact_up
check "a chunk has its bytes whatever came before" warm
check "thumbnails" thumbnails
check "the same timing as on the CPU" same_timing
check "HDR to SDR" tonemapped yuv420p10le
check "HDR of 8 bits to SDR" tonemapped yuv420p
for degrees in 90 270; do check "turned by $degrees" turned $degrees; done
check "margins to be cut" cured low -x264-params crop-rect=16,6,0,0
check "full range" cured high -pix_fmt yuvj420p -color_range pc
check "interlaced" interlaced
check "an odd size" odd_size
check "10-bit HEVC" ten_bits libx265
check "AV1" av1
check "falling back: no encoder" falls_back H200 gpu gpu cpu
check "falling back: 4:2:2" falls_back L4 cpu gpu gpu -pix_fmt yuv422p
check "falling back: both" falls_back H200 cpu cpu cpu -pix_fmt yuv422p10le
check "known in the plan" planned
check "auto with a GPU" auto '.*device auto: device cuda:0 .NVIDIA L4., which decodes and encodes' cuda simulated
check "auto without an encoder" auto '.*auto: device cpu, because of device cuda:0 .NVIDIA H200.: this GPU has no encoder' cpu \
    simulated env SIMGPU_MODEL=H200
check "auto without a driver" auto '.*auto: device cpu, because of device cuda:0: ' cpu env
check "a GPU without an encoder" refuses SIMGPU_MODEL=H200 \
    'cuda:0 .NVIDIA H200.: encode: h264_nvenc: this GPU has no encoder .*--allow-fallback'
check "4:2:2, which NVDEC does not decode" refuses SIMGPU_MODEL=L4 \
    'decode: NVDEC does not decode h264 4:2:2 of 8 bits .*--allow-fallback' -pix_fmt yuv422p -profile:v high422
check "HEVC of too few lines" refuses SIMGPU_MODEL=L4 'NVDEC does not decode hevc of 320x120, only 144x144 to' \
    -vf crop=320:120 -c:v libx265 -x265-params log-level=error -tag:v hvc1
check "a rendition that is too small" too_small
check "a driver that is too old" refuses SIMGPU_NVENC_API=11.0 \
    "h264_nvenc: the driver's NVENC API is 11.0 and this program needs .*; update the driver"
device=cuda:7 check "a GPU that is not there" refuses SIMGPU_MODEL=L4 \
    'device cuda:7: there is no such GPU, the last one here is cuda:0'
check "no driver" no_driver
finish
