-- Lets a failed or cancelled job go on from what is committed, with fresh attempts.
-- ARGV: op (the caller's number of this call), id
-- Reply: {1, more} goes on, by this op (more = 1: call settle); {0, 0} it is not failed or
--   cancelled; {-1, 0} no such job.
-- Keeps: I7, I9. A repeat answers as the first call did.
local op, id = ARGV[1], ARGV[2]
local key = job_key(id)
local state, last, resume = unpack(call('HMGET', key, 'state', 'retry_op', 'resume'))
if not state then
    return {-1, 0}
end
if last == op then
    return {1, call('SISMEMBER', P .. ':chores', id)}
end
if state ~= 'failed' and state ~= 'cancelled' then
    return {0, 0}
end
call('HSET', key, 'retry_op', op, 'state', resume, 'finished', 0)
call('HDEL', key, 'reason_kind', 'reason', 'resume')
call('SADD', P .. ':chores', id)
touch(id)
return {1, settle(id)}
