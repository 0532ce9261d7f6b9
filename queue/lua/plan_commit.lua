-- Stores the plan and turns the job to running with all tasks that plan_batch wrote.
-- ARGV: ref of the plan task, token, plan, number of tasks, source frames of the video tasks
-- Reply: {HELD, more}: more = 1: call settle until the tasks are all in (others would do it, too);
--   {LOST | CANCELLED, 0}; {TAKEN, tasks written}: they are not as many as told (ids came twice).
-- Keeps: I8; a job runs with all of its tasks or with none. A repeat is HELD.
local t = load(ARGV[1])
local count = tonumber(ARGV[4])
local verdict, is_repeat = check(t, ARGV[2], 'commit')
if verdict ~= HELD then
    return {verdict, 0}
end
if is_repeat then
    return {HELD, call('SISMEMBER', P .. ':chores', t.job)}
end

local key, staged = job_key(t.job), P .. ':staged:' .. t.job
local written = call('ZCARD', staged)
if written ~= count then
    return {TAKEN, written}
end
if call('HSETNX', key, 'plan', ARGV[3]) == 0 then
    return redis.error_reply('ERR ' .. t.ref .. ' has a result but is not done')
end
finish(t)
call('HSET', key, 'state', 'running', 'left', count, 'frames_total', ARGV[5])
call('HINCRBY', key, 'tasks', count)
if count == 0 then
    next_stage(t.job, 'publishing', 'publish')
else
    call('RENAME', staged, P .. ':parked:' .. t.job)
    call('SADD', P .. ':chores', t.job)
end
touch(t.job)
return {HELD, settle(t.job)}
