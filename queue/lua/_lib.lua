-- What the scripts share. queue/script.c puts in front of a script those of the definitions here, in
-- _move.lua, _end.lua and _keep.lua (in that order) that it uses, itself or through others.
--
-- KEYS[1] is the hash tag, "{transcode}", and every key begins with it, so that all of them lie in
-- one slot of a cluster. Time is the server's own. A task is named by its ref, "JOB/TASK"; a job id
-- holds no slash, so the first one parts the two.
--
-- Speed. A script costs what its redis.call()s cost, and a third of a microsecond for each function
-- that stands in front of it. So a job and a task are read by one call each into tables, changed
-- there, and written back by one call each (save_job, save_task): between two loads of the same job
-- lies a save.
--
-- Places (I7). A live task is in exactly one of ready, leases, delayed and has one entry in the
-- depth stream (I10). A task that is not live is done, staged (of a plan that is not let in yet) or
-- parked (of a job that ended).

local P = KEYS[1]
local call = redis.call
local HELD, LOST, CANCELLED, PINNED, TAKEN = 0, 1, 2, 3, 4

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- microseconds; exact in a double until the year 2255

local class_of = {probe = 'worker', video = 'worker', audio = 'worker',
                  plan = 'dispatcher', publish = 'dispatcher'}
local is_ended = {done = true, failed = true, cancelled = true}
local is_live = {ready = true, leased = true, delayed = true}

-- For numbers that become part of a key or of a text; as an argument of a call they can be bare.
local function int(n)
    return string.format('%d', n)
end

-- ---- jobs ----

-- Further names are read along: their values follow those below in the second result.
local JOB_FIELDS = 12
local function load_job(id, ...)
    local key = P .. ':job:' .. id
    local v = call('HMGET', key, 'state', 'tenant', 'priority', 'created', 'tasks', 'tasks_done',
                   'running', 'left', 'frames_done', 'revision', 'watched', 'max_attempts', ...)
    if not v[1] then
        return nil
    end
    return {id = id, key = key, state = v[1], tenant = v[2], priority = v[3], created = v[4],
            tasks = tonumber(v[5]), tasks_done = tonumber(v[6]), running = tonumber(v[7]),
            left = tonumber(v[8]), frames_done = tonumber(v[9]), revision = tonumber(v[10]),
            watched = tonumber(v[11] or 0), max_attempts = tonumber(v[12])}, v
end

-- Writes the fields given, and tells those who wait for the job: a stream of one entry whose id is
-- the revision.
local function save_fields(j, ...)
    j.revision = j.revision + 1
    call('HSET', j.key, 'revision', j.revision, 'updated', now, ...)
    if j.watched > now then
        call('XADD', P .. ':events:' .. j.id, 'MAXLEN', 1, int(j.revision) .. '-1', 'r', 1)
    end
end

-- Writes all that may have changed.
local function save_job(j)
    save_fields(j, 'state', j.state, 'tasks', j.tasks, 'tasks_done', j.tasks_done, 'running',
                j.running, 'left', j.left, 'frames_done', j.frames_done)
end

-- ---- tasks ----

local function parse(id, record)
    local state, kind, token, closed, depth, attempt, lost, frames, weight, cost, since, worker =
        string.match(record, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (.*)$')
    return {id = id, state = state, kind = kind, token = token, closed = closed, depth = depth,
            attempt = tonumber(attempt), lost = tonumber(lost), frames = tonumber(frames),
            weight = tonumber(weight), cost = tonumber(cost), since = since, worker = worker}
end

local function record_of(t)
    return string.format('%s %s %s %s %s %d %d %d %d %d %s %s', t.state, t.kind, t.token,
                         t.closed, t.depth, t.attempt, t.lost, t.frames, t.weight, t.cost, t.since,
                         t.worker)
end

local function save_task(j, t)
    call('HSET', P .. ':tasks:' .. j.id, t.id, record_of(t))
end

-- Job and task of a ref; the task is nil where either is not there.
local function load(ref)
    local id, task = string.match(ref, '^([^/]*)/(.*)$')
    local j = load_job(id)
    local record = j and call('HGET', P .. ':tasks:' .. id, task)
    return j, record and parse(task, record) or nil
end

-- What the holder of this token may still do (I11). `op` is how the caller would close the lease:
-- when it was closed in that way by that token already, the call is a repeat (second result).
local function check(j, t, token, op)
    if not t or t.token ~= token then
        return LOST, false
    end
    if t.closed == op then
        return HELD, true
    end
    if t.state == 'leased' then
        return is_ended[j.state] and CANCELLED or HELD, false
    end
    return is_ended[j.state] and t.closed == 'sweep' and CANCELLED or LOST, false
end

-- The attempt now counts for so many of the job's frames.
local function progress(j, t, frames)
    frames = math.max(0, math.min(frames, t.weight))
    if t.kind ~= 'video' or frames == t.frames then
        return false
    end
    j.frames_done = j.frames_done + frames - t.frames
    t.frames = frames
    return true
end
