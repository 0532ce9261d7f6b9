-- Reads the results of a job's committed tasks of one kind, in task order.
-- ARGV: job, kind, rank to begin from, count of tasks to look at
-- Reply: {1 when there may be more, else 0, id, result, id, result, ...}
-- Changes nothing.
local job, kind, from, count = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ids = call('ZRANGE', P .. ':order:' .. job, from, from + count - 1)
local reply = {#ids == count and 1 or 0}
for _, id in ipairs(ids) do
    if parse(id, call('HGET', P .. ':tasks:' .. job, id)).kind == kind then
        local result = call('HGET', P .. ':results:' .. job, id)
        if result then
            reply[#reply + 1] = id
            reply[#reply + 1] = result
        end
    end
end
return reply
