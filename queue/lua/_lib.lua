-- What the scripts share. queue/script.c puts in front of a script those of the definitions here, in
-- _move.lua, _end.lua and _keep.lua (in that order) that it uses, itself or through others.
--
-- KEYS[1] is the hash tag, "{transcode}", and every key begins with it, so that all of them lie in
-- one slot of a cluster. Time is the server's own. A task is named by its ref, "JOB/TASK"; a job id
-- holds no slash, so the first one parts the two.
--
-- Speed. In thousands of instructions of the server: a script costs 20 before its first line, a call
-- of Redis 6 and 2 more for each field read or 3 for each written, a function or a small table that
-- stands in front of the script 1.5, a number given as argument 1, splitting a record into a table
-- 25. So a job and a task are read by one call each into tables, changed there, and what changed is
-- written back by one call each (save_job, save_task): between two loads of the same job lies a
-- save. Numbers stay the text they were read as (Lua counts with it all the same; only comparisons
-- want tonumber). lease, renew and commit, which come with every task, go without the tables and
-- read the fields that they need; what they need seldom stands behind their first return.
--
-- Places (I7). A live task is in exactly one of ready, leases, delayed and has one entry in the
-- depth stream (I10). A task that is not live is done, staged (of a plan that is not let in yet) or
-- parked (of a job that ended).

local P = KEYS[1]
local call = redis.call
local HELD, LOST, CANCELLED, PINNED, TAKEN = 0, 1, 2, 3, 4

local function int(n)
    return string.format('%d', n)
end

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- microseconds; exact in a double until the year 2255
local now_text = int(now)

local class_of = {probe = 'worker', video = 'worker', audio = 'worker',
                  plan = 'dispatcher', publish = 'dispatcher'}
local is_ended = {done = true, failed = true, cancelled = true}
local is_live = {ready = true, leased = true, delayed = true}

-- ---- jobs ----

-- Further names are read along: their values follow those below in the second result.
local JOB_FIELDS = 11
local function load_job(id, ...)
    local key = P .. ':job:' .. id
    local v = call('HMGET', key, 'state', 'tasks', 'tasks_done', 'running', 'left', 'frames_done',
                   'tenant', 'priority', 'created', 'updated', 'watched', ...)
    if not v[1] then
        return nil
    end
    return {id = id, key = key, was = v, state = v[1], tasks = v[2], tasks_done = v[3],
            running = v[4], left = v[5], frames_done = v[6], tenant = v[7], priority = v[8],
            created = v[9], updated = v[10], watched = v[11]}, v
end

-- Writes fields of a job and when that was, and tells those who wait for the job: a stream of one
-- entry whose id is the time of the change, which is another for each. Returns that time.
local function write_job(id, updated, watched, ...)
    updated = tonumber(updated) < now and now_text or int(updated + 1)
    call('HSET', P .. ':job:' .. id, 'updated', updated, ...)
    if watched and tonumber(watched) > now then
        call('XADD', P .. ':events:' .. id, 'MAXLEN', '1', updated .. '-1', 'r', '1')
    end
    return updated
end

-- Writes what changed.
local function save_job(j)
    local was, changes = j.was, {}
    for i, name in ipairs({'state', 'tasks', 'tasks_done', 'running', 'left', 'frames_done'}) do
        if j[name] ~= was[i] then
            changes[#changes + 1] = name
            changes[#changes + 1] = j[name]
        end
    end
    j.updated = write_job(j.id, j.updated, j.watched, unpack(changes))
end

-- ---- tasks ----

local function parse(id, record)
    local state, kind, token, closed, depth, attempt, lost, frames, weight, cost, since, worker =
        string.match(record, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (.*)$')
    return {id = id, state = state, kind = kind, token = token, closed = closed, depth = depth,
            attempt = attempt, lost = lost, frames = frames, weight = weight, cost = cost,
            since = since, worker = worker}
end

local function record_of(t)
    return t.state .. ' ' .. t.kind .. ' ' .. t.token .. ' ' .. t.closed .. ' ' .. t.depth .. ' ' ..
           t.attempt .. ' ' .. t.lost .. ' ' .. t.frames .. ' ' .. t.weight .. ' ' .. t.cost .. ' ' ..
           t.since .. ' ' .. t.worker
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
    if t.kind ~= 'video' then
        return false
    end
    frames = math.max(0, math.min(frames, t.weight))
    if frames == tonumber(t.frames) then
        return false
    end
    j.frames_done = j.frames_done + frames - t.frames
    t.frames = frames
    return true
end
