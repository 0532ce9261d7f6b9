-- Lets a failed or cancelled job go on from what is committed, with fresh attempts and, where its
-- deadline has passed, without one.
-- ARGV: op (the caller's number of this call), id
-- Reply: {1, more} goes on, by this op (more = 1: call settle); {0, 0} it is not failed or
--   cancelled; {-1, 0} no such job.
-- Keeps: I7, I9. A repeat answers as the first call did.
local op, id = ARGV[1], ARGV[2]
local j, v = load_job(id, 'retry_op', 'resume', 'dead', 'deadline')
if not j then
    return {-1, 0}
end
local last, resume, dead, deadline = unpack(v, JOB_FIELDS + 1, JOB_FIELDS + 4)
if last == op then
    return {1, call('SISMEMBER', P .. ':chores', id)}
end
if j.state ~= 'failed' and j.state ~= 'cancelled' then
    return {0, 0}
end
call('HSET', j.key, 'retry_op', op, 'finished', 0, 'walk', 0)
call('HDEL', j.key, 'reason_kind', 'reason', 'resume', 'dead')
call('HINCRBY', P .. ':tenant:' .. j.tenant, 'open', 1)
call('SADD', P .. ':chores', id)
if dead then
    call('ZREM', P .. ':dead', id .. '/' .. dead)
end
if tonumber(deadline or 0) > now then
    call('ZADD', P .. ':due', deadline, id)
else
    call('ZREM', P .. ':due', id)
end
j.state = resume
save_job(j)
return {1, settle(id)}
