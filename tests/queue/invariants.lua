-- I7 to I11, read from the keys alone. KEYS[1] = the prefix. Reply: the broken ones, in words.
local P = KEYS[1]
local call = redis.call
local faults = {}
local function claim(holds, fmt, ...)
    if not holds then
        faults[#faults + 1] = string.format(fmt, ...)
    end
end

local class_of = {probe = 'worker', video = 'worker', audio = 'worker',
                  plan = 'dispatcher', publish = 'dispatcher'}
local is_live = {ready = true, leased = true, delayed = true}
local ended = {done = true, failed = true, cancelled = true}

local place_of, lane_of, in_places = {}, {}, 0
local function look_into(key, state)
    for _, ref in ipairs(call('ZRANGE', key, 0, -1)) do
        claim(not place_of[ref], 'I7: %s is in two places', ref)
        place_of[ref], lane_of[ref] = state, key
        in_places = in_places + 1
    end
end
look_into(P .. ':leases', 'leased')
look_into(P .. ':delayed', 'delayed')

-- A lane with tasks stands in its band, or among those that were set aside, and nowhere else.
for _, lane in ipairs(call('KEYS', P .. ':ready:*')) do
    look_into(lane, 'ready')
    local class, priority, tenant = string.match(lane, ':ready:([^:]*):([^:]*):([^:]*)$')
    local band = class .. ':' .. priority
    local is_in = call('ZSCORE', P .. ':lanes:' .. band, tenant) and true or false
    local is_aside = call('SISMEMBER', P .. ':capped:' .. tenant, band) == 1
    claim(is_in ~= is_aside, 'I7: lane %s is not in line', lane)
end
for _, lanes in ipairs(call('KEYS', P .. ':lanes:*')) do
    local class, priority = string.match(lanes, ':lanes:([^:]*):([^:]*)$')
    claim(call('ZSCORE', P .. ':bands:' .. class, priority), 'I7: band %s is not in line', lanes)
    for _, tenant in ipairs(call('ZRANGE', lanes, 0, -1)) do
        claim(call('EXISTS', P .. ':ready:' .. class .. ':' .. priority .. ':' .. tenant) == 1,
              'I7: lane of %s in %s is empty', tenant, lanes)
    end
end
for _, class in ipairs({'worker', 'dispatcher'}) do
    for _, priority in ipairs(call('ZRANGE', P .. ':bands:' .. class, 0, -1)) do
        claim(call('EXISTS', P .. ':lanes:' .. class .. ':' .. priority) == 1,
              'I7: band %s of %s is empty', priority, class)
    end
end
for _, key in ipairs(call('KEYS', P .. ':capped:*')) do
    local tenant = string.match(key, ':capped:(.*)$')
    local cap = tonumber(call('HGET', P .. ':tenant:' .. tenant, 'running_max') or 0)
    claim(cap > 0 and tonumber(call('HGET', P .. ':tenant:' .. tenant, 'running')) >= cap,
          'I7: %s is set aside below its cap', tenant)
    for _, band in ipairs(call('SMEMBERS', key)) do
        claim(call('EXISTS', P .. ':ready:' .. band .. ':' .. tenant) == 1,
              'I7: an empty lane of %s is set aside', tenant)
    end
end

local live, tokens, dead = 0, {}, 0
local running_of, open_of = {}, {}
for _, job in ipairs(call('ZRANGE', P .. ':jobs', 0, -1)) do
    local flat, j = call('HGETALL', P .. ':job:' .. job), {}
    for i = 1, #flat, 2 do
        j[flat[i]] = flat[i + 1]
    end
    local done, running, frames, total, left, live_here, waiting = 0, 0, 0, 0, 0, 0, 0
    for _, id in ipairs(call('ZRANGE', P .. ':order:' .. job, 0, -1)) do
        local ref = job .. '/' .. id
        local state, kind, token, _, depth, attempt, _, f, weight =
            string.match(call('HGET', P .. ':tasks:' .. job, id),
                         '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) ')
        claim(place_of[ref] == (is_live[state] and state or nil), 'I7: %s is %s but in %s', ref,
              state, place_of[ref] or 'no place')
        if state == 'ready' then
            claim(lane_of[ref] == P .. ':ready:' .. class_of[kind] .. ':' .. j.priority .. ':' .. j.tenant,
                  'I7: %s is in the wrong lane', ref)
        end
        claim(is_live[state] and #call('XRANGE', P .. ':depth', depth, depth) == 1 or
              not is_live[state] and depth == '-', 'I10: %s is %s: its depth entry', ref, state)
        claim(tonumber(attempt) <= tonumber(j.max_attempts), 'I9: %s: attempt %s', ref, attempt)
        claim(token == '-' or not tokens[token], 'I11: a token came twice')
        tokens[token] = true
        local result
        if kind == 'probe' then
            result = j.source
        elseif kind == 'plan' then
            result = j.plan
        elseif kind == 'publish' then
            result = j.report
        else
            result = call('HGET', P .. ':results:' .. job, id)
        end
        claim((state == 'done') == (result and true or false), 'I8: %s is %s: its result', ref, state)
        if j.plan and state ~= 'done' and (kind == 'video' or kind == 'audio') then
            left = left + 1
        end
        done = done + (state == 'done' and 1 or 0)
        running = running + (state == 'leased' and 1 or 0)
        live_here = live_here + (is_live[state] and 1 or 0)
        if state == 'leased' and class_of[kind] == 'worker' then
            running_of[j.tenant] = (running_of[j.tenant] or 0) + 1
        end
        if kind == 'video' then
            frames = frames + tonumber(f)
            total = total + (j.plan and tonumber(weight) or 0)
            claim(state ~= 'done' or f == weight, 'I10: %s: done with %s frames', ref, f)
        end
        if state == 'parked' or state == 'staged' and j.plan then
            waiting = waiting + 1
        end
    end
    live = live + live_here
    claim(done == tonumber(j.tasks_done), 'I10: %s: tasks_done %s, not %d', job, j.tasks_done, done)
    claim(running == tonumber(j.running), 'I10: %s: running %s, not %d', job, j.running, running)
    claim(frames == tonumber(j.frames_done), 'I10: %s: frames_done %s, not %d', job, j.frames_done,
          frames)
    claim(total == tonumber(j.frames_total), 'I10: %s: frames_total', job)
    claim(left == tonumber(j.left), 'I10: %s: left %s, not %d', job, j.left, left)
    local is_chore = call('SISMEMBER', P .. ':chores', job) == 1
    local due = call('ZSCORE', P .. ':due', job)
    if ended[j.state] then
        claim(j.state == 'done' or j.reason, 'I9: %s ended without a reason', job)
        claim(live_here == 0 or is_chore, 'I9: %s ended with live tasks that nobody sweeps', job)
        claim(j.state ~= 'done' or done == tonumber(j.tasks), 'I8: %s is done without all', job)
        claim(due, 'I9: %s ended and is kept for ever', job)
    else
        open_of[j.tenant] = (open_of[j.tenant] or 0) + 1
        claim(live_here > 0 or is_chore, 'I9: %s goes on with nothing to do', job)
        claim(waiting == 0 or is_chore, 'I9: %s has tasks that nobody lets in', job)
        claim(not due or j.deadline, 'I9: %s goes on and is due without a deadline', job)
    end
    if j.dead then
        dead = dead + 1
        claim(call('ZSCORE', P .. ':dead', job .. '/' .. j.dead), 'I9: %s: its dead letter', job)
    end
end
claim(call('ZCARD', P .. ':dead') == dead, 'I9: dead letters of jobs that are not dead')
for _, key in ipairs(call('KEYS', P .. ':tenant:*')) do
    local tenant = string.match(key, ':tenant:(.*)$')
    local running, open = unpack(call('HMGET', key, 'running', 'open'))
    claim(tonumber(running or 0) == (running_of[tenant] or 0), 'I10: %s: running %s, not %d', tenant,
          running or 'none', running_of[tenant] or 0)
    claim(tonumber(open or 0) == (open_of[tenant] or 0), 'I10: %s: open %s, not %d', tenant,
          open or 'none', open_of[tenant] or 0)
end
for _, part in ipairs({'job', 'tasks', 'order', 'results', 'pins'}) do
    for _, key in ipairs(call('KEYS', P .. ':' .. part .. ':*')) do
        local job = string.sub(key, #P + #part + 3)
        claim(call('ZSCORE', P .. ':jobs', job), 'I9: %s belongs to no job', key)
    end
end
claim(in_places == live, 'I7: %d in places, %d live', in_places, live)
claim(call('XLEN', P .. ':depth') == live, 'I10: depth %d, live %d', call('XLEN', P .. ':depth'),
      live)
return faults
