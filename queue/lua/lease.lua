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
local LOOKS = 16 -- lanes set aside before one is found
local last, call_of = P .. ':client:' .. client, class .. ' ' .. nonce

-- The lease that this very call was given before, or else the task whose turn it is, and the next.
local again, ref, behind
local n, old, held = string.match(call('GET', last) or '', '^(%S+ %S+) (%S+) (.*)$')
if n == call_of then
    local id, task = string.match(held, '^([^/]*)/(.*)$')
    local record = call('HGET', P .. ':tasks:' .. id, task)
    again = record and string.find(record, '^leased %S+ ' .. old .. ' ') and held
end
local bands = P .. ':bands:' .. class
local band, lanes, lane, priority, tenant, weight, is_contended
for _ = 1, again and 0 or LOOKS do
    priority, is_contended = unpack(call('ZRANGE', bands, '0', '1'))
    if not priority then
        break
    end
    band = class .. ':' .. priority
    lanes = P .. ':lanes:' .. band
    tenant = call('ZRANGE', lanes, '0', '0')[1]
    local v = call('HMGET', P .. ':tenant:' .. tenant, 'running', 'running_max', 'weight')
    local cap = tonumber(v[2] or 0)
    if class ~= 'worker' or cap == 0 or tonumber(v[1] or 0) < cap then
        lane, weight = P .. ':ready:' .. band .. ':' .. tenant, v[3]
        ref, behind = unpack(call('ZRANGE', lane, '0', '1'))
        break
    end
    call('SADD', P .. ':capped:' .. tenant, band)
    close_lane(class, priority, tenant, call('ZSCORE', lanes, tenant))
end
if again or ref then
    local id, task = string.match(again or ref, '^([^/]*)/(.*)$')
    local key, tasks = P .. ':job:' .. id, P .. ':tasks:' .. id
    local state, running, created, updated, watched =
        unpack(call('HMGET', key, 'state', 'running', 'created', 'updated', 'watched'))
    local record, payload = unpack(call('HMGET', tasks, task, '=' .. task))
    local kind, token, depth, attempt, lost, frames, cost =
        string.match(record, '^%S+ (%S+) (%S+) %S+ (%S+) (%S+) (%S+) (%S+ %S+) (%S+)')
    if ref then
        if is_ended[state] then
            return {2, id}
        end

        -- Out of its lane, and the tenant is charged.
        call('ZREM', lane, ref)
        if is_contended then
            call('ZADD', bands, int(now - priority * AGE_US), priority)
        end
        local charge = weight and cost / weight or cost
        if behind then
            call('ZINCRBY', lanes, charge, tenant)
        else
            local virtual = call('ZSCORE', lanes, tenant)
            call('HSET', P .. ':virtual', band, virtual)
            close_lane(class, priority, tenant, virtual + charge)
        end

        token, attempt = stamp(), attempt + 1
        call('ZADD', P .. ':leases', int(now + lease_us), ref)
        if class == 'worker' then
            call('HINCRBY', P .. ':tenant:' .. tenant, 'running', '1')
        end
        call('HSET', tasks, task,
             'leased ' .. kind .. ' ' .. token .. ' - ' .. depth .. ' ' .. attempt .. ' ' .. lost ..
             ' ' .. frames .. ' ' .. cost .. ' ' .. now_text .. ' ' .. worker)
        write_job(id, updated, watched, 'running', running + 1)
        call('SET', last, call_of .. ' ' .. token .. ' ' .. ref, 'PX', math.ceil(lease_us / 1000))
        if ARGV[6] == '1' and call('EXISTS', bands) == 1 then
            wake(class, 1) -- there may be more waiters than the list could hold tokens for
        end
    end
    local spec = ARGV[7] == id .. ' ' .. created and {} or
        call('HMGET', key, 'tenant', 'priority', 'input', 'output', 'profile', 'options', 'source',
             'plan')
    return {1, id, task, kind, token, attempt, tonumber(lost) >= 2 and 1 or 0, payload, created,
            unpack(spec)}
end

-- Nothing is ready. Until when can nothing become so by the passing of time alone?
call('DEL', P .. ':wake:' .. class) -- tokens of tasks that were taken without waiting
local is_busy = call('SCARD', P .. ':chores') > 0 or call('EXISTS', bands) == 1
local is_mercy = call('EXISTS', P .. ':mercy') == 1
local wait = is_busy and 0 or 1000000
for _, place in ipairs({'delayed', not is_mercy and 'leases' or nil}) do
    local first = call('ZRANGE', P .. ':' .. place, 0, 0, 'WITHSCORES')
    if first[2] then
        wait = math.max(0, math.min(wait, tonumber(first[2]) - now))
    end
end
return {0, wait}
