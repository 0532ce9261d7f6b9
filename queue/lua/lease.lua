-- Claims the next ready task of a class, after a little housekeeping.
-- ARGV: class, worker, client (of the calling connection), nonce (of this call), lease_us
-- Reply: {1, job, task, kind, token, attempt, is_exclusive, payload, input, output, profile,
--   options, source, plan}; {0, wait_us}: nothing is ready, ask again when woken through
--   wake:CLASS or after wait_us.
-- Keeps: I7 (ready to leases in one step), I9 (the attempt is charged here, so crashes count),
--   tokens strictly increase. A repeat with the same client and nonce answers with the same lease
--   while it stands, so that a lost reply costs nothing.
local class, worker, client, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lease_us = tonumber(ARGV[5])
local HOUSEKEEPING = 16 -- tasks moved in passing
local ready = P .. ':ready:' .. class
local last = P .. ':client:' .. client

local function describe(ref)
    local t = load(ref)
    local job = call('HMGET', job_key(t.job), 'input', 'output', 'profile', 'options', 'source',
                     'plan')
    return {1, t.job, t.id, t.kind, t.token, t.attempt, t.lost >= 2 and 1 or 0,
            call('HGET', t.key, 'payload'), unpack(job, 1, 6)}
end

local function repeated()
    local given = call('GET', last)
    local n, token, ref = string.match(given or '', '^(%S+) (%S+) (.*)$')
    if n ~= nonce then
        return nil
    end
    local t = load(ref)
    return t.state == 'leased' and t.token == token and class_of[t.kind] == class and ref or nil
end

local function grant(t)
    local token = stamp()
    leave(t)
    call('ZADD', P .. ':leases', int(now + lease_us), t.ref)
    call('HSET', t.key, 'state', 'leased', 'token', token, 'attempt', t.attempt + 1,
         'worker', worker, 'closed', '')
    call('HINCRBY', job_key(t.job), 'running', 1)
    call('SET', last, nonce .. ' ' .. token .. ' ' .. t.ref, 'PX', math.ceil(lease_us / 1000))
    touch(t.job)
    if call('ZCARD', ready) > 0 and call('LLEN', P .. ':wake:' .. class) == 0 then
        wake(class, 1) -- there may be more waiters than the list could hold tokens for
    end
    return describe(t.ref)
end

-- Until when nothing can become ready by the passing of time alone.
local function wait_us()
    local wait = call('SCARD', P .. ':chores') > 0 and 0 or 1000000
    for _, place in ipairs({'delayed', 'leases'}) do
        local first = call('ZRANGE', P .. ':' .. place, 0, 0, 'WITHSCORES')
        if first[2] then
            wait = math.max(0, math.min(wait, tonumber(first[2]) - now))
        end
    end
    return wait
end

maintain(HOUSEKEEPING)
local again = repeated()
if again then
    return describe(again)
end
for _ = 1, HOUSEKEEPING do
    local ref = call('ZRANGE', ready, 0, 0)[1]
    if not ref then
        call('DEL', P .. ':wake:' .. class) -- tokens of tasks that were taken without waiting
        return {0, wait_us()}
    end
    local t = load(ref)
    if not is_ended[call('HGET', job_key(t.job), 'state')] then
        return grant(t)
    end
    park(t, 'sweep')
end
return {0, 0}
