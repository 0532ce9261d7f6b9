-- Stores the result of a task once, and creates what follows.
-- ARGV: ref, token, result, then pairs of pin name and value
-- Reply: {HELD | LOST | CANCELLED}; {PINNED, name, value there}: another commit of the job pinned
--   another value, nothing was changed.
-- Keeps: I8 (one result a task, HSETNX, never under a stale token); the fan-in: the commit that
--   takes `left` to zero creates the publish task in the same script. A repeat is HELD.
local j, t = load(ARGV[1])
local verdict, is_repeat = check(j, t, ARGV[2], 'commit')
if verdict ~= HELD or is_repeat then
    return {verdict}
end

local pins, names, new_pins = P .. ':pins:' .. j.id, {}, {}
for i = 4, #ARGV, 2 do
    names[#names + 1] = ARGV[i]
end
for i, there in ipairs(names[1] and call('HMGET', pins, unpack(names)) or {}) do
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
local field_of = {probe = 'source', publish = 'report'}
local stored
if field_of[t.kind] then
    stored = call('HSETNX', j.key, field_of[t.kind], ARGV[3])
else
    stored = call('HSETNX', P .. ':results:' .. j.id, t.id, ARGV[3])
end
if stored == 0 then
    return redis.error_reply('ERR ' .. ARGV[1] .. ' has a result but is not done')
end
if new_pins[1] then
    call('HSET', pins, unpack(new_pins))
end
finish(j, t)

if t.kind == 'probe' then
    next_stage(j, 'planning', 'plan')
elseif t.kind == 'publish' then
    close_job(j, 'done')
else
    j.left = j.left - 1
    if j.left == 0 then
        next_stage(j, 'publishing', 'publish')
    end
end
save_task(j, t)
save_job(j)
return {HELD}
