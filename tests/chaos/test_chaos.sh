#!/bin/bash
# A small farm at work while its parts are killed: every job ends done, and every output is, file for
# file and byte for byte, that of a calm run; so there is no file that no playlist names, either, though
# each output begins with what an attempt leaves that is killed while it writes.
#
# Three workers of two sessions, and two dispatchers; one of each reaches Redis through Sentinel, the
# others through a proxy that loses replies (tests/support/drop_main.c). Meanwhile, in an order that
# SEED gives: sessions and agents are killed (SIGKILL) or stopped for longer than their lease, dispatchers are
# killed, Redis is killed and restarted, the master is failed over, a scratch disk fills.
#
#     CHAOS_S=90 SEED=1 tests/chaos/test_chaos.sh     90 s of it, then as long as the jobs take
#     EVENTS='failed_over agent_killed' ...           of the events below only these, again and again
#
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh"
seed=${SEED:-$RANDOM}
chaos_s=${CHAOS_S:-60}
DROP=${DROP:-$(dirname "$TRANSCODE")/tests/drop}
[ -x "$DROP" ] || DROP=$root/build/tests/drop
declare -A count=()
declare -a worker=() dispatcher=()

port() { # an unused one
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

start_redis() { # NUMBER [ARG...]
    local n=$1
    mkdir -p "redis$n"
    redis-server --port "${redis_port[$n]}" --bind 127.0.0.1 --dir "$PWD/redis$n" --appendonly yes \
        --appendfsync always --save "" --repl-diskless-sync-delay 0 --logfile log "${@:2}" &
    redis[n]=$!
}

cli() { redis-cli -p "$@" 2>/dev/null; }

until_true() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    until "${@:2}"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.1
    done
}

is_role() { [ "$(cli "$1" ROLE | head -n 1)" = "$2" ]; }
has_replica() { cli "$1" INFO replication | grep -q 'state=online'; }

start_servers() {
    local i
    for i in 1 2; do redis_port[i]=$(port); done
    sentinel_port=$(port)
    master=1
    start_redis 1
    until_true 10 is_role "${redis_port[1]}" master || fail "redis-server does not start"
    start_redis 2 --replicaof 127.0.0.1 "${redis_port[1]}"
    until_true 20 has_replica "${redis_port[1]}" || fail "no replica"
    mkdir -p sentinel
    printf '%s\n' "port $sentinel_port" "bind 127.0.0.1" "dir $PWD/sentinel" "logfile log" \
        "sentinel monitor farm 127.0.0.1 ${redis_port[1]} 1" \
        "sentinel down-after-milliseconds farm 1500" "sentinel failover-timeout farm 5000" >sentinel.conf
    redis-server sentinel.conf --sentinel &
    until_true 20 sentinel_sees || fail "the sentinel sees no replica"
}

sentinel_sees() { cli "$sentinel_port" INFO sentinel | grep -q 'slaves=1'; }

url() { # WORKER-NUMBER
    if [ "$1" -eq 1 ]; then
        echo "redis-sentinel://127.0.0.1:$sentinel_port/farm"
    else
        echo "redis://127.0.0.1:$front_port"
    fi
}

start_worker() { # NUMBER
    "$TRANSCODE" worker --redis "$(url "$1")" --sessions 2 --scratch "$PWD/scratch$1" --grace 1 \
        >>"worker$1.log" 2>&1 &
    worker[$1]=$!
}

start_dispatcher() { # NUMBER
    "$TRANSCODE" dispatcher --redis "$(url "$1")" >>"dispatcher$1.log" 2>&1 &
    dispatcher[$1]=$!
}

# The front is a proxy to whatever is the master; it is moved by starting it anew.
start_front() {
    [ -z "${front-}" ] || { kill -KILL "$front" && wait "$front"; } 2>/dev/null
    "$DROP" "$front_port" "${redis_port[$master]}" 150 "$seed" >>lost &
    front=$!
}

sessions_of() { ps -o pid= --ppid "$1"; } # AGENT

# ---- what happens ----

session_killed() {
    local all
    mapfile -t all < <(sessions_of "${worker[1 + RANDOM % 3]}")
    [ ${#all[@]} -gt 0 ] && kill -KILL "${all[RANDOM % ${#all[@]}]}" 2>/dev/null
}

agent_killed() {
    local n=$((1 + RANDOM % 3))
    { kill -KILL "${worker[n]}" && wait "${worker[n]}"; } 2>/dev/null
    start_worker "$n"
}

dispatcher_killed() {
    local n=$((1 + RANDOM % 2))
    { kill -KILL "${dispatcher[n]}" && wait "${dispatcher[n]}"; } 2>/dev/null
    start_dispatcher "$n"
}

has_session() { [ -n "$(sessions_of "$1")" ]; }

session_stopped() { # for good: the agent finds that it hangs
    local all
    until_true 10 has_session "${worker[2]}"
    mapfile -t all < <(sessions_of "${worker[2]}")
    [ ${#all[@]} -gt 0 ] && kill -STOP "${all[0]}" 2>/dev/null
}

agent_stopped() { # for longer than its leases; then it finds that they are lost
    local pid=${worker[3]}
    kill -STOP "$pid"
    (sleep 36 && kill -CONT "$pid") 2>/dev/null &
}

redis_killed() {
    { kill -KILL "${redis[$master]}" && wait "${redis[$master]}"; } 2>/dev/null
    sleep 0.5
    start_redis "$master"
    until_true 20 find_master
}

# Who is the master, by now; the sentinel may have found that a killed one took too long.
find_master() {
    local at n
    at=$(cli "$sentinel_port" SENTINEL get-master-addr-by-name farm | sed -n 2p)
    for n in 1 2; do
        [ "${redis_port[n]}" = "$at" ] && is_role "$at" master || continue
        [ "$n" = "$master" ] || { master=$n && start_front; }
        return 0
    done
    return 1
}

# The sentinel looks at replicas every 10 s, and until then may know of no good one.
promoted() { # NUMBER
    cli "$sentinel_port" SENTINEL FAILOVER farm >failover
    sleep 1
    is_role "${redis_port[$1]}" master
}

failed_over() {
    local next=$((3 - master))
    until_true 10 has_replica "${redis_port[$master]}" || return 1
    until_true 20 promoted "$next"
    until_true 15 find_master && [ "$master" = "$next" ]
}

scratch_filled() {
    [ -e scratch3/.tmpfs ] || return 1
    dd if=/dev/zero of=scratch3/filler bs=1M count=64 2>/dev/null
    sleep 3
    rm -f scratch3/filler
}

happen() { # EVENT
    "$1" && count[$1]=$((${count[$1]-0} + 1))
    return 0
}

# ---- the run ----

jobs=0
submit_one() {
    leave_part "out$jobs"
    until_true 60 is_submitted || fail "job$jobs cannot be submitted: $(cat submitted)"
    jobs=$((jobs + 1))
}

leave_part() { mkdir -p "$1/audio" && : >"$1/audio/.part-of-the-dead"; } # OUTPUT

is_submitted() { # exit 4: Redis is away, or fails over
    local rc=0
    find_master
    timeout 60 "$TRANSCODE" submit "$scratch/film$((jobs % 2)).mp4" -o "$PWD/out$jobs" --id "job$jobs" \
        --chunk 2 --profile "$here/slow.yaml" --tenant "t$((jobs % 3))" \
        --redis "redis://127.0.0.1:$front_port" >submitted 2>&1 || rc=$?
    [ "$rc" -eq 0 ] || [ "$rc" -eq 4 ] || fail "submit: exit $rc: $(cat submitted)"
    [ "$rc" -eq 0 ]
}

# "ID STATE REASON" of each job, one a line.
states() {
    timeout 60 "$TRANSCODE" list --json --redis "redis://127.0.0.1:$front_port" 2>/dev/null |
        python3 -c 'import json, sys
for j in json.load(sys.stdin): print(j["id"], j["state"], j["reason"] or "")'
}

count_open() { echo $((jobs - $(states | grep -c ' done ' || true))); }

# Whether all are done. A failover may lose what was told to the old master last, a submission among
# it: that one is told again.
see_to_all() {
    local i was=$jobs ended=0 all state
    find_master
    all=$(states)
    [ -n "$all" ] || return 1
    for ((i = 0; i < was; i++)); do
        state=$(sed -n "s/^job$i //p" <<<"$all")
        case $state in
        done*) ended=$((ended + 1)) ;;
        failed* | cancelled*) fail "job$i: $state" ;;
        "") jobs=$i && submit_one ;;
        esac
    done
    jobs=$was
    [ "$ended" -eq "$jobs" ]
}

calm() { # NUMBER
    encode -f lavfi -i "testsrc2=size=320x180:rate=25:duration=$((8 + 2 * $1))" \
        -f lavfi -i "sine=duration=$((8 + 2 * $1))" -c:v libx264 -preset ultrafast -bf 2 -g 50 \
        -pix_fmt yuv420p -c:a aac "$scratch/film$1.mp4"
    exits 0 timeout 120 "$TRANSCODE" run "$scratch/film$1.mp4" -o "$scratch/calm$1" --quiet --chunk 2 \
        --profile "$here/slow.yaml"
}

read -ra events <<<"${EVENTS:-session_killed session_killed agent_killed redis_killed dispatcher_killed \
session_killed failed_over scratch_filled session_killed redis_killed}"

chaos() {
    local i end
    RANDOM=$seed
    calm 0
    calm 1
    declare -a redis=() redis_port=()
    front_port=$(port)
    mkdir scratch1 scratch2 scratch3
    if mount -t tmpfs -o size=48m tmpfs scratch3 2>/dev/null; then touch scratch3/.tmpfs; fi
    trap 'umount -l scratch3 2>/dev/null; end_jobs' EXIT
    start_servers
    start_front
    for i in 1 2 3; do start_worker "$i"; done
    for i in 1 2; do start_dispatcher "$i"; done
    for i in 1 2 3; do submit_one; done
    i=0 end=$((SECONDS + chaos_s))
    mapfile -t events < <(printf '%s\n' "${events[@]}" | shuf --random-source=<(yes "$seed"))
    happen agent_stopped
    happen session_stopped
    while [ "$SECONDS" -lt "$end" ]; do
        happen "${events[i++ % ${#events[@]}]}"
        sleep 1.5
        [ "$(count_open)" -ge 3 ] || submit_one
    done
    [[ " ${events[*]} " != *" failed_over "* || ${count[failed_over]-} ]] || happen failed_over
    until_true 240 see_to_all || fail "jobs do not end: $(tail -qn 3 worker*.log | paste -sd ' ' | cut -c1-600)"
    for ((i = 0; i < jobs; i++)); do
        diff -r "$scratch/calm$((i % 2))" "out$i" >difference ||
            fail "job$i differs from a calm run: $(head -n 3 difference | paste -sd ' ')"
    done
    [[ " ${events[*]} " != *" failed_over "* || ${count[failed_over]-} ]] || fail "no failover came about"
    echo "seed $seed: $jobs jobs done and checked; survived:"
    for i in "${!count[@]}"; do echo "  ${count[$i]} x $i"; done | sort
    kill -USR1 "$front" && sleep 0.2
    echo "  $(awk '{n += $1} END {print n + 0}' lost) replies lost"
}

check "chaos, seed $seed" chaos
finish
