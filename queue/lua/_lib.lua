-- Every script begins with this text (queue/script.c puts it in front).
--
-- KEYS[1] is the hash tag, "{transcode}", and every key begins with it, so that all of them lie in
-- one slot of a cluster. Time is the server's own. A task is named by its ref, "JOB/TASK"; a job id
-- holds no slash, so the first one parts the two.
--
-- Places (I7). A live task is in exactly one of ready, leases, delayed; it is also a member of
-- live:JOB and has one entry in the depth stream (I10). A task that is not live is done, staged (of
-- a plan that is not committed yet) or parked (of a job that ended, or not let in yet).
--
-- Chores. Moving all tasks of a job could take long, so no script does it. It turns the job's state
-- and puts the job on the list of chores; then lease, reap and settle move a bounded number of
-- tasks at a time in the direction the state tells: of an ended job from live to parked, of a
-- going job from parked to live. Whoever dies in between, the next call goes on.

local P = KEYS[1]
local call = redis.call
local HELD, LOST, CANCELLED, PINNED, TAKEN = 0, 1, 2, 3, 4
local WAKE_MAX = 64    -- tokens in a wake list
local CHORE_MAX = 250  -- tasks that one script moves for a job

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- microseconds; exact in a double until the year 2255

local class_of = {probe = 'worker', video = 'worker', audio = 'worker',
                  plan = 'dispatcher', publish = 'dispatcher'}
local is_ended = {done = true, failed = true, cancelled = true}

local function int(n)
    return string.format('%.0f', n)
end

local function job_key(job)
    return P .. ':job:' .. job
end

local function task_key(ref)
    return P .. ':task:' .. ref
end

local function ready_key(kind)
    return P .. ':ready:' .. class_of[kind]
end

-- A number larger than every one before it, near the time: fencing tokens, and the order of jobs.
local function stamp()
    local last = tonumber(call('GET', P .. ':stamp') or 0)
    local s = int(math.max(now, last + 1))
    call('SET', P .. ':stamp', s)
    return s
end

-- Tells those who wait for the job that it changed: a stream of one entry whose id is the revision.
local function touch(job)
    local revision = int(call('HINCRBY', job_key(job), 'revision', 1))
    call('HSET', job_key(job), 'updated', int(now))
    call('XADD', P .. ':events:' .. job, 'MAXLEN', 1, revision .. '-1', 'r', revision)
end

-- Wakes up to n callers of lease.
local function wake(class, n)
    local key = P .. ':wake:' .. class
    for _ = 1, math.min(n, WAKE_MAX - call('LLEN', key)) do
        call('LPUSH', key, 1)
    end
end

local function load(ref)
    local v = call('HMGET', task_key(ref), 'state', 'token', 'closed', 'kind', 'worker', 'depth',
                   'weight', 'attempt', 'lost', 'frames')
    return {ref = ref, key = task_key(ref),
            job = string.match(ref, '^[^/]*'), id = string.match(ref, '^[^/]*/(.*)$'),
            state = v[1], token = v[2], closed = v[3], kind = v[4], worker = v[5], depth = v[6],
            weight = tonumber(v[7] or 0), attempt = tonumber(v[8] or 0),
            lost = tonumber(v[9] or 0), frames = tonumber(v[10] or 0)}
end

-- What the holder of this token may still do (I11). `op` is how the caller would close the lease:
-- when it was closed in that way by that token already, the call is a repeat (second result).
local function check(t, token, op)
    if not t.state or t.token ~= token then
        return LOST, false
    end
    if t.closed == op then
        return HELD, true
    end
    local is_over = is_ended[call('HGET', job_key(t.job), 'state')]
    if t.state == 'leased' then
        return is_over and CANCELLED or HELD, false
    end
    return is_over and t.closed == 'sweep' and CANCELLED or LOST, false
end

-- The attempt now counts for so many of the job's frames.
local function progress(t, frames)
    frames = math.max(0, math.min(frames, t.weight))
    if t.kind ~= 'video' or frames == t.frames then
        return false
    end
    call('HINCRBY', job_key(t.job), 'frames_done', int(frames - t.frames))
    call('HSET', t.key, 'frames', int(frames))
    t.frames = frames
    return true
end

-- Takes a live task out of the place it is in.
local function leave(t)
    if t.state == 'ready' then
        call('ZREM', ready_key(t.kind), t.ref)
    elseif t.state == 'delayed' then
        call('ZREM', P .. ':delayed', t.ref)
    elseif t.state == 'leased' then
        call('ZREM', P .. ':leases', t.ref)
        call('HINCRBY', job_key(t.job), 'running', -1)
    end
end

-- Ready tasks of a class in the order of lease: the oldest job first, within a job by name.
local function make_ready(t)
    call('ZADD', ready_key(t.kind), call('HGET', job_key(t.job), 'created'), t.ref)
    call('HSET', t.key, 'state', 'ready')
    wake(class_of[t.kind], 1)
end

local function make_delayed(t, delay_us)
    call('ZADD', P .. ':delayed', int(now + delay_us), t.ref)
    call('HSET', t.key, 'state', 'delayed')
end

local function make_live(t)
    local depth = call('XADD', P .. ':depth', '*', 'task', t.ref)
    call('HSET', t.key, 'depth', depth, 'attempt', 0, 'lost', 0)
    call('SADD', P .. ':live:' .. t.job, t.id)
    make_ready(t)
end

local function end_live(t)
    leave(t)
    call('XDEL', P .. ':depth', t.depth)
    call('SREM', P .. ':live:' .. t.job, t.id)
    call('HDEL', t.key, 'depth')
end

-- Sets a live task aside until its job is retried. `closed`: how its lease ended, where it has one.
local function park(t, closed)
    progress(t, 0)
    end_live(t)
    call('ZADD', P .. ':parked:' .. t.job, call('ZSCORE', P .. ':tasks:' .. t.job, t.id), t.id)
    call('HSET', t.key, 'state', 'parked', 'closed', t.state == 'leased' and closed or t.closed)
end

local function finish(t)
    progress(t, t.weight)
    end_live(t)
    call('HSET', t.key, 'state', 'done', 'closed', 'commit')
    call('HINCRBY', job_key(t.job), 'tasks_done', 1)
end

local function write_task(job, id, kind, payload, weight, index)
    call('HSET', task_key(job .. '/' .. id), 'state', 'staged', 'kind', kind, 'payload', payload,
         'weight', weight, 'attempt', 0, 'lost', 0, 'frames', 0, 'closed', '')
    call('ZADD', P .. ':tasks:' .. job, index, id)
end

-- Creates the one task of a job's next stage.
local function next_stage(job, state, kind)
    call('HSET', job_key(job), 'state', state)
    write_task(job, kind, kind, '{}', 0, call('HINCRBY', job_key(job), 'tasks', 1))
    make_live(load(job .. '/' .. kind))
end

local function end_job(job, state, reason_kind, reason)
    local key = job_key(job)
    call('HSET', key, 'resume', call('HGET', key, 'state'), 'state', state,
         'reason_kind', reason_kind, 'reason', reason, 'finished', int(now))
    call('SADD', P .. ':chores', job)
end

-- Ends the job because of one of its tasks.
local function fail_job(t, closed, reason_kind, reason)
    park(t, closed)
    if not is_ended[call('HGET', job_key(t.job), 'state')] then
        end_job(t.job, 'failed', reason_kind, reason)
    end
end

-- Moves up to n tasks of a job to where the job's state wants them; returns how many.
local function chore(job, n)
    local moved
    if is_ended[call('HGET', job_key(job), 'state')] then
        moved = call('SRANDMEMBER', P .. ':live:' .. job, n)
        for _, id in ipairs(moved) do
            park(load(job .. '/' .. id), 'sweep')
        end
    else
        local parked = P .. ':parked:' .. job
        moved = call('ZRANGE', parked, 0, n - 1)
        for _, id in ipairs(moved) do
            call('ZREM', parked, id)
            make_live(load(job .. '/' .. id))
        end
    end
    if #moved < n then
        call('SREM', P .. ':chores', job)
    end
    if #moved > 0 then
        touch(job)
    end
    return #moved
end

-- One bounded step of what cancel, retry or a plan began: 1 when more is left.
local function settle(job)
    chore(job, CHORE_MAX)
    return call('SISMEMBER', P .. ':chores', job)
end

-- Ends a lease without charging the attempt.
local function give_back(t)
    progress(t, 0)
    leave(t)
    call('HSET', t.key, 'closed', 'release', 'attempt', t.attempt - 1)
    make_ready(t)
    touch(t.job)
end

-- A worker went away with its lease: the attempt stays charged, and the task is ready again while
-- it has attempts left.
local function lapse(t)
    local v = call('HMGET', job_key(t.job), 'max_attempts', 'state')
    local reason = string.format('the lease of worker %s lapsed in attempt %d', t.worker, t.attempt)
    call('HSET', t.key, 'lost', t.lost + 1, 'reason_kind', 'transient', 'reason', reason)
    if is_ended[v[2]] then
        park(t, 'sweep')
    elseif t.attempt >= tonumber(v[1]) then
        fail_job(t, 'lapse', 'transient',
                 string.format('task %s: given up after %d attempts: %s', t.id, t.attempt, reason))
    else
        progress(t, 0)
        leave(t)
        call('HSET', t.key, 'closed', 'lapse')
        make_ready(t)
    end
    touch(t.job)
end

-- Housekeeping that any caller does in passing: promotes delayed tasks that are due, reaps lapsed
-- leases, goes on with one chore. At most n tasks are moved; returns how many.
local function maintain(n)
    local due = call('ZRANGEBYSCORE', P .. ':delayed', '-inf', int(now), 'LIMIT', 0, n)
    for _, ref in ipairs(due) do
        local t = load(ref)
        leave(t)
        make_ready(t)
    end
    local moved = #due
    if moved < n then
        local lapsed = call('ZRANGEBYSCORE', P .. ':leases', '-inf', int(now), 'LIMIT', 0, n - moved)
        for _, ref in ipairs(lapsed) do
            lapse(load(ref))
        end
        moved = moved + #lapsed
    end
    local job = moved < n and call('SRANDMEMBER', P .. ':chores')
    return job and moved + chore(job, n - moved) or moved
end
