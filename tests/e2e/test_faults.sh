#!/bin/bash
# What a GPU can suffer, one row each, through `run` under the simulated driver (tests/simgpu): the
# exit code, one line that names the cause, how many attempts it cost, and that the output shows
# nothing of it. Then GPUs that keep failing: quarantined, shown, tested again.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
build=$(dirname "$TRANSCODE")
driver=$build/tests/simgpu
[ -e "$driver/libnvcuvid.so.1" ] || { echo "skipped: the simulated driver is not built"; exit 77; }
export TRANSCODE_SESSION_ENV="SIMGPU_STATE SIMGPU_FAULT SIMGPU_DEVICES SIMGPU_MAX_SESSIONS \
SIMGPU_MEM_MIB SIMGPU_NVENC_API SIMGPU_NVENC_ENGINES SIMGPU_NVENC_MPPS"
AT_ONCE=6 # rows; most of their time is back-off

cat >"$scratch/tiny.yaml" <<'END'
name: tiny
encoder: libx264
preset: ultrafast
gop: 1
segment: 1
renditions:
  - {name: high, height: 180, bitrate: 300k}
  - {name: low, height: 90, bitrate: 100k}
END
ffmpeg -nostdin -v error -f lavfi -i testsrc2=size=320x180:rate=25:duration=2 -c:v libx264 \
    -preset ultrafast -bf 2 -g 25 -pix_fmt yuv420p "$scratch/in.mp4" || exit 1

# One session, so that the calls that a rule counts come in one order.
job() { # FAULT [NAME=VALUE...]: `run` in the current directory
    env LD_LIBRARY_PATH="${LIBRARIES:-$driver}" SIMGPU_STATE="$PWD/state" SIMGPU_FAULT="$1" "${@:2}" \
        timeout 120 "$TRANSCODE" run "$scratch/in.mp4" -o out --device cuda:0 --sessions 1 \
        --profile "$scratch/tiny.yaml" --limit "max_silence_s=${SILENCE:-60}" >stdout 2>stderr
}

# ---- the table: rows run some at a time, then each is judged ----

names=() wants=() failures=() texts=()

row() { # NAME EXIT FAILED-ATTEMPTS REGEX FAULT [NAME=VALUE...]
    local dir=$scratch/rows/${#names[@]}
    names+=("$1") wants+=("$2") failures+=("$3") texts+=("$4")
    mkdir -p "$dir"
    while [ "$(jobs -rp | wc -l)" -ge $AT_ONCE ]; do wait -n; done
    (cd "$dir" && job "${@:5}"; echo $? >rc) </dev/null &
}

failed_attempts() {
    grep -c 'attempt [0-9]* failed' stderr || true
}

is_calm() { # DIR: every file of it is the calm run's
    diff -r "$scratch/rows/0/out" "$1" || fail "the output differs from the calm run's"
}

judge() { # INDEX
    local dir=$scratch/rows/$1
    cp "$dir/stderr" .
    equal "exit code ($(tail -n 1 stderr))" "${wants[$1]}" "$(cat "$dir/rc")"
    says "${texts[$1]}" stderr
    [ "${failures[$1]}" = - ] || equal "failed attempts" "${failures[$1]}" "$(failed_attempts)"
    if [ "${wants[$1]}" = 0 ]; then
        is_calm "$dir/out"
    else
        equal "last words" 1 "$(grep -c '^transcode: run: ' stderr)"
        [ ! -e "$dir/out/master.m3u8" ] || fail "a master playlist was written"
    fi
}

mkdir -p "$scratch/no-nvcuvid" "$scratch/no-nvenc"
for library in "$driver"/lib*; do
    [[ $library == *nvcuvid* ]] || ln -s "$library" "$scratch/no-nvcuvid/"
    [[ $library == *nvidia-encode* ]] || ln -s "$library" "$scratch/no-nvenc/"
done
# What a session holds: 2 encoders and more than half of this. Were it not freed, a retry would fail.
one_session=(SIMGPU_MAX_SESSIONS=2 SIMGPU_MEM_MIB=1024)

row "calm" 0 0 . '' "${one_session[@]}"
# What may be gone when tried again, in a new session on a GPU that passed its test.
well='cuda:0 passed its test'
row "the context breaks in a kernel" 0 1 'cuda:0 is lost .CUDA_ERROR_ILLEGAL_ADDRESS' 'cuLaunchKernel#20=lost:700'
row "the context breaks in decoding" 0 1 'cuda:0 is lost .CUDA_ERROR_ILLEGAL_ADDRESS' 'cuvidDecodePicture#12=lost:700'
row "the GPU falls off the bus" 0 1 'cuda:0 is lost .CUDA_ERROR_UNKNOWN' 'nvEncEncodePicture#9=dead:999'
row "no decoder is created" 0 1 'cuda:0 cannot decode .*CUDA_ERROR_NO_DEVICE' 'cuvidCreateDecoder#1=100'
row "a decode call fails" 0 1 'cuda:0: decode video: .*failed to decode picture' 'cuvidDecodePicture#9=1'
row "a decoded picture is not mapped" 0 1 'cuda:0: decode video: .*CUDA_ERROR_MAP_FAILED' 'cuvidMapVideoFrame64#9=205'
row "an encode call fails" 0 1 'h264_nvenc on cuda:0: EncodePicture failed.*invalid param' 'nvEncEncodePicture#15=8'
row "a bitstream is not locked" 0 1 'h264_nvenc on cuda:0: .*locking bitstream.*generic error' 'nvEncLockBitstream#15=20'
SILENCE=10 row "the encoder hangs" 0 1 'made no progress for max_silence_s=10' 'nvEncLockBitstream#15=hang' "${one_session[@]}"
SILENCE=10 row "the decoder hangs" 0 1 'made no progress for max_silence_s=10' 'cuvidMapVideoFrame64#9=hang' "${one_session[@]}"
# Capacity: the GPU is well, and the session goes on.
row "out of encoder sessions (10)" 0 1 'sessions or memory are used up: run fewer' 'nvEncOpenEncodeSessionEx#2=10'
row "out of encoder sessions (21)" 0 1 'sessions are used up: run fewer' 'nvEncOpenEncodeSessionEx#2=21'
row "out of memory for a surface" 0 1 'CUDA_ERROR_OUT_OF_MEMORY' 'cuMemAlloc_v2#3=2'
row "out of memory for a decoder" 0 1 'memory is used up: run fewer' 'cuvidCreateDecoder#1=2'
row "out of encoder sessions for good" 4 - 'no NVENC session is left.*run fewer' 'nvEncOpenEncodeSessionEx@1+=10'
# What stays so.
row "every kernel breaks the context" 5 1 'transcode: .*cuda:0 .*fails its test' 'cuLaunchKernel#20+=lost:700'
row "every encode call fails" 5 1 'transcode: .*cuda:0 fails its test.*EncodePicture' 'nvEncEncodePicture@1+=20'
row "kernels too new for the driver" 5 1 'CUDA_ERROR_UNSUPPORTED_PTX_VERSION' 'cuModuleLoadData@1+=222'
row "no context is to be had" 5 0 'transcode: .*cuda:0: .*CUDA_ERROR_UNKNOWN' 'lost:999'
LIBRARIES=$scratch/no-nvcuvid row "no libnvcuvid" 5 - 'nvcuvid' ''
LIBRARIES=$scratch/no-nvenc row "no libnvidia-encode" 5 - 'libnvidia-encode' ''
row "a driver that is too old" 5 - 'nvenc API.*11[.]0' '' SIMGPU_NVENC_API=11.0
wait

for i in "${!names[@]}"; do check "${names[$i]}" judge "$i"; done

# The session is tested before it gets work after trouble of the GPU, not after a lack of room.
tested() {
    local i
    for i in 1 5 9; do says "$well" "$scratch/rows/$i/stderr"; done
    for i in 11 13; do ! grep -q "$well" "$scratch/rows/$i/stderr" || fail "${names[$i]}: the GPU was tested"; done
}
check "tested after trouble" tested

# ---- sessions that are killed or stand still: what they held is free for the retry ----

below() { # PID: its children and theirs
    local pid
    for pid in $(pgrep -P "$1"); do echo "$pid" && below "$pid"; done
}

session_at_work() { # PID of the job
    local pid
    for pid in $(below "$1"); do
        ! tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q 'session 0 cuda:0 run/video' || echo "$pid"
    done
}

signalled() { # SIGNAL REGEX
    local job session=
    job '' "${one_session[@]}" SIMGPU_NVENC_ENGINES=1 SIMGPU_NVENC_MPPS=1 &
    job=$!
    for _ in $(seq 300); do
        session=$(session_at_work "$job")
        [ -z "$session" ] || break
        sleep 0.05
    done
    sleep 0.3 # until its encoders are open
    kill -"$1" "$session"
    wait "$job" || fail "$(tail -n 1 stderr)"
    says "$2" stderr
    equal "failed attempts" 1 "$(failed_attempts)"
    is_calm out
}
check "a session is killed at work" signalled KILL 'ended: killed by signal 9'
SILENCE=10 check "a session stands still" signalled STOP 'made no progress for max_silence_s=10'

# ---- GPUs that keep failing, in a farm ----

until_true() { # SECONDS COMMAND [ARG...]
    local end=$((SECONDS + $1))
    while ! "${@:2}"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

farm() { # DEVICES FAULT: a server, a dispatcher, a worker with a session a device, and one job
    command -v redis-server >/dev/null || skip "redis-server is not installed"
    redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --appendonly yes \
        --maxmemory-policy noeviction --dir "$PWD" >redis.log 2>&1 &
    until_true 20 test -S redis.sock || fail "redis-server does not start"
    export TRANSCODE_REDIS="unix://$PWD/redis.sock"
    "$TRANSCODE" dispatcher 2>dispatcher.log &
    env LD_LIBRARY_PATH="$driver" SIMGPU_STATE="$PWD/state" SIMGPU_DEVICES=2 SIMGPU_FAULT="$2" \
        "$TRANSCODE" worker --device "$1" --sessions 1 --quarantine 4 2>worker.log &
    worker=$!
    until_true 10 test -e worker.log
    for device in ${1//,/ }; do
        until_true 30 grep -q "sessions work on $device" worker.log || fail "no session on $device"
    done
    "$TRANSCODE" submit "$scratch/in.mp4" -o "$PWD/out" --profile "$scratch/tiny.yaml" --id job >id
}

is_state() { # DEVICE STATE: says the queue of the worker
    "$TRANSCODE" queue --json | jq -e --arg d "$1" --arg s "$2" \
        '.workers[0].devices[] | select(.device == $d and .state == $s)' >/dev/null
}

is_done() {
    "$TRANSCODE" status job --json | jq -e '.state == "done"' >/dev/null
}

finishes() {
    until_true 60 is_done ||
        fail "$("$TRANSCODE" status job | tail -n 3)"
    is_calm out
}

# The task and two tests break on it: only the third test, after the quarantine, passes.
three_times() { # DEVICE
    echo "$1:cuLaunchKernel#1=lost:700,$1:cuLaunchKernel#2=lost:700,$1:cuLaunchKernel#3=lost:700"
}

one_of_two() {
    farm cuda:0,cuda:1 "$(three_times 1)"
    until_true 60 is_state cuda:1 quarantined || fail "it is not shown: $(tail -n 3 worker.log)"
    is_state cuda:0 working || fail "the other GPU is not left alone"
    "$TRANSCODE" queue >queue.txt
    says 'cuda:1 +quarantined +.*cuda:1 is lost' queue.txt
    "$TRANSCODE" doctor --device cpu --speed 0 >doctor.txt
    says 'cuda:1.*quarantined' doctor.txt
    finishes
    until_true 60 is_state cuda:1 working || fail "it does not come back: $(tail -n 3 worker.log)"
    kill -TERM "$worker"
    wait "$worker" || fail "the worker ended: $(tail -n 1 worker.log)"
    says 'cuda:1 gets no work for 4 s' worker.log
    equal "workers shown after the end" 0 "$("$TRANSCODE" queue --json | jq '.workers | length')"
}

the_only_one() {
    farm cuda:0 "$(three_times 0)"
    until_true 60 is_state cuda:0 quarantined || fail "it is not shown: $(tail -n 3 worker.log)"
    equal "tasks leased" 0 "$("$TRANSCODE" queue --json | jq .leased)"
    says 'gets no work for .*there is no other' worker.log
    finishes
    kill -TERM "$worker"
    wait "$worker" || fail "the worker ended: $(tail -n 1 worker.log)"
}
check "one of two GPUs keeps failing" one_of_two
check "the only GPU keeps failing, and recovers" the_only_one
finish
