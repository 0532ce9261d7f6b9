-- Creates a job and its probe task, or finds the job of that id.
-- ARGV: op (the caller's number of this call), id, max_attempts, input, output, profile, options
-- Reply: {1} created, by this op; {0} there already with the same spec; {-1, field} there with
--   another value of that field.
-- Keeps: I9: the job and its first task appear together. A repeat answers as the first call did.
local op, id, max_attempts = ARGV[1], ARGV[2], ARGV[3]
local spec = {'input', ARGV[4], 'output', ARGV[5], 'profile', ARGV[6], 'options', ARGV[7]}
local key = job_key(id)

if call('EXISTS', key) == 1 then
    for i = 1, #spec, 2 do
        if call('HGET', key, spec[i]) ~= spec[i + 1] then
            return {-1, spec[i]}
        end
    end
    return {call('HGET', key, 'submit_op') == op and 1 or 0}
end

local created = stamp()
call('HSET', key, 'submit_op', op, 'max_attempts', max_attempts, 'created', created,
     'finished', 0, 'tasks', 0, 'tasks_done', 0, 'running', 0, 'left', 0, 'frames_total', 0,
     'frames_done', 0, 'revision', 0, unpack(spec))
call('ZADD', P .. ':jobs', created, id)
next_stage(id, 'probing', 'probe')
touch(id)
return {1}
