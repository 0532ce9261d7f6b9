-- Ends a job by request; its holders of leases are told by their next call.
-- ARGV: op (the caller's number of this call), id
-- Reply: {1, more} cancelled, by this op (more = 1: call settle); {0, 0} ended before;
--   {-1, 0} no such job.
-- Keeps: I9. A repeat answers as the first call did.
local op, id = ARGV[1], ARGV[2]
local j, v = load_job(id, 'cancel_op')
if not j then
    return {-1, 0}
end
if j.state == 'cancelled' and v[JOB_FIELDS + 1] == op then
    return {1, call('SISMEMBER', P .. ':chores', id)}
end
if is_ended[j.state] then
    return {0, 0}
end
call('HSET', j.key, 'cancel_op', op)
end_job(j, 'cancelled', 'cancelled', 'cancelled by request')
save_job(j)
return {1, settle(id)}
