-- Ends a job by request; its holders of leases are told by their next call.
-- ARGV: op (the caller's number of this call), id
-- Reply: {1, more} cancelled, by this op (more = 1: call settle); {0, 0} ended before;
--   {-1, 0} no such job.
-- Keeps: I9. A repeat answers as the first call did.
local op, id = ARGV[1], ARGV[2]
local state, last = unpack(call('HMGET', job_key(id), 'state', 'cancel_op'))
if not state then
    return {-1, 0}
end
if state == 'cancelled' and last == op then
    return {1, call('SISMEMBER', P .. ':chores', id)}
end
if is_ended[state] then
    return {0, 0}
end
call('HSET', job_key(id), 'cancel_op', op)
end_job(id, 'cancelled', 'cancelled', 'cancelled by request')
touch(id)
return {1, settle(id)}
