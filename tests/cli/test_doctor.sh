#!/bin/bash
# `transcode doctor`: on the CPU, on GPUs of the simulated driver (tests/simgpu), and on those that
# are broken in each way that it should name.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
driver=$(dirname "$TRANSCODE")/tests/simgpu
[ -e "$driver/libnvidia-encode.so.1" ] || { echo "skipped: the simulated driver is not built"; exit 77; }

json() { # FILTER: true of what doctor --json said
    jq -e "$1" stdout >/dev/null || fail "not so: $1: $(head -c 3000 stdout)"
}

# EXIT-CODE [NAME=VALUE...] -- [OPTION...]: with the simulated driver, as JSON
doctor() {
    local code=$1 settings=()
    shift
    for (( ; $# > 0; )); do
        [ "$1" != -- ] || break
        settings+=("$1")
        shift
    done
    shift
    exits "$code" env LD_LIBRARY_PATH="${DRIVER:-$driver}" \
        CUDA_MPS_PIPE_DIRECTORY="$PWD/no-mps" "${settings[@]}" timeout 100 \
        "$TRANSCODE" doctor --json --speed 0 "$@"
}

problem() { # REGEX: of a device or of the system
    json "[.system.problems[]?, .devices[].problems[]] | any(test(\"$1\"))"
}

# --- without a GPU -------------------------------------------------------------------------------

cpu() {
    exits 0 "$TRANSCODE" doctor --device cpu --speed 0
    says '^cpu: usable' stdout
    says '^  self-test  8 pictures .* right' stdout
    says '^  sandbox .*self-test right' stdout
    exits 0 "$TRANSCODE" doctor --device cpu --speed 0 --json
    json '.is_usable and (.system | not) and (.devices | length == 1)'
    json '.devices[0] | .is_right and .is_right_confined and .has_encoder and .decode_fps == 0'
    json '[.devices[0].encoders[] | select(.works) | .codec] | index("libx264")'
    json '.devices[0].decoders | any(.codec == "hevc" and .works)'
    PATH=/nowhere exits 0 "$TRANSCODE" doctor --device cpu --speed 0 --redis "unix://$PWD/nobody.sock"
    says 'redis-server is not on PATH.*apt-get install' stdout
    says '^workers are not known: .*nobody.sock' stdout
}

no_driver() {
    ! ldconfig -p | grep -q 'libcuda[.]so[.]1' || skip "there is a driver here"
    exits 5 "$TRANSCODE" doctor --device cuda --speed 0
    says 'problem +there is no NVIDIA driver here' stdout
    exits 5 "$TRANSCODE" doctor --device cuda:0 --speed 0
    says 'cuda:0: not usable' stdout
    says 'failed +device cuda:0: .*libcuda' stdout
}

wrong_usage() {
    for device in gpu cuda: cuda:x cuda:-1 cuda:99; do
        exits 2 "$TRANSCODE" doctor --device "$device"
        says "--device $device: expected" stderr
    done
}

# --- GPUs that work ------------------------------------------------------------------------------

two_gpus() {
    doctor 0 SIMGPU_MODEL=L4,H200 SIMGPU_DEVICES=2 --
    json '.is_usable and (.devices | map(.device)) == ["cuda:0", "cuda:1", "cpu"]'
    json '.system | .driver == "570.133.20" and .cuda == "12.8" and .nvenc_api == "13.0"'
    json '.system | .gpus == 2 and .cuda_devices == 2 and .problems == []'
    json '.system.mps | test("^off .no control daemon")'
    json '.devices[0] | .model == "NVIDIA L4" and .compute == "8.9" and .is_usable and .has_encoder'
    json '.devices[0] | .nvenc_engines == 2 and .nvdec_engines == 4 and .memory_bytes > 22e9'
    json '.devices[0] | .uuid != null and .bus_id == "00000000:01:00.0" and (.mig == null)'
    json '[.devices[0].encoders[] | select(.works) | "\(.codec)/\(.bits)"] |
        index("h264_nvenc/8") and index("hevc_nvenc/10")'
    json '.devices[0].decoders | any(.codec == "vp9" and .bits == 10 and .works) and
        any(.codec == "h264" and .bits == 10 and (.works | not) and (.reason | length > 0))'
    json '.devices[0] | .is_right and .is_right_confined and (.selftest | test("h264_nvenc"))'
    json '.devices[1] | .model == "NVIDIA H200" and .is_usable and (.has_encoder | not)'
    json '.devices[1] | .nvenc_engines == 0 and .nvdec_engines == 7 and .mig == "off"'
    json '.devices[1].encoders | all(.works | not) and any(.reason | test("unsupported device"))'
    json '.devices[1] | (.selftest | test("libx264")) and (.problems | any(test("no encoder")))'
}

one_of_two() {
    doctor 0 SIMGPU_DEVICES=2 -- --device cuda:1
    json '(.devices | map(.device)) == ["cuda:1"] and .devices[0].bus_id == "00000000:02:00.0"'
    doctor 5 SIMGPU_DEVICES=2 -- --device cuda:2
    json '.devices[0].failure | test("device cuda:2")'
}

# An engine of 16 Mpx/s takes 0.13 s a picture: it is slow, and seen to work.
load_and_speed() {
    exits 0 env LD_LIBRARY_PATH="$driver" SIMGPU_NVENC_MPPS=16 SIMGPU_NVDEC_MPPS=16 timeout 100 \
        "$TRANSCODE" doctor --json --device cuda --speed 0.1
    json '.devices | length == 1'
    json '.devices[0] | .encode_fps > 0 and .encode_fps < 9 and .decode_fps > 0 and .decode_fps < 9'
    json '.devices[0] | .encoder_percent > .encoder_percent_before'
    json '.devices[0] | .decoder_percent > .decoder_percent_before'
    json '.devices[0] | .times_cpu > 0 and .times_cpu < 1.2'
    problem 'probably not used'
    json '.devices[0].problems | any(test("seen to rise")) | not'
    # An engine that takes no time is never busy; a load that the driver does not tell is no fault.
    exits 0 env LD_LIBRARY_PATH="$driver" SIMGPU_NVENC_MPPS=0 SIMGPU_NVDEC_MPPS=0 \
        SIMGPU_FAULT=nvmlDeviceGetDecoderUtilization@1+=3 timeout 100 \
        "$TRANSCODE" doctor --json --device cuda --speed 0.1
    problem "encoder's load was not seen to rise"
    json '.devices[0] | .decoder_percent == -1 and (.problems | any(test("decoder")) | not)'
}

# --- drivers and containers ----------------------------------------------------------------------

old_driver() {
    doctor 0 SIMGPU_NVENC_API=11.0 -- --device cuda
    problem 'too old to encode: its NVENC API is 11.0 and 1[0-9.]+ is needed; update it to [0-9.]+ or newer'
    json '.system.driver == "455.28" and (.devices[0] | .is_usable and (.has_encoder | not))'
}

libraries() { # NAME...: a driver of these alone
    DRIVER=$PWD/driver
    mkdir driver
    for name in libsimgpu.so "$@"; do ln -s "$driver/$name" driver/; done
}

no_video_capability() {
    ! ldconfig -p | grep -q libnvcuvid || skip "there is a driver here"
    libraries libcuda.so.1 libnvidia-ml.so.1
    doctor 5 NVIDIA_DRIVER_CAPABILITIES=compute,utility -- --device cuda
    problem 'libnvcuvid.so.1 is not here.*NVIDIA_DRIVER_CAPABILITIES=compute,video,utility .it is compute,utility'
    problem 'libnvidia-encode.so.1 is not here.*no encoding'
    json '.devices[0] | .model == "NVIDIA L4" and (.is_usable | not)'
    json '.devices[0].decoders | all(.reason | test("must have video"))'
}

no_nvml() {
    ! ldconfig -p | grep -q libnvidia-ml || skip "there is a driver here"
    libraries libcuda.so.1 libnvcuvid.so.1 libnvidia-encode.so.1
    doctor 0 -- --device cuda
    problem 'libnvidia-ml.so.1 is not here'
    json '.devices[0] | .is_usable and (.model == null) and .bus_id != null'
}

nvml_unknown_error() {
    doctor 0 SIMGPU_FAULT=nvmlDeviceGetHandleByIndex_v2@1+=999 -- --device cuda
    problem 'NVML: open a GPU: Unknown Error .*daemon-reload'
    doctor 0 SIMGPU_FAULT=nvmlInit_v2@1+=18 -- --device cuda
    problem 'NVML: start: Driver/library version mismatch .*reboot'
}

no_device() {
    doctor 5 SIMGPU_DEVICES=0 -- --device cuda
    problem 'CUDA_ERROR_NO_DEVICE .*CUDA_VISIBLE_DEVICES'
    json '.devices == []'
    doctor 5 SIMGPU_FAULT=cuInit@1=802 -- --device cuda
    problem 'fabricmanager'
}

mig() {
    doctor 0 SIMGPU_MODEL=H100 SIMGPU_MIG=1 -- --device cuda
    json '.devices[0].mig == "on"'
    problem 'MIG is on'
}

mps() {
    command -v redis-server >/dev/null || skip "redis-server, which has a socket, is not installed"
    mkdir mps
    redis-server --port 0 --unixsocket "$PWD/mps/control" --save '' --dir "$PWD" >/dev/null &
    for _ in $(seq 100); do [ ! -S mps/control ] || break; sleep 0.05; done
    doctor 0 CUDA_MPS_PIPE_DIRECTORY="$PWD/mps" SIMGPU_MPS=4321 -- --device cuda
    json '.system.mps | test("^on ")'
    json '.devices[0].mps_clients == 1'
    kill -KILL $!
    wait $! 2>/dev/null || true
    doctor 0 CUDA_MPS_PIPE_DIRECTORY="$PWD/mps" -- --device cuda
    json '.system.mps | test("^off .*dead")'
    problem 'MPS control daemon that is dead'
}

# --- GPUs that do not work -----------------------------------------------------------------------

broken() { # REGEX FAULT
    doctor 5 SIMGPU_FAULT="$2" -- --device cuda
    json ".devices[0] | (.is_right | not) and ([.failure, .selftest] | any(. != null and test(\"$1\")))"
}

# No call fails, but the pictures are wrong.
wrong_pictures() {
    doctor 5 SIMGPU_GARBLE=5 -- --device cuda
    json '.devices[0] | (.is_right | not) and (.selftest | test("picture 5 of 8 is wrong by"))'
}

# Right in the open, and wrong in the sandbox: a session could not use it.
wrong_when_confined() {
    doctor 5 SIMGPU_GARBLE=10 -- --device cuda
    json '.devices[0] | .is_right and (.is_right_confined | not) and (.is_usable | not)'
    json '.devices[0].confined | test("picture 2 of 8")'
}

# One of two GPUs hangs its driver; the other is found to work, and doctor comes to an end.
hung() {
    doctor 0 SIMGPU_DEVICES=2 SIMGPU_STATE="$PWD/state" SIMGPU_FAULT=cuvidCreateDecoder#1=hang -- \
        --device cuda --timeout 8
    json '.devices[0].failure == "open its decoders: no answer within 8 s"'
    json '.devices[0] | (.is_usable | not) and .model == "NVIDIA L4"'
    json '.devices[1] | .is_usable and (.failure == null)'
}

hung_driver() {
    doctor 5 SIMGPU_FAULT=nvmlInit_v2@1=hang -- --device cuda --timeout 1
    json '.system.failure == "start NVML: no answer within 1 s"'
}

crashed() { # the simulator aborts on a setting that it does not know
    doctor 5 SIMGPU_FAULT='cuInit@x=1' -- --device cuda
    json '.system.failure | test("^load the driver.s libraries: killed by signal 6")'
}

check cpu cpu
check no_driver no_driver
check wrong_usage wrong_usage
check two_gpus two_gpus
check one_of_two one_of_two
check load_and_speed load_and_speed
check old_driver old_driver
check no_video_capability no_video_capability
check no_nvml no_nvml
check nvml_unknown_error nvml_unknown_error
check no_device no_device
check mig mig
check mps mps
check kernel_fails broken 'self-test of cuda:0: .*LAUNCH_FAILED' 'cuLaunchKernel@1+=719'
check sessions_used_up broken 'out of memory|no NVENC session' 'nvEncOpenEncodeSessionEx@1+=10'
check lost broken 'device cuda:0: .*ILLEGAL_ADDRESS' lost:700
check no_decoder broken 'cannot decode this h264 video' 'cuvidCreateDecoder@1+=100'
check wrong_pictures wrong_pictures
check wrong_when_confined wrong_when_confined
check hung hung
check hung_driver hung_driver
check crashed crashed
finish
