-- Stores the result of a task once, and creates what follows.
-- ARGV: ref, token, result, then pairs of pin name and value
-- Reply: {HELD | LOST | CANCELLED}; {PINNED, name, value there}: another commit of the job pinned
--   another value, nothing was changed.
-- Keeps: I8 (one result a task, HSETNX, never under a stale token); the fan-in: the commit that
--   takes `left` to zero creates the publish task in the same script. A repeat is HELD.
local ref, token, result = ARGV[1], ARGV[2], ARGV[3]
local id, task = string.match(ref, '^([^/]*)/(.*)$')
local key, tasks = P .. ':job:' .. id, P .. ':tasks:' .. id
local state, tasks_done, running, left, frames_done, tenant, updated, watched =
    unpack(call('HMGET', key, 'state', 'tasks_done', 'running', 'left', 'frames_done', 'tenant',
                'updated', 'watched'))
local kind, depth, attempts, frames, weight, rest =
    string.match(call('HGET', tasks, task) or '',
                 '^leased (%S+) ' .. token .. ' %- (%S+) (%S+ %S+) (%S+) (%S+)(.*)$')
local is_held = kind and not is_ended[state] -- or it is stale, or a repeat
local is_capped, is_chunk
if is_held then
    local pins, names, new_pins = P .. ':pins:' .. id, {}, {}
    for i = 4, #ARGV, 2 do
        names[#names + 1] = ARGV[i]
    end
    for i, there in ipairs(names[1] and call('HMGET', pins, unpack(names)) or names) do
        local value = ARGV[2 * i + 3]
        if there and there ~= value then
            return {PINNED, names[i], there}
        end
        if not there then
            new_pins[#new_pins + 1] = names[i]
            new_pins[#new_pins + 1] = value
        end
    end

    -- Results that the job itself shows are kept with it.
    local stored
    is_chunk = kind ~= 'probe' and kind ~= 'publish'
    if is_chunk then
        stored = call('HSETNX', P .. ':results:' .. id, task, result)
    else
        stored = call('HSETNX', key, kind == 'probe' and 'source' or 'report', result)
    end
    if stored == 0 then
        return redis.error_reply('ERR ' .. ref .. ' has a result but is not done')
    end
    if new_pins[1] then
        call('HSET', pins, unpack(new_pins))
    end

    -- What finish() does.
    call('ZREM', P .. ':leases', ref)
    call('XDEL', P .. ':depth', depth)
    if kind ~= 'publish' then -- of a worker
        call('HINCRBY', P .. ':tenant:' .. tenant, 'running', '-1')
        is_capped = call('EXISTS', P .. ':capped:' .. tenant) == 1
    end
    if kind == 'video' then
        frames_done, frames = frames_done + weight - frames, weight
    end
    call('HSET', tasks, task,
         'done ' .. kind .. ' ' .. token .. ' commit - ' .. attempts .. ' ' .. frames .. ' ' ..
         weight .. rest)
    left = is_chunk and left - 1 or left -- 0: the last one
    write_job(id, updated, watched, 'running', running - 1, 'tasks_done', tasks_done + 1, 'left',
              left, 'frames_done', frames_done)
    if is_chunk and left > 0 and not is_capped then
        return {HELD}
    end
end

if not is_held then
    local j, t = load(ref)
    return {(check(j, t, token, 'commit'))} -- HELD: a repeat
end
if is_capped then
    uncap(tenant)
end
if is_chunk and left > 0 then
    return {HELD}
end
local j = load_job(id)
if kind == 'probe' then
    next_stage(j, 'planning', 'plan')
elseif kind == 'publish' then
    close_job(j, 'done')
else
    next_stage(j, 'publishing', 'publish')
end
save_job(j)
return {HELD}
