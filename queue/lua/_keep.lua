-- Housekeeping: what time alone brings about.

local AWAY_US = 5000000   -- without housekeeping: nobody could reach this server
local MERCY_US = 15000000 -- for which leases stand after that
local STEP_US = 2000000   -- by which a clock may go back unheeded

-- A worker went away with its lease: the attempt stays charged, and the task is ready again while
-- it has attempts left.
local function lapse(j, t)
    local reason = 'the lease of worker ' .. t.worker .. ' lapsed in attempt ' .. t.attempt
    t.lost = t.lost + 1
    explain(j, t, 'transient', reason, '')
    if is_ended[j.state] then
        park(j, t, 'sweep')
    elseif tonumber(t.attempt) >= tonumber(call('HGET', j.key, 'max_attempts')) then
        fail_job(j, t, 'lapse', 'transient',
                 string.format('task %s: given up after %s attempts: %s', t.id, t.attempt, reason))
    else
        progress(j, t, 0)
        leave(j, t)
        t.closed = 'lapse'
        make_ready(j, t)
    end
end

local function promote(j, t)
    leave(j, t)
    make_ready(j, t)
end

-- Does `act` to up to n tasks whose time in the place has come; returns how many.
local function tasks_due(place, n, act)
    local refs = call('ZRANGEBYSCORE', P .. ':' .. place, '-inf', now, 'LIMIT', 0, n)
    for _, ref in ipairs(refs) do
        local j, t = load(ref)
        act(j, t)
        save_task(j, t)
        save_job(j)
    end
    return #refs
end

local function expire(id)
    local v = call('HMGET', P .. ':job:' .. id, 'dead')
    call('ZREM', P .. ':dead', id .. '/' .. (v[1] or ''))
    call('ZREM', P .. ':jobs', id)
    call('ZREM', P .. ':due', id)
    for _, part in ipairs({'job', 'tasks', 'order', 'results', 'pins', 'events'}) do
        call('UNLINK', P .. ':' .. part .. ':' .. id)
    end
end

-- Jobs whose deadline passed fail; ended ones that were kept long enough go.
local function jobs_due(n)
    local ids = call('ZRANGEBYSCORE', P .. ':due', '-inf', now, 'LIMIT', 0, n)
    for _, id in ipairs(ids) do
        local j = load_job(id)
        if not is_ended[j.state] then
            end_job(j, 'failed', 'cancelled',
                    string.format('the deadline passed with %s of %s tasks done', j.tasks_done,
                                  j.tasks))
            save_job(j)
        elseif call('SISMEMBER', P .. ':chores', id) == 1 then
            call('ZADD', P .. ':due', now + 1000000, id) -- its tasks are still on the move
        else
            expire(id)
        end
    end
    return #ids
end

-- The clock of the server was set back: what is due later on must not wait for that long, nor who
-- was served before it.
local function turn_back(us)
    for _, place in ipairs({'leases', 'delayed', 'bands:worker', 'bands:dispatcher'}) do
        local all = call('ZRANGE', P .. ':' .. place, 0, -1, 'WITHSCORES')
        for i = 1, #all, 2 do
            call('ZADD', P .. ':' .. place, int(all[i + 1] - us), all[i])
        end
    end
end

-- Whether leases lapse now. When nobody did housekeeping for long, the server was away (or its
-- clock was moved), and holders could not renew: they get time to do so before their work is given
-- to others.
local function is_reaping()
    local seen = tonumber(call('SET', P .. ':beat', now, 'GET') or now)
    if now < seen - STEP_US then
        turn_back(seen - now)
    end
    if now > seen + AWAY_US then
        call('SET', P .. ':mercy', 1, 'PX', MERCY_US / 1000)
        return false
    end
    return call('EXISTS', P .. ':mercy') == 0
end

-- What any caller does in passing. Moves at most n tasks; returns how many.
local function maintain(n)
    local moved = tasks_due('delayed', n, promote)
    if is_reaping() and moved < n then
        moved = moved + tasks_due('leases', n - moved, lapse)
    end
    if moved < n then
        moved = moved + jobs_due(n - moved)
    end
    local job = moved < n and call('SRANDMEMBER', P .. ':chores')
    if job then
        moved = moved + chore(job, n - moved)
    end
    return moved
end
