#!/bin/bash
# tests/gpu/real.sh, tried on the simulated driver: the script for a real card must not break while
# there is none.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
[ -e "$(dirname "$TRANSCODE")/tests/simgpu/libnvidia-encode.so.1" ] ||
    { echo "skipped: the simulated driver is not built"; exit 77; }

real() { # EXIT-CODE [NAME=VALUE...]
    exits "$1" env TRANSCODE="$TRANSCODE" "${@:2}" timeout 240 "$root/tests/gpu/real.sh" --simulated
    says '^SIMULATED' stdout
}

row() { # NAME RESULT FIGURE
    says "^\| $1 \| $2 \| .*$3" stdout
}

works() {
    command -v ffmpeg >/dev/null || skip "ffmpeg is not installed"
    real 0
    says '^NVIDIA L4, driver [0-9.]+, FFmpeg ' stdout
    row engines ok '2 NVENC, 4 NVDEC'
    row 'decode H.264' ok '30 pictures, equal to the bit'
    row 'decode HEVC 10 bit' ok '30 pictures, equal to the bit'
    row 'decode AV1' skipped 'does not decode'
    row '2 processes at once' ok 'decode and scale [0-9]+ fps, encode [0-9]+ fps'
    row 'ladder h264' ok '[0-9]+ source fps'
    row 'ladder hevc' ok '[0-9]+ source fps'
    says ' s, 0 failed$' stdout
}

# Right in the doctor's eyes, and wrong after some hundred pictures.
sees_wrong_pictures() {
    command -v ffmpeg >/dev/null || skip "ffmpeg is not installed"
    real 1 SIMGPU_GARBLE=28 SIMGPU_MODEL=H200
    row 'decode H.264' FAILED '3 of 30 pictures differ'
    row 'ladder h264' skipped 'unsupported device'
}

sees_a_dead_card() {
    real 1 SIMGPU_FAULT=dead:999
    row doctor FAILED 'CUDA_ERROR_UNKNOWN'
}

check works works
check sees_wrong_pictures sees_wrong_pictures
check sees_a_dead_card sees_a_dead_card
finish
