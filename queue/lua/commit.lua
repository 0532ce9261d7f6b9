-- Stores the result of a task once, and creates what follows.
-- ARGV: ref, token, result, then pairs of pin name and value
-- Reply: {HELD | LOST | CANCELLED}; {PINNED, name, value there}: another commit of the job pinned
--   another value, nothing was changed.
-- Keeps: I8 (one result a task, HSETNX, never under a stale token); the fan-in: the commit that
--   takes `left` to zero creates the publish task in the same script. A repeat is HELD.
local t = load(ARGV[1])
local verdict, is_repeat = check(t, ARGV[2], 'commit')
if verdict ~= HELD or is_repeat then
    return {verdict}
end

local pins = P .. ':pins:' .. t.job
for i = 4, #ARGV, 2 do
    local there = call('HGET', pins, ARGV[i])
    if there and there ~= ARGV[i + 1] then
        return {PINNED, ARGV[i], there}
    end
end

-- Results that the job itself shows are kept with it.
local field_of = {probe = 'source', publish = 'report'}
local stored
if field_of[t.kind] then
    stored = call('HSETNX', job_key(t.job), field_of[t.kind], ARGV[3])
else
    stored = call('HSETNX', P .. ':results:' .. t.job, t.id, ARGV[3])
end
if stored == 0 then
    return redis.error_reply('ERR ' .. t.ref .. ' has a result but is not done')
end
for i = 4, #ARGV, 2 do
    call('HSETNX', pins, ARGV[i], ARGV[i + 1])
end
finish(t)

if t.kind == 'probe' then
    next_stage(t.job, 'planning', 'plan')
elseif t.kind == 'publish' then
    call('HSET', job_key(t.job), 'state', 'done', 'finished', int(now))
elseif call('HINCRBY', job_key(t.job), 'left', -1) == 0 then
    next_stage(t.job, 'publishing', 'publish')
end
touch(t.job)
return {HELD}
