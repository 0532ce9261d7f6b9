-- I7 to I10, read from the keys alone. KEYS[1] = the prefix. Reply: the broken ones, in words.
local P = KEYS[1]
local call = redis.call
local faults = {}
local function claim(holds, fmt, ...)
    if not holds then
        faults[#faults + 1] = string.format(fmt, ...)
    end
end

local places = {[P .. ':ready:worker'] = 'ready', [P .. ':ready:dispatcher'] = 'ready',
                [P .. ':leases'] = 'leased', [P .. ':delayed'] = 'delayed'}
local place_of, in_places = {}, 0
for key, state in pairs(places) do
    for _, ref in ipairs(call('ZRANGE', key, 0, -1)) do
        claim(not place_of[ref], 'I7: %s is in two places', ref)
        place_of[ref] = state
        in_places = in_places + 1
    end
end

local is_live = {ready = true, leased = true, delayed = true}
local live, tokens = 0, {}
local ended = {done = true, failed = true, cancelled = true}
for _, job in ipairs(call('ZRANGE', P .. ':jobs', 0, -1)) do
    local key = P .. ':job:' .. job
    local flat, j = call('HGETALL', key), {}
    for i = 1, #flat, 2 do
        j[flat[i]] = flat[i + 1]
    end
    local done, running, frames, total, left, live_here, parked = 0, 0, 0, 0, 0, 0, 0
    for _, id in ipairs(call('ZRANGE', P .. ':tasks:' .. job, 0, -1)) do
        local ref = job .. '/' .. id
        local task = P .. ':task:' .. ref
        local state, kind, attempt, f, weight, token =
            unpack(call('HMGET', task, 'state', 'kind', 'attempt', 'frames', 'weight', 'token'))
        claim(place_of[ref] == (is_live[state] and state or nil), 'I7: %s is %s but in %s', ref,
              state, place_of[ref] or 'no place')
        claim(call('SISMEMBER', P .. ':live:' .. job, id) == (is_live[state] and 1 or 0),
              'I10: %s is %s: membership of live', ref, state)
        claim(tonumber(attempt) <= tonumber(j.max_attempts), 'I9: %s: attempt %s', ref, attempt)
        claim(not token or not tokens[token], 'I11: a token came twice')
        if token then
            tokens[token] = true
        end
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
        if state ~= 'done' and state ~= 'staged' and (kind == 'video' or kind == 'audio')
           or state == 'staged' and j.plan then
            left = left + 1
        end
        done = done + (state == 'done' and 1 or 0)
        running = running + (state == 'leased' and 1 or 0)
        live_here = live_here + (is_live[state] and 1 or 0)
        if kind == 'video' then
            frames = frames + tonumber(f)
            total = total + (j.plan and tonumber(weight) or 0)
            claim(state ~= 'done' or f == weight, 'I10: %s: done with %s frames', ref, f)
        end
        if state == 'parked' or state == 'staged' and j.plan then
            parked = parked + 1
        end
    end
    live = live + live_here
    claim(done == tonumber(j.tasks_done), 'I10: %s: tasks_done %s, not %d', job, j.tasks_done, done)
    claim(running == tonumber(j.running), 'I10: %s: running %s, not %d', job, j.running, running)
    claim(frames == tonumber(j.frames_done), 'I10: %s: frames_done %s, not %d', job, j.frames_done,
          frames)
    claim(total == tonumber(j.frames_total), 'I10: %s: frames_total', job)
    claim(left == tonumber(j.left), 'I10: %s: left %s, not %d', job, j.left, left)
    claim(parked == call('ZCARD', P .. ':parked:' .. job), 'I7: %s: %d parked', job, parked)
    local is_chore = call('SISMEMBER', P .. ':chores', job) == 1
    if ended[j.state] then
        claim(j.state == 'done' or j.reason, 'I9: %s ended without a reason', job)
        claim(live_here == 0 or is_chore, 'I9: %s ended with live tasks that nobody sweeps', job)
        claim(j.state ~= 'done' or done == tonumber(j.tasks), 'I8: %s is done without all', job)
    else
        claim(live_here > 0 or is_chore, 'I9: %s goes on with nothing to do', job)
        claim(parked == 0 or is_chore, 'I9: %s has tasks that nobody lets in', job)
    end
end
claim(in_places == live, 'I7: %d in places, %d live', in_places, live)
claim(call('XLEN', P .. ':depth') == live, 'I10: depth %d, live %d', call('XLEN', P .. ':depth'),
      live)
return faults
