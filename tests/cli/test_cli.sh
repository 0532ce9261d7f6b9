#!/bin/bash
# The command line: help, errors and exit codes, JSON, the generated man page and completion, the
# verbs that only talk to the queue, and a whole `run`.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../lib.sh"
unset TRANSCODE_REDIS

verbs='run submit status list queue tenant watch cancel retry probe plan profiles doctor worker dispatcher'

one_line() { # FILE: exactly one line on stderr, that names the program
    equal "lines of stderr" 1 "$(wc -l <"$1")"
    says '^transcode: ' "$1"
}

json() { # FILTER FILE
    command -v jq >/dev/null || skip "jq is not installed"
    jq -e "$1" "$2" >/dev/null || fail "$2: not so: $1: $(head -c 300 "$2")"
}

# --- the program ---------------------------------------------------------------------------------

overview() {
    exits 0 "$TRANSCODE" --help
    for verb in $verbs; do says "^ *$verb " stdout; done
    for hidden in session inspect man completion; do ! grep -qE "^ *$hidden " stdout || fail "shows $hidden"; done
    exits 0 "$TRANSCODE" --version
    says '^transcode [0-9]+\.[0-9]+' stdout
}

help_of() { # VERB
    exits 0 "$TRANSCODE" "$1" --help
    says "transcode $1" stdout
    says '--json' stdout
    says '--log-level' stdout
    equal "stderr" "" "$(cat stderr)"
    cp stdout first
    exits 0 "$TRANSCODE" help "$1"
    cmp first stdout
}

wrong_usage() {
    exits 2 "$TRANSCODE"
    one_line stderr
    exits 2 "$TRANSCODE" transmogrify
    one_line stderr
    says 'transmogrify' stderr
    for verb in $verbs; do
        exits 2 "$TRANSCODE" "$verb" --no-such-option
        one_line stderr
        says "^transcode: $verb: .*no-such-option" stderr
    done
    exits 2 "$TRANSCODE" run
    one_line stderr
    exits 2 "$TRANSCODE" run a b
    exits 2 "$TRANSCODE" run a -o b --sessions many
    says 'sessions' stderr
    exits 2 "$TRANSCODE" run a -o b --sessions -1
    exits 2 "$TRANSCODE" list --log-level loud --redis unix:///nowhere
    says 'error, warning, info' stderr
}

errors_as_json() {
    exits 2 "$TRANSCODE" run --json
    json '.error.kind == "usage" and .error.exit_code == 2 and (.error.message | length > 0)' stdout
    equal "stderr" "" "$(cat stderr)"
    exits 3 "$TRANSCODE" run missing.mp4 -o out --json
    json '.error.kind == "input" and (.error.message | contains("missing.mp4"))' stdout
}

unwritable_stdout() {
    [ -e /dev/full ] || skip "no /dev/full"
    local rc=0
    "$TRANSCODE" profiles >/dev/full 2>stderr || rc=$?
    equal "exit code" 1 "$rc"
    one_line stderr
}

man_page() {
    "$TRANSCODE" man >transcode.1
    command -v groff >/dev/null || skip "groff is not installed"
    groff -man -ww -Tutf8 transcode.1 >page 2>warnings
    equal "groff's warnings" "" "$(cat warnings)"
    sed -i 's/\x1b\[[0-9;]*m//g; s/.\x08//g' page
    for word in NAME SYNOPSIS $verbs TRANSCODE_REDIS; do says "$word" page; done
    for option in resume force chunk sessions allow-hdr-as-is limit; do says "--$option" page; done
    ! grep -q session_main page || fail "shows internals"
}

built_docs() { # the build has left both where `cmake --install` takes them from
    local dir
    dir=$(dirname "$TRANSCODE")
    "$TRANSCODE" man | cmp - "$dir/transcode.1"
    "$TRANSCODE" completion | cmp - "$dir/transcode.bash"
}

completes() { # EXPECTED-WORD WORD...
    local want=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
    "$completer" transcode "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" || true
    printf '%s\n' "${COMPREPLY[@]}" | grep -qE -- "^$want *\$" ||
        fail "'$*' completes to '${COMPREPLY[*]}', not to $want"
}

completion() {
    "$TRANSCODE" completion >transcode.bash
    bash -n transcode.bash
    # shellcheck disable=SC1091
    . ./transcode.bash
    completer=$(complete -p transcode | sed -E 's/.*-F ([^ ]+).*/\1/')
    completes run transcode ru
    completes dispatcher transcode d
    completes --resume transcode run --res
    completes --json transcode list --js
    completes ts transcode run --segments t
    ! printf '%s\n' "${COMPREPLY[@]}" | grep -q session
}

profiles() {
    exits 0 "$TRANSCODE" profiles
    for name in h264 hevc av1 h264-fast; do says "^$name " stdout; done
    exits 0 "$TRANSCODE" profiles --json
    json 'length >= 4 and all(.[]; (.name | length > 0) and (.renditions | length > 0))' stdout
    exits 0 "$TRANSCODE" profiles h264
    says 'renditions:' stdout
    cp stdout own.yaml
    exits 0 "$TRANSCODE" profiles ./own.yaml
    exits 2 "$TRANSCODE" profiles no-such-profile
    says 'h264-fast' stderr
    printf 'name: x\nencoder: libx264\ngop: never\nrenditions:\n  - height: tall\n' >bad.yaml
    exits 2 "$TRANSCODE" profiles ./bad.yaml
    one_line stderr
    says 'bad.yaml:3:6: gop: expected' stderr
    says 'bad.yaml:5:13: renditions.*height: expected' stderr
    exits 2 "$TRANSCODE" run own.yaml -o out --profile ./bad.yaml
}

# --- the queue's verbs ---------------------------------------------------------------------------

with_redis() { # FUNCTION: runs it with a private server
    command -v redis-server >/dev/null || skip "redis-server is not installed"
    local pid
    redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --appendonly yes \
        --maxmemory-policy noeviction --dir "$PWD" >redis.log 2>&1 &
    pid=$!
    # shellcheck disable=SC2064
    trap "kill $pid 2>/dev/null; wait $pid" EXIT # it removes its socket when it ends
    for _ in $(seq 100); do [ ! -S redis.sock ] || break; sleep 0.05; done
    export TRANSCODE_REDIS="unix://$PWD/redis.sock"
    "$@"
}

no_queue() {
    for verb in list 'status x' 'watch x' 'cancel x' 'retry x' worker dispatcher; do
        # shellcheck disable=SC2086
        exits 2 "$TRANSCODE" $verb
        one_line stderr
        says 'TRANSCODE_REDIS' stderr
    done
    exits 4 "$TRANSCODE" list --redis "unix://$PWD/nobody.sock"
    one_line stderr
    says 'nobody.sock' stderr
    exits 2 "$TRANSCODE" list --redis gopher://here
}

queue_verbs() {
    echo "some bytes" >in.mp4
    exits 0 "$TRANSCODE" submit in.mp4 -o out
    equal "lines of stdout" 1 "$(wc -l <stdout)"
    local id
    id=$(cat stdout)
    [[ $id =~ ^[A-Za-z0-9._-]{1,64}$ ]] || fail "no id: $id"
    [ -d out ] || fail "the output was not made"

    exits 0 "$TRANSCODE" submit in.mp4 -o two --id mine
    equal "id" mine "$(cat stdout)"
    exits 0 "$TRANSCODE" submit in.mp4 -o two --id mine --json
    json '.id == "mine" and .is_new == false' stdout
    exits 2 "$TRANSCODE" submit in.mp4 -o other --id mine
    one_line stderr
    exits 2 "$TRANSCODE" submit in.mp4 -o out --id 'no good'
    exits 3 "$TRANSCODE" submit missing.mp4 -o out
    exits 2 "$TRANSCODE" submit in.mp4
    exits 2 "$TRANSCODE" submit in.mp4 -o out --segments mkv
    exits 2 "$TRANSCODE" submit in.mp4 -o out --profile no-such-profile

    exits 0 "$TRANSCODE" status mine
    says '^state +probing' stdout
    says "^input +$PWD/in.mp4" stdout
    exits 0 "$TRANSCODE" status mine --json
    json '.id == "mine" and .state == "probing"' stdout
    exits 2 "$TRANSCODE" status nobody
    one_line stderr
    exits 0 "$TRANSCODE" list
    says '^mine +probing' stdout
    says "^$id +probing" stdout
    exits 0 "$TRANSCODE" list --json
    json 'length == 2 and (map(.id) | index("mine") != null)' stdout
    exits 0 "$TRANSCODE" list --json --max 1
    json 'length == 1 and .[0].id == "mine"' stdout
    exits 0 "$TRANSCODE" list --json --max 1 --after mine
    json "length == 1 and .[0].id == \"$id\"" stdout
    exits 0 "$TRANSCODE" list --json --after "$id"
    json 'length == 0' stdout
    exits 2 "$TRANSCODE" list --after nobody
    one_line stderr

    exits 0 "$TRANSCODE" cancel mine
    says 'cancelled' stdout
    exits 0 "$TRANSCODE" cancel mine --json
    json '.is_changed == false' stdout
    exits 1 "$TRANSCODE" watch mine
    says 'was cancelled' stderr
    exits 1 "$TRANSCODE" submit in.mp4 -o two --id mine --wait --quiet
    exits 0 "$TRANSCODE" retry mine
    exits 0 "$TRANSCODE" status mine --json
    json '.state == "probing"' stdout
}

# Whose turn it is and who has had enough, as an operator sets and sees it.
shares() {
    echo "some bytes" >in.mp4
    exits 4 "$TRANSCODE" submit in.mp4 -o out --redis "unix://$PWD/nobody.sock"
    one_line stderr
    says 'check that this Redis runs' stderr
    exits 0 "$TRANSCODE" tenant ann --open 2 --running 1 --weight 3
    says '^open jobs +0 of at most 2' stdout
    exits 0 "$TRANSCODE" submit in.mp4 -o out --tenant ann --priority high --id urgent
    exits 0 "$TRANSCODE" submit in.mp4 -o out --tenant ann --priority 7 --id idle
    exits 4 "$TRANSCODE" submit in.mp4 -o out --tenant ann --id more
    one_line stderr
    says 'busy: tenant ann has 2 open jobs of 2' stderr
    exits 2 "$TRANSCODE" submit in.mp4 -o out --priority urgent
    says 'priority' stderr
    exits 0 "$TRANSCODE" tenant ann --json
    json '.open == 2 and .open_max == 2 and .running_max == 1 and .weight == 3' stdout
    exits 0 "$TRANSCODE" queue --json
    json '.depth == 2 and (.lanes | map(.priority) | sort) == [7, 75] and .lanes[0].tenant == "ann"' stdout
    json '.lanes | all(.age_s >= 0 and .tasks == 1)' stdout
    exits 0 "$TRANSCODE" queue
    says '^2 live tasks' stdout
    says '^ *worker +75 +ann +1 ' stdout
    exits 0 "$TRANSCODE" list --tenant ann --json
    json 'map(.id) == ["idle", "urgent"]' stdout
    exits 0 "$TRANSCODE" cancel idle
    exits 0 "$TRANSCODE" submit in.mp4 -o out --tenant ann --id more
}

# Page after page over many jobs, of which few are wanted.
list_many() {
    redis-cli -s redis.sock config set appendonly no >/dev/null
    exits 0 "$TRANSCODE" list
    says 'keeps nothing on disk' stderr
    redis-cli -s redis.sock eval "
        for i = 1, 100000 do
            redis.call('HSET', '{transcode}:job:j' .. i, 'state', i % 20000 == 0 and 'failed' or 'done',
                       'tenant', 'ann', 'priority', '50', 'created', i, 'input', 'in.mp4')
            redis.call('ZADD', '{transcode}:jobs', i, 'j' .. i)
        end" 0 >/dev/null
    exits 0 "$TRANSCODE" list --max 10000 --json
    json 'length == 10000 and .[0].id == "j100000" and .[9999].id == "j90001"' stdout
    exits 0 "$TRANSCODE" list --state failed --json --max 3
    json 'map(.id) == ["j100000", "j80000", "j60000"]' stdout
    exits 0 "$TRANSCODE" list --state failed --json --max 3 --after j60000
    json 'map(.id) == ["j40000", "j20000"]' stdout
    exits 0 "$TRANSCODE" list --tenant bob --json
    json 'length == 0' stdout
}

# A job that ends in a reason: what the job failed of is what --wait exits with.
wait_for_outcome() {
    head -c 5000 /dev/urandom >in.mp4
    "$TRANSCODE" dispatcher 2>dispatcher.log &
    local dispatcher=$!
    "$TRANSCODE" worker --sessions 1 2>worker.log &
    local worker=$!
    exits 3 "$TRANSCODE" submit in.mp4 -o out --wait --id broken
    equal "stdout" broken "$(cat stdout)"
    says '^transcode: submit: job broken failed: ' stderr
    exits 3 "$TRANSCODE" watch broken --json
    json '.error.kind == "input"' stdout
    exits 0 "$TRANSCODE" status broken
    says '^state +failed' stdout
    says '^reason' stdout
    kill -TERM "$worker" "$dispatcher"
    wait "$worker" || fail "the idle worker ended with $?"
    wait "$dispatcher" || fail "the dispatcher ended with $?"
}

# --- run -----------------------------------------------------------------------------------------

clip_of() { # FILE SECONDS SIZE
    command -v ffmpeg >/dev/null || skip "ffmpeg is not installed"
    ffmpeg -v error -f lavfi -i "testsrc2=size=$3:rate=25:duration=$2" -f lavfi \
        -i "sine=frequency=440:duration=$2" -c:v libx264 -preset ultrafast -g 25 -pix_fmt yuv420p \
        -c:a aac -shortest -y "$1"
}

files_of() { # DIR: names and sums of the output
    (cd "$1" && find . -type f | sort | xargs sha256sum)
}

children() { # of a run in this directory
    local pid exe
    for pid in /proc/[0-9]*; do
        exe=$(readlink "$pid/exe") || continue
        [[ $exe == "$(realpath "$TRANSCODE")" || $exe == *redis* ]] || continue
        [[ $(readlink "$pid/cwd") != "$PWD"* ]] || tr '\0' ' ' <"$pid/cmdline"
    done
}

no_children() { # SECONDS: nothing that a run started outlives it
    local end=$((SECONDS + $1))
    while [ -n "$(children)" ] && [ "$SECONDS" -lt "$end" ]; do sleep 0.1; done
    [ -n "$(children)" ] || return 0
    fail "still there: $(children)"
}

run_whole() {
    clip_of in.mp4 4 320x180
    exits 0 "$TRANSCODE" run in.mp4 -o out
    [ -s out/master.m3u8 ] || fail "no master"
    [ ! -e out/.transcode ] || fail "the state is still there"
    says '100 %  done' stderr
    says "^$PWD/out/master.m3u8" stdout
    says 'RENDITION' stdout
    no_children 0

    exits 2 "$TRANSCODE" run in.mp4 -o out
    says '--force' stderr
    exits 0 "$TRANSCODE" run in.mp4 -o out --resume
    says 'finished already' stdout
    exits 0 "$TRANSCODE" run in.mp4 -o out --resume --json
    json '.is_done' stdout
    files_of out >first
    exits 0 "$TRANSCODE" run in.mp4 -o out --force --quiet
    equal "stdout" "" "$(cat stdout)"
    equal "stderr" "" "$(cat stderr)"
    files_of out | cmp - first
    exits 0 "$TRANSCODE" run in.mp4 -o other --json --quiet
    json '.state == "done" and (.report.renditions | length > 1) and .report.waste >= 1' stdout
}

run_refused() {
    echo x >in.mp4
    exits 2 "$TRANSCODE" run in.mp4
    exits 3 "$TRANSCODE" run missing.mp4 -o out
    [ ! -e out/.transcode ] || fail "left a state behind"
    exits 3 "$TRANSCODE" run in.mp4 -o out
    says '^transcode: run: job run failed: ' stderr
    [ ! -e out/.transcode ] || fail "a hopeless run left its state behind"
    exits 2 "$TRANSCODE" run in.mp4 -o out --limit no_such_limit=1
    exits 2 "$TRANSCODE" run in.mp4 -o s3://bucket/key
    exits 2 env PATH=/nowhere "$TRANSCODE" run in.mp4 -o out
    says 'redis-server' stderr
    [ ! -e out/.transcode ] || fail "a run that did not start left its state behind"
}

wait_for_chunk() { # DIR: until the first segments are there and the run still goes
    for _ in $(seq 300); do
        [ -n "$(find "$1" -name '*.m4s' -not -path '*/.transcode/*' -print -quit 2>/dev/null)" ] && return 0
        sleep 0.1
    done
    fail "no segment came"
}

slow=$root/tests/e2e/slow.yaml # segments of 2 s

run_interrupted() { # SIGNAL
    local pid rc=0
    clip_of in.mp4 10 640x360
    "$TRANSCODE" run in.mp4 -o out --profile "$slow" --chunk 2 --sessions 1 --quiet 2>stderr &
    pid=$!
    wait_for_chunk out
    kill "-$1" "$pid"
    wait "$pid" || rc=$?
    if [ "$1" = INT ]; then
        no_children 0
        equal "exit code" 6 "$rc"
        says '--resume' stderr
    else
        no_children 8
    fi
    [ -d out/.transcode ] || fail "the state is gone"
    [ ! -e out/master.m3u8 ] || fail "a master of an unfinished job"
    exits 2 "$TRANSCODE" run in.mp4 -o out --profile "$slow" --chunk 2
    says '--resume' stderr
    exits 2 "$TRANSCODE" run in.mp4 -o out --profile "$slow" --chunk 4 --resume
    says 'begun with another' stderr
    exits 0 "$TRANSCODE" run in.mp4 -o out --profile "$slow" --chunk 2 --sessions 1 --resume --json --quiet
    json '.state == "done"' stdout
    [ ! -e out/.transcode ] || fail "the state is still there"
}

one_at_a_time() {
    clip_of in.mp4 4 640x360
    "$TRANSCODE" run in.mp4 -o out --profile "$slow" --sessions 1 --quiet 2>first &
    local pid=$!
    for _ in $(seq 100); do [ ! -e out/.transcode/lock ] || break; sleep 0.05; done
    exits 2 "$TRANSCODE" run in.mp4 -o out --resume
    says 'another run' stderr
    wait "$pid" || fail "the first run ended with $?: $(cat first)"
}

worker_killed() { # the worker process itself dies: said, started again, and the job is done
    clip_of in.mp4 10 640x360
    "$TRANSCODE" run in.mp4 -o out --profile "$slow" --chunk 2 --sessions 1 2>stderr >stdout &
    local pid=$! worker
    wait_for_chunk out
    worker=$(pgrep -P "$pid" -f -- '--scratch|transcode: (worker|agent)') || fail "no worker"
    kill -KILL "$worker"
    wait "$pid" || fail "the run ended with $?: $(cat stderr)"
    says 'worker ended: killed by signal 9.*again' stderr
    [ -s out/master.m3u8 ] || fail "no master"
}

plan_and_probe() {
    clip_of in.mp4 8 320x180
    exits 0 "$TRANSCODE" probe in.mp4
    says '200 frames, 25 fps constant' stdout
    exits 0 "$TRANSCODE" probe in.mp4 --json
    json '.video.frames == 200 and (.audio | length == 1)' stdout
    exits 0 "$TRANSCODE" plan in.mp4 --chunk 6
    says '^tasks: probe, plan, [0-9]+ video, [0-9]+ audio, publish' stdout
    says 'ffmpeg .*in.mp4' stdout
    exits 0 "$TRANSCODE" plan in.mp4 --chunk 6 --json
    json '.plan.renditions | length >= 1' stdout
    json '.tasks.video == (.chunks | length) and .chunks[0].first_segment == 0' stdout
    exits 3 "$TRANSCODE" probe missing.mp4
    exits 3 "$TRANSCODE" plan missing.mp4
    exits 2 "$TRANSCODE" plan in.mp4 --profile nope
}

check overview overview
for verb in $verbs; do check "help_$verb" help_of "$verb"; done
check wrong_usage wrong_usage
check errors_as_json errors_as_json
check unwritable_stdout unwritable_stdout
check man_page man_page
check built_docs built_docs
check completion completion
check profiles profiles
check no_queue no_queue
check queue_verbs with_redis queue_verbs
check shares with_redis shares
check list_many with_redis list_many
check wait_for_outcome with_redis wait_for_outcome
check plan_and_probe plan_and_probe
check run_whole run_whole
check run_refused run_refused
check run_interrupted_int run_interrupted INT
check run_interrupted_kill run_interrupted KILL
check one_at_a_time one_at_a_time
check worker_killed worker_killed
finish
