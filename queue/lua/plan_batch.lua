-- Writes some tasks of a plan that is being committed; nobody can lease them yet.
-- ARGV: ref of the plan task, token, is_first, index of the first task here, then for each task:
--   id, kind, payload, weight, cost
-- Reply: {HELD, more}: more = 1 asks to send the first batch again (an earlier, unfinished plan is
--   being cleared away); {HELD, 2}: the plan is committed already; {LOST | CANCELLED};
--   {TAKEN, id}: the job has a task of that id.
-- Keeps: bounded time however many tasks an earlier attempt left behind; a repeat of a batch, or of
--   the whole from the first batch, by the holder of the lease, ends in the same tasks.
local FIRST = 3       -- probe and plan have the indexes before
local CLEAR_MAX = 1000 -- tasks of an older plan that one call clears away
local j, t = load(ARGV[1])
local verdict, is_repeat = check(j, t, ARGV[2], 'commit')
if verdict ~= HELD or is_repeat then
    return {verdict, 2}
end

local tasks, order = P .. ':tasks:' .. j.id, P .. ':order:' .. j.id
if ARGV[3] == '1' then
    local old, fields = call('ZRANGEBYSCORE', order, FIRST, '+inf', 'LIMIT', 0, CLEAR_MAX), {}
    for _, id in ipairs(old) do
        fields[#fields + 1] = id
        fields[#fields + 1] = '=' .. id
    end
    if old[1] then
        call('HDEL', tasks, unpack(fields))
        call('ZREM', order, unpack(old))
        if #old == CLEAR_MAX then
            return {HELD, 1}
        end
    end
end

local ids, fields, scores = {}, {}, {}
for i = 5, #ARGV, 5 do
    local id = ARGV[i]
    ids[#ids + 1] = id
    fields[#fields + 1] = id
    fields[#fields + 1] = new_record(ARGV[i + 1], ARGV[i + 3], ARGV[i + 4])
    fields[#fields + 1] = '=' .. id
    fields[#fields + 1] = ARGV[i + 2]
    scores[#scores + 1] = tonumber(ARGV[4]) + FIRST + #ids - 1
    scores[#scores + 1] = id
end
if not ids[1] then
    return {HELD, 0}
end
for i, record in ipairs(call('HMGET', tasks, unpack(ids))) do
    if record and not string.find(record, '^staged ') then
        return {TAKEN, ids[i]}
    end
end
call('HSET', tasks, unpack(fields))
call('ZADD', order, unpack(scores))
return {HELD, 0}
