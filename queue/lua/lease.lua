-- Claims the next ready task of a class.
-- ARGV: class, worker, client (of the calling connection), nonce (of this call), lease_us,
--   is_woken (1: this caller took a token of the wake list), known (the "JOB CREATED" whose spec,
--   source and plan the caller still has)
-- Reply: {1, job, task, kind, token, attempt, is_exclusive, payload, created, then, unless known:
--   tenant, priority, input, output, profile, options, source, plan}; {0, wait_us}: nothing is ready,
--   ask again when woken through wake:CLASS or after wait_us; {2, job}: call settle for that job,
--   whose end is not swept yet, then ask again.
-- Keeps: I7 (ready to leases in one step), I9 (the attempt is charged here, so crashes count),
--   tokens strictly increase. A repeat with the same client and nonce answers with the same lease
--   while it stands, so that a lost reply costs nothing.
local class, worker, client, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lease_us = tonumber(ARGV[5])
local LOOKS = 16 -- lanes or tasks set aside before one is found
local last = P .. ':client:' .. client

local function load_whole(ref)
    local id, task = string.match(ref, '^([^/]*)/(.*)$')
    local j = load_job(id)
    local two = j and call('HMGET', P .. ':tasks:' .. id, task, '=' .. task)
    if not j or not two[1] then
        return nil
    end
    local t = parse(task, two[1])
    t.payload = two[2]
    return j, t
end

local function describe(j, t)
    local spec = {}
    if ARGV[7] ~= j.id .. ' ' .. j.created then
        spec = call('HMGET', j.key, 'tenant', 'priority', 'input', 'output', 'profile', 'options',
                    'source', 'plan')
    end
    return {1, j.id, t.id, t.kind, t.token, t.attempt, tonumber(t.lost) >= 2 and 1 or 0, t.payload,
            j.created, unpack(spec)}
end

local function repeated()
    local n, token, ref = string.match(call('GET', last) or '', '^(%S+) (%S+) (.*)$')
    if n ~= nonce then
        return nil
    end
    local j, t = load_whole(ref)
    if t and t.state == 'leased' and t.token == token and class_of[t.kind] == class then
        return describe(j, t)
    end
end

-- Takes the first task of the tenant whose turn it is, and charges the tenant for it.
local function take(priority, tenant, virtual, weight, is_contended)
    local band = class .. ':' .. priority
    local lane = P .. ':ready:' .. band .. ':' .. tenant
    local two = call('ZRANGE', lane, '0', '1')
    local j, t = load_whole(two[1])
    if is_ended[j.state] then
        return j, nil
    end
    call('ZREM', lane, two[1])
    if is_contended then
        call('ZADD', P .. ':bands:' .. class, int(now - priority * AGE_US), priority)
    end
    local charged = virtual + t.cost / weight
    if two[2] then
        call('ZADD', P .. ':lanes:' .. band, charged, tenant)
    else
        call('HSET', P .. ':virtual', band, virtual)
        close_lane(class, priority, tenant, charged)
    end
    return j, t
end

-- Job and task whose turn it is, the task out of its place; a job without a task: it has ended, and
-- what is left of it has to be swept first; nil: none.
local function next_task()
    for _ = 1, LOOKS do
        local bands = call('ZRANGE', P .. ':bands:' .. class, '0', '1')
        if not bands[1] then
            return nil
        end
        local band = class .. ':' .. bands[1]
        local tenant, virtual = unpack(call('ZRANGE', P .. ':lanes:' .. band, '0', '0', 'WITHSCORES'))
        local v = call('HMGET', P .. ':tenant:' .. tenant, 'running', 'running_max', 'weight')
        local cap = tonumber(v[2] or 0)
        if class ~= 'worker' or cap == 0 or tonumber(v[1] or 0) < cap then
            return take(bands[1], tenant, tonumber(virtual), tonumber(v[3] or 1), bands[2] ~= nil)
        end
        call('SADD', P .. ':capped:' .. tenant, band)
        close_lane(class, bands[1], tenant, virtual)
    end
end

local function grant(j, t)
    t.token = stamp()
    t.state, t.attempt, t.worker, t.closed, t.since = 'leased', t.attempt + 1, worker, '-', now_text
    j.running = j.running + 1
    call('ZADD', P .. ':leases', int(now + lease_us), j.id .. '/' .. t.id)
    if class == 'worker' then
        call('HINCRBY', P .. ':tenant:' .. j.tenant, 'running', '1')
    end
    save_task(j, t)
    save_job(j)
    call('SET', last, nonce .. ' ' .. t.token .. ' ' .. j.id .. '/' .. t.id, 'PX',
         math.ceil(lease_us / 1000))
    if ARGV[6] == '1' and call('EXISTS', P .. ':bands:' .. class) == 1 then
        wake(class, 1) -- there may be more waiters than the list could hold tokens for
    end
    return describe(j, t)
end

-- Until when nothing can become ready by the passing of time alone.
local function wait_us()
    local is_busy = call('SCARD', P .. ':chores') > 0 or call('EXISTS', P .. ':bands:' .. class) == 1
    local wait = is_busy and 0 or 1000000
    local is_mercy = call('EXISTS', P .. ':mercy') == 1
    for _, place in ipairs({'delayed', not is_mercy and 'leases' or nil}) do
        local first = call('ZRANGE', P .. ':' .. place, 0, 0, 'WITHSCORES')
        if first[2] then
            wait = math.max(0, math.min(wait, tonumber(first[2]) - now))
        end
    end
    return wait
end

local again = repeated()
if again then
    return again
end
local j, t = next_task()
if t then
    return grant(j, t)
end
if j then
    return {2, j.id}
end
call('DEL', P .. ':wake:' .. class) -- tokens of tasks that were taken without waiting
return {0, wait_us()}
