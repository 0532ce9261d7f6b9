#!/bin/bash
# For a machine with an NVIDIA GPU: is it used, is it right, how fast is it? In under four minutes,
# and as one table.
#
#     tests/gpu/real.sh [--simulated] [DEVICE]
#
# DEVICE is cuda:0 unless given. TRANSCODE names the program, else one is built into build/. FFmpeg's
# own programs make the clips and are the witness; what needs them is skipped where they are missing,
# as is what the card cannot do. --simulated runs it on the simulated driver (tests/simgpu), which
# tests this script and says nothing about a card.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
simulated=''
[ "${1:-}" != --simulated ] || { simulated=yes; shift; }
device=${1:-cuda:0}
began=$SECONDS
scratch=$(mktemp -d "${TMPDIR:-/tmp}/transcode-gpu.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
rows=() failures=0

# --- rows of the table ---------------------------------------------------------------------------

row() { # RESULT NAME FIGURE
    rows+=("$1|$2|$3")
    [ "$1" != FAILED ] || failures=$((failures + 1))
    printf '%-8s %-34s %s\n' "$1" "$2" "$3" >&2
}

in_time() { # NAME: what does not fit into four minutes is left out, and named
    [ $((SECONDS - began)) -lt 200 ] && return
    row skipped "$1" "the time is over"
    return 1
}

print_table() {
    local line
    echo
    echo "$title"
    [ -z "$simulated" ] || echo "SIMULATED: a model's figures, not a card's"
    echo
    echo '| check | result | figure |'
    echo '|---|---|---|'
    for line in "${rows[@]}"; do
        echo "$line" | awk -F'|' '{ print "| " $2 " | " $1 " | " $3 " |" }'
    done
    echo
    echo "$((SECONDS - began)) s, $failures failed"
}

# --- set up --------------------------------------------------------------------------------------

if [ -z "${TRANSCODE:-}" ]; then
    { cmake -S "$root" -B "$root/build" -G Ninja && ninja -C "$root/build"; } >"$scratch/build" 2>&1 ||
        { tail -n 20 "$scratch/build"; exit 1; }
    TRANSCODE=$root/build/transcode
    began=$SECONDS # building is not testing
fi
driver=$(dirname "$TRANSCODE")/tests/simgpu
if [ -n "$simulated" ]; then
    [ -e "$driver/libnvidia-encode.so.1" ] || { echo "skipped: the simulated driver is not built"; exit 77; }
    export LD_LIBRARY_PATH=$driver
    size=320x180 seconds=1 speed=0.1 processes=2
else
    [ -e /dev/nvidiactl ] || { echo "skipped: there is no NVIDIA GPU here"; exit 77; }
    size=1920x1080 seconds=20 speed=4 processes='1 2 4 8'
fi
command -v jq >/dev/null || { echo "skipped: jq is not installed"; exit 77; }
cd "$scratch" || exit 1

has_ffmpeg() { # NAME
    command -v ffmpeg >/dev/null && return
    row skipped "$1" "ffmpeg is not installed"
    return 1
}

clip() { # FILE SECONDS FFMPEG-OUTPUT-ARG...
    ffmpeg -nostdin -v error -y -f lavfi -i "testsrc2=size=$size:rate=30:duration=$2" "${@:3}" "$1" 2>clip.log
}

# --- the device ----------------------------------------------------------------------------------

doctor() {
    timeout 90 "$TRANSCODE" doctor --device "$device" --speed "$speed" --json >doctor.json 2>doctor.err
    local rc=$?
    title=$(jq -r '"\(.devices[0].model // "no GPU"), driver \(.system.driver // "unknown"), FFmpeg \(.ffmpeg)"' doctor.json)
    if [ $rc != 0 ]; then
        row FAILED doctor "$(jq -r '[.system.problems[], .system.failure, (.devices[] | .failure, .selftest)] |
            map(select(. != null)) | join("; ")' doctor.json) $(cat doctor.err)"
        return 1
    fi
    row ok "doctor: pictures are right" "$(jq -r '.devices[0].selftest' doctor.json)"
    row ok "engines" "$(jq -r '.devices[0] | "\(.nvenc_engines) NVENC, \(.nvdec_engines) NVDEC"' doctor.json)"
    row ok "one process, against one core" "$(jq -r '.devices[0] |
        "encode \(.encode_fps | round) fps, decode and scale \(.decode_fps | round) fps, \(.times_cpu * 10 | round / 10) times the CPU"' doctor.json)"
    while read -r problem; do
        row note "doctor" "$problem"
    done < <(jq -r '(.system.problems + .devices[0].problems)[]' doctor.json)
}

coders() { # encoders|decoders
    row ok "$1 that open" "$(jq -r "[.devices[0].$1[] | select(.works) | \"\(.codec)\(if .bits > 8 then \" \(.bits) bit\" else \"\" end)\"] | join(\", \")" doctor.json)"
}

# --- decode matrix: NVDEC's pictures are those of FFmpeg's software decoders, to the bit ---------

pictures() { # FILE PIXEL-FORMAT [FFMPEG-INPUT-ARG...]: a line for each
    local filter=format=$2
    [ $# = 2 ] || filter=hwdownload,$filter
    ffmpeg -nostdin -v error "${@:3}" -i "$1" -an -vf "$filter" -f framemd5 - 2>decode.log | grep -v '^#'
}

decodes() { # NAME CODEC BITS FFMPEG-OUTPUT-ARG...
    local format=nv12 name="decode $1"
    in_time "$name" && has_ffmpeg "$name" || return 0
    [ "$3" = 8 ] || format=p010le
    if ! jq -e ".devices[0].decoders | any(.codec == \"$2\" and .bits == $3 and .works)" doctor.json >/dev/null; then
        row skipped "$name" "$(jq -r ".devices[0].decoders[] | select(.codec == \"$2\" and .bits == $3) | .reason" doctor.json)"
    elif ! clip clip.mkv 1 "${@:4}"; then
        row skipped "$name" "ffmpeg cannot make the clip: $(head -n 1 clip.log)"
    else
        pictures clip.mkv $format >cpu
        pictures clip.mkv $format -hwaccel cuda -hwaccel_device "${device#cuda:}" -hwaccel_output_format cuda >gpu
        if [ -s cpu ] && cmp -s cpu gpu; then
            row ok "$name" "$(wc -l <gpu) pictures, equal to the bit"
        else
            row FAILED "$name" "$(diff cpu gpu | grep -c '^<') of $(wc -l <cpu) pictures differ; $(head -n 1 decode.log)"
        fi
    fi
}

decode_matrix() {
    decodes 'H.264' h264 8 -c:v libx264 -preset fast -pix_fmt yuv420p
    decodes 'HEVC' hevc 8 -c:v libx265 -preset fast -x265-params log-level=none -pix_fmt yuv420p
    decodes 'HEVC 10 bit' hevc 10 -c:v libx265 -preset fast -x265-params log-level=none -pix_fmt yuv420p10le
    decodes 'VP9' vp9 8 -c:v libvpx-vp9 -deadline realtime -cpu-used 8 -pix_fmt yuv420p
    decodes 'AV1' av1 8 -c:v libsvtav1 -preset 10 -pix_fmt yuv420p
    decodes 'AV1 10 bit' av1 10 -c:v libsvtav1 -preset 10 -pix_fmt yuv420p10le
    decodes 'MPEG-2' mpeg2video 8 -c:v mpeg2video -q:v 4 -pix_fmt yuv420p
}

# --- the main job --------------------------------------------------------------------------------

can_encode() { # ENCODER
    jq -e ".devices[0].encoders | any(.codec == \"$1\" and .works)" doctor.json >/dev/null
}

transcode() { # DEVICE OUTPUT [OPTION...]: prints the wall time in ms
    local start
    start=$(date +%s%N)
    timeout 60 "$TRANSCODE" run clip.mkv -o "$2" --force --quiet --device "$1" "${@:3}" >run.out 2>run.err || return 1
    echo $((($(date +%s%N) - start) / 1000000))
}

psnr() { # A B
    ffmpeg -nostdin -v info -i "$1" -i "$2" -lavfi '[0:v][1:v]psnr' -f null - 2>&1 |
        sed -nE 's/.*PSNR.*average:([0-9]+|inf).*/\1/p' | sed 's/inf/99/' | tail -n 1
}

# Our own kernels: HDR becomes the same SDR on the card and on the CPU.
kernels() {
    local name='kernels: HDR to SDR, CPU and GPU' value fallback=()
    in_time "$name" && has_ffmpeg "$name" || return 0
    if ! grep -aq '[.]visible [.]entry tonemap' "$TRANSCODE"; then
        row skipped "$name" "the program was built without a CUDA compiler"
        return
    fi
    if ! can_encode h264_nvenc; then
        if ! "$TRANSCODE" run --help | grep -q allow-fallback; then
            row skipped "$name" "this GPU has no encoder"
            return
        fi
        fallback=(--allow-fallback)
    fi
    clip clip.mkv 1 -c:v libx265 -preset fast -x265-params log-level=none -pix_fmt yuv420p10le \
        -color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc
    if transcode cpu out-cpu >/dev/null && transcode "$device" out-gpu "${fallback[@]}" >/dev/null; then
        value=$(psnr "$(find out-cpu -name index.m3u8 | sort | head -n 1)" "$(find out-gpu -name index.m3u8 | sort | head -n 1)")
        row "$([ "${value:-0}" -ge 30 ] && echo ok || echo FAILED)" "$name" "PSNR ${value:-unknown} dB, both encoded"
    else
        row FAILED "$name" "$(cat run.err)"
    fi
}

ladder() { # PROFILE ENCODER
    local name="ladder $1" ms frames=$((30 * seconds))
    in_time "$name" && has_ffmpeg "$name" || return 0
    if ! can_encode "$2"; then
        row skipped "$name" "no $2: $(jq -r "[.devices[0].encoders[] | select(.codec == \"$2\") | .reason][0]" doctor.json)"
    elif ms=$(transcode "$device" "out-$1" --profile "$1"); then
        row ok "$name" "$((frames * 1000 / ms)) source fps, start and end included"
    else
        row FAILED "$name" "$(cat run.err)"
    fi
}

# --- throughput of several processes, each of which also checks its pictures ---------------------

throughput() {
    local n i
    for n in $processes; do
        in_time "$n processes" || continue
        rm -f speed.*
        for i in $(seq "$n"); do
            timeout 60 "$TRANSCODE" inspect "$device" --speed "$speed" 2>/dev/null | tail -n 1 >"speed.$i" &
        done
        wait
        if jq -es "length == $n and all(.is_usable)" speed.* >/dev/null; then
            row ok "$n processes at once" "$(jq -rs '"decode and scale \(map(.decode_fps) | add | round) fps" +
                if all(.encode_fps > 0) then ", encode \(map(.encode_fps) | add | round) fps" else "" end' speed.*)"
        else
            row FAILED "$n processes at once" "$(jq -rs 'map(.failure // .selftest) | unique | join("; ")' speed.*)"
        fi
    done
}

if doctor; then
    coders encoders
    coders decoders
    decode_matrix
    kernels
    throughput
    clip clip.mkv "$seconds" -c:v libx264 -preset ultrafast -g 60 -pix_fmt yuv420p
    ladder h264 h264_nvenc
    ladder hevc hevc_nvenc
    ladder av1 av1_nvenc
fi
print_table
[ $failures = 0 ]
