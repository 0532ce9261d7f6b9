#!/bin/bash
# Do the tests see what they are there to see? Each guard of the scripts is taken away in turn, and
# test_queue_history must fail, or for the guards below that no random history comes to, test_queue. A
# guard that can be removed unseen is printed and fails this.
#
#     tests/queue/mutants.sh [SEEDS [STEPS]]     25 seeds of 300 steps by default
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
seeds=${1:-25} steps=${2:-300}
work=$(mktemp -d "${TMPDIR:-/tmp}/transcode-mutants.XXXXXX")
trap 'rm -rf "$work"' EXIT
read -ra flags < <(pkg-config --cflags --libs hiredis jansson yaml-0.1 cmocka)

# FILE, the text that is the guard, the text in its place.
mutants=(
    "renew|check(j, t, token, 'renew')|check(j, t, t and t.token, 'renew')"
    "renew|' .. token .. '|%S+"
    "commit|check(j, t, token, 'commit')|check(j, t, t and t.token, 'commit')"
    "commit|'^leased (%S+) ' .. token .. '|'^leased (%S+) %S+"
    "commit|'^leased (%S+) ' .. token .. ' %-|'^%S+ (%S+) ' .. token .. ' %S+"
    "fail|check(j, t, ARGV[2], 'fail')|check(j, t, t and t.token, 'fail')"
    "release|check(j, t, ARGV[2], 'release')|check(j, t, t and t.token, 'release')"
    "plan_batch|check(j, t, ARGV[2], 'commit')|check(j, t, t and t.token, 'commit')"
    "plan_commit|check(j, t, ARGV[2], 'commit')|check(j, t, t and t.token, 'commit')"
    "fail|verdict ~= HELD or is_repeat|verdict ~= HELD"
    "release|HELD and not is_repeat|HELD"
    "plan_commit|if is_repeat then|if false then"
    "_lib|if t.closed == op then|if false then"
    "_lib|t.closed == 'sweep' and CANCELLED or LOST|LOST"
    "lease|if n == call_of then|if false then"
    "lease|stamp(), attempt + 1|stamp(), attempt"
    "lease|tonumber(v[1] or 0) < cap|true"
    "_keep|tonumber(t.attempt) >= tonumber(call('HGET', j.key, 'max_attempts'))|false"
    "fail|math.min(ARGV[6], call('HGET', j.key, 'max_attempts'))|tonumber(ARGV[6])"
    "_keep|        t.closed = 'lapse'|        t.closed = 'lapse' t.state = 'ready' if true then return end"
    "_keep|tasks_due('delayed', n, promote)|0"
    "_keep|            expire(id)|            call('ZREM', P .. ':due', id)"
    "_keep|call('ZREM', P .. ':jobs', id)|"
    "commit|if is_chunk and left > 0 then|if is_chunk then"
    "commit|    uncap(tenant)|"
    "_end|    call('SADD', P .. ':chores', j.id)|"
    "_end|call('ZADD', P .. ':dead', now, j.id .. '/' .. t.id)|"
    "_move|        uncap(j.tenant)|"
    "_move|call('HINCRBY', P .. ':tenant:' .. j.tenant, 'open', -1)|"
    "_move|'NX', int(now - priority * AGE_US)|'NX', now_text"
    "_move|call('SREM', P .. ':capped:' .. j.tenant, band)|"
    "submit|if open >= open_max then|if false then"
    "retry|call('HINCRBY', P .. ':tenant:' .. j.tenant, 'open', 1)|"
    "retry|call('ZREM', P .. ':due', id)|"
    "_lib|if j[name] ~= was[i] then|if j[name] ~= was[i] and name ~= 'running' then"
)
# What counts only while a large job is swept, and a repeated lease that is over.
swept=(
    "renew|if head and not is_ended[state] then|if head then"
    "commit|local is_held = kind and not is_ended[state]|local is_held = kind"
    "lease|        if is_ended[state] then|        if false then"
    "lease|string.find(record, '^leased %S+ ' .. old .. ' ') and held|held"
)

build() { # FOLDER OF LUA: $work/<test> of these scripts, for each of the two
    local name
    cmake -DOUT="$work/lua.c" -DSYMBOL=queue_lua "-DFILES=$(printf '%s;' "$1"/*.lua)" \
        -P common/embed_write.cmake || return
    for name in "${tests[@]}"; do
        cc -I. -D_GNU_SOURCE -o "$work/$name" "$work/lua.c" "$work/$name.o" "$work"/lib/*.o "${flags[@]}" -lpthread -lm || return
    done
}

test_queue_history() { timeout 120 "$work/test_queue_history" "$seeds" "$steps" >"$work/log" 2>&1; }

test_queue() { timeout 120 "$work/test_queue" >"$work/log" 2>&1; }

compile() { # SOURCE OBJECT
    cc -O1 -I. -D_GNU_SOURCE -DTRANSCODE_VERSION='"0"' -DTESTS_DIR="\"$PWD/tests\"" -c "$1" -o "$2" "${flags[@]}"
}

tests=(test_queue_history test_queue)
mkdir "$work/lib"
for source in common/*.c queue/*.c; do compile "$source" "$work/lib/$(basename "$source" .c).o" || exit 1; done
for name in "${tests[@]}"; do compile "tests/queue/$name.c" "$work/$name.o" || exit 1; done
build queue/lua || exit 1
for name in "${tests[@]}"; do
    "$name" || { tail -n 5 "$work/log"; echo "$name fails before anything is removed"; exit 1; }
done

unseen=0
try() { # TEST MUTANT...
    local test=$1 mutant file guard instead
    shift
    for mutant; do
        IFS='|' read -r file guard instead <<<"$mutant"
        rm -rf "$work/lua" && cp -r queue/lua "$work/lua"
        python3 - "$work/lua/$file.lua" "$guard" "$instead" <<'PYTHON' || exit 1
import sys
path, guard, instead = sys.argv[1:]
text = open(path).read()
if guard not in text:
    sys.exit(f"{path}: there is no {guard!r} (any more)")
open(path, "w").write(text.replace(guard, instead))
PYTHON
        build "$work/lua" || exit 1
        if "$test"; then
            unseen=$((unseen + 1))
            echo "UNSEEN  $file: $guard"
        else
            echo "seen    $file: $guard ($(grep -oE 'seed [0-9]+|test_[a-z_]+$' "$work/log" | tail -n 1))"
        fi
    done
}
try test_queue "${swept[@]}"
try test_queue_history "${mutants[@]}"
echo "$((${#mutants[@]} + ${#swept[@]})) guards removed, $unseen of them unseen"
[ $unseen -eq 0 ]
