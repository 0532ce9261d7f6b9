#!/bin/bash
# Speed of the queue: tasks per second through submit, lease, renew, commit, against one
# redis-server of its own (appendonly yes, appendfsync everysec), from one client, from eight and from
# 64, as fast as they can; then from 64 simulated workers that work 500 ms on a task. Each with its
# aim. Wants a quiet machine: the server needs a core. Its CPU time a task tells what it could do.
#
#     tests/bench/queue.sh [TASKS]     10,000 by default
set -euo pipefail
cd "$(dirname "$0")/../.."
tasks=${1:-10000}
build=${BUILD:-build}
ninja -C "$build" queue_bench >/dev/null
folder=$(mktemp -d "${TMPDIR:-/tmp}/transcode-bench.XXXXXX")
redis-server --port 0 --unixsocket "$folder/redis" --dir "$folder" --appendonly yes \
    --appendfsync everysec --save "" --maxmemory-policy noeviction >"$folder/log" &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm -rf "$folder"' EXIT
until redis-cli -s "$folder/redis" ping >/dev/null 2>&1; do sleep 0.05; done

echo "  tasks clients   enqueue      cycles  server CPU  trips   median      p99   of a 10 s chunk"
measure() { # TASKS CLIENTS WORK_MS
    redis-cli -s "$folder/redis" flushall >/dev/null
    "$build/tests/queue_bench" "unix://$folder/redis" "$@"
}
for clients in 1 8 64; do measure "$tasks" $clients 0; done
measure 1280 64 500 # 10 s
echo "   aims           < 1 s     >= 5000/s   < 200 us   <= 6                        < 0.1 %"
