-- Stamps, lanes, and the moves of a task from place to place. The caller saves job and task.
--
-- Who is next. Ready tasks stand in lanes, one for each class, priority and tenant, in the order of
-- their jobs. bands:CLASS holds the priorities with work, by when each was last served less AGE_US
-- for every point: the higher goes first, until a lower one has waited AGE_US for each point between
-- them. lanes:CLASS:PRIORITY holds the tenants with work, by virtual time: what each was served,
-- in units of cost over weight. A tenant at its running cap is taken out of there (capped:TENANT
-- remembers where) until one of its leases ends.

local WAKE_MAX = 64     -- tokens in a wake list
local AGE_US = 10000000 -- of waiting makes up for one point of priority

-- A number larger than every one before it, near the time: fencing tokens, and the order of jobs.
local function stamp()
    local s = now_text
    local last = tonumber(call('SET', P .. ':stamp', s, 'GET') or 0)
    if last >= now then
        s = int(last + 1)
        call('SET', P .. ':stamp', s)
    end
    return s
end

-- Wakes up to n callers of lease.
local function wake(class, n)
    local key, tokens = P .. ':wake:' .. class, {}
    for i = 1, math.min(n, WAKE_MAX - call('LLEN', key)) do
        tokens[i] = '1'
    end
    if tokens[1] then
        call('LPUSH', key, unpack(tokens))
    end
end

local function open_lane(class, priority, tenant)
    local band, bands = class .. ':' .. priority, P .. ':bands:' .. class
    local lanes = P .. ':lanes:' .. band
    local first = call('ZRANGE', lanes, '0', '0', 'WITHSCORES')[2]
    local seen = call('HMGET', P .. ':virtual', band, band .. ':' .. tenant)
    call('ZADD', lanes, math.max(tonumber(first or 0), tonumber(seen[1] or 0), tonumber(seen[2] or 0)),
         tenant)
    if call('ZADD', bands, 'NX', int(now - priority * AGE_US), priority) == 1 then
        local all = call('ZRANGE', bands, 0, 2)
        if #all == 2 then -- the other one was alone, and has waited for nobody
            call('ZADD', bands, now - all[1] * AGE_US, all[1], now - all[2] * AGE_US, all[2])
        end
    end
end

local function close_lane(class, priority, tenant, virtual)
    local band = class .. ':' .. priority
    call('ZREM', P .. ':lanes:' .. band, tenant)
    call('HSET', P .. ':virtual', band .. ':' .. tenant, virtual)
    if call('EXISTS', P .. ':lanes:' .. band) == 0 then
        call('ZREM', P .. ':bands:' .. class, priority)
    end
end

-- Lets the lanes in again that were set aside while the tenant was at its cap.
local function uncap(tenant)
    local key = P .. ':capped:' .. tenant
    local bands = call('SMEMBERS', key)
    for _, band in ipairs(bands) do
        local class, priority = string.match(band, '^(.*):(.*)$')
        open_lane(class, priority, tenant)
        wake(class, 1)
    end
    if bands[1] then
        call('DEL', key)
    end
end

local function lane_of(j, class)
    return P .. ':ready:' .. class .. ':' .. j.priority .. ':' .. j.tenant
end

-- Lines up n tasks of a job: score, ref, score, ref...
local function line_up(j, class, n, ...)
    local lane = lane_of(j, class)
    call('ZADD', lane, ...)
    if call('ZCARD', lane) == n then
        open_lane(class, j.priority, j.tenant)
    end
    wake(class, n)
end

local function step_out(j, t)
    local class = class_of[t.kind]
    local band, lane = class .. ':' .. j.priority, lane_of(j, class)
    if call('ZREM', lane, j.id .. '/' .. t.id) == 1 and call('EXISTS', lane) == 0 then
        local virtual = call('ZSCORE', P .. ':lanes:' .. band, j.tenant)
        if virtual then
            close_lane(class, j.priority, j.tenant, virtual)
        else
            call('SREM', P .. ':capped:' .. j.tenant, band)
        end
    end
end

local function end_lease(j, t)
    call('ZREM', P .. ':leases', j.id .. '/' .. t.id)
    j.running = j.running - 1
    if class_of[t.kind] == 'worker' then
        call('HINCRBY', P .. ':tenant:' .. j.tenant, 'running', '-1')
        uncap(j.tenant)
    end
end

-- Takes a live task out of the place it is in.
local function leave(j, t)
    if t.state == 'ready' then
        step_out(j, t)
    elseif t.state == 'delayed' then
        call('ZREM', P .. ':delayed', j.id .. '/' .. t.id)
    elseif t.state == 'leased' then
        end_lease(j, t)
    end
end

local function make_ready(j, t)
    t.state = 'ready'
    line_up(j, class_of[t.kind], 1, j.created, j.id .. '/' .. t.id)
end

local function make_delayed(j, t, delay_us)
    t.state = 'delayed'
    call('ZADD', P .. ':delayed', int(now + delay_us), j.id .. '/' .. t.id)
end

-- The depth entry of a task that comes to life. It is wide because Redis packs a stream's entries
-- into nodes of 4 KiB or 100, and XDEL walks over those before it in the node.
local function enter(ref)
    return call('XADD', P .. ':depth', '*', 'task', string.format('%-99s', ref))
end

-- Sets a live task aside until its job is retried. `closed`: how its lease ended, where it has one.
local function park(j, t, closed)
    progress(j, t, 0)
    if t.state == 'leased' then
        t.closed = closed
    end
    leave(j, t)
    call('XDEL', P .. ':depth', t.depth)
    t.state, t.depth = 'parked', '-'
end

-- A leased task is done.
local function finish(j, t)
    progress(j, t, t.weight)
    end_lease(j, t)
    call('XDEL', P .. ':depth', t.depth)
    t.state, t.closed, t.depth = 'done', 'commit', '-'
    j.tasks_done = j.tasks_done + 1
end

local function new_record(kind, weight, cost)
    return 'staged ' .. kind .. ' - - - 0 0 0 ' .. weight .. ' ' .. cost .. ' 0 -'
end

-- Creates the one task of a job's next stage.
local function next_stage(j, state, kind)
    local t = parse(kind, new_record(kind, '0', '1'))
    j.state = state
    j.tasks = j.tasks + 1
    t.depth = enter(j.id .. '/' .. kind)
    make_ready(j, t)
    call('HSET', P .. ':tasks:' .. j.id, kind, record_of(t), '=' .. kind, '{}')
    call('ZADD', P .. ':order:' .. j.id, j.tasks, kind)
end

-- The job has ended: it no longer counts for its tenant, and goes after its time.
local function close_job(j, state)
    local keep_us = call('HGET', j.key, 'keep_us')
    j.state = state
    call('HSET', j.key, 'finished', now_text)
    call('HINCRBY', P .. ':tenant:' .. j.tenant, 'open', -1)
    call('ZADD', P .. ':due', int(now + keep_us), j.id)
end
