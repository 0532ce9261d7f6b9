-- Creates a job and its probe task, or finds the job of that id.
-- ARGV: op (the caller's number of this call), id, max_attempts, deadline_us (from now; 0: none),
--   keep_us, open_max (where the tenant has no cap of its own), then pairs of field and value of
--   the spec, tenant and priority among them
-- Reply: {1} created, by this op; {0} there already with the same spec; {-1, field} there with
--   another value of that field; {-2, open, cap} the tenant has too many jobs open.
-- Keeps: I9: the job and its first task appear together. A repeat answers as the first call did.
local op, id, deadline_us = ARGV[1], ARGV[2], tonumber(ARGV[4])
local key, spec = P .. ':job:' .. id, {}

if call('EXISTS', key) == 1 then
    for i = 7, #ARGV, 2 do
        if call('HGET', key, ARGV[i]) ~= ARGV[i + 1] then
            return {-1, ARGV[i]}
        end
    end
    return {call('HGET', key, 'submit_op') == op and 1 or 0}
end

for i = 7, #ARGV, 2 do
    spec[ARGV[i]] = ARGV[i + 1]
end
local tenant = P .. ':tenant:' .. spec.tenant
local open, open_max = unpack(call('HMGET', tenant, 'open', 'open_max'))
open, open_max = tonumber(open or 0), tonumber(open_max or ARGV[6])
if open >= open_max then
    return {-2, open, open_max}
end

local created = stamp()
call('HSET', key, 'submit_op', op, 'max_attempts', ARGV[3], 'keep_us', ARGV[5], 'created', created,
     'finished', 0, 'tasks', 0, 'tasks_done', 0, 'running', 0, 'left', 0, 'frames_total', 0,
     'frames_done', 0, 'updated', 0, 'state', 'probing', unpack(ARGV, 7))
call('ZADD', P .. ':jobs', created, id)
call('HSET', tenant, 'open', open + 1)
call('SADD', P .. ':tenants', spec.tenant)
if deadline_us > 0 then
    call('HSET', key, 'deadline', int(now + deadline_us))
    call('ZADD', P .. ':due', int(now + deadline_us), id)
end
local j = load_job(id)
next_stage(j, 'probing', 'probe')
save_job(j)
return {1}
