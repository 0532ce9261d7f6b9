-- Writes some tasks of a plan that is being committed; nobody can lease them yet.
-- ARGV: ref of the plan task, token, is_first, index of the first task here, then for each task:
--   id, kind, payload, weight
-- Reply: {HELD, more}: more = 1 asks to send the first batch again (an earlier, unfinished plan is
--   being cleared away); {HELD, 2}: the plan is committed already; {LOST | CANCELLED};
--   {TAKEN, id}: the job has a task of that id.
-- Keeps: bounded time however many tasks an earlier attempt left behind; a repeat of a batch, or of
--   the whole from the first batch, by the holder of the lease, ends in the same tasks.
local t = load(ARGV[1])
local verdict, is_repeat = check(t, ARGV[2], 'commit')
if verdict ~= HELD or is_repeat then
    return {verdict, 2}
end

local staged = P .. ':staged:' .. t.job
if ARGV[3] == '1' then
    for _, id in ipairs(call('ZRANGE', staged, 0, 4 * CHORE_MAX - 1)) do
        call('DEL', task_key(t.job .. '/' .. id))
        call('ZREM', staged, id)
        call('ZREM', P .. ':tasks:' .. t.job, id)
    end
    if call('ZCARD', staged) > 0 then
        return {HELD, 1}
    end
end
-- Indexes go on from those of probe and plan.
local index = tonumber(ARGV[4]) + 3
for i = 5, #ARGV, 4 do
    local id = ARGV[i]
    local state = call('HGET', task_key(t.job .. '/' .. id), 'state')
    if state and state ~= 'staged' then
        return {TAKEN, id}
    end
    write_task(t.job, id, ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], index)
    call('ZADD', staged, index, id)
    index = index + 1
end
return {HELD, 0}
