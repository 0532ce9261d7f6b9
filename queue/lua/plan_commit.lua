-- Stores the plan and turns the job to running with all tasks that plan_batch wrote.
-- ARGV: ref of the plan task, token, plan, number of tasks, source frames of the video tasks
-- Reply: {HELD, more}: more = 1: call settle until the tasks are all in (others would do it, too);
--   {LOST | CANCELLED, 0}; {TAKEN, tasks written}: they are not as many as told (ids came twice).
-- Keeps: I8; a job runs with all of its tasks or with none. A repeat is HELD.
local j, t = load(ARGV[1])
local count = tonumber(ARGV[4])
local verdict, is_repeat = check(j, t, ARGV[2], 'commit')
if verdict ~= HELD then
    return {verdict, 0}
end
if is_repeat then
    return {HELD, call('SISMEMBER', P .. ':chores', j.id)}
end

local written = call('ZCARD', P .. ':order:' .. j.id) - 2 -- without probe and plan
if written ~= count then
    return {TAKEN, written}
end
if call('HSETNX', j.key, 'plan', ARGV[3]) == 0 then
    return redis.error_reply('ERR ' .. ARGV[1] .. ' has a result but is not done')
end
finish(j, t)
save_task(j, t)
j.state, j.left, j.tasks = 'running', count, j.tasks + count
call('HSET', j.key, 'frames_total', ARGV[5], 'walk', 0)
if count == 0 then
    next_stage(j, 'publishing', 'publish')
    save_job(j)
    return {HELD, 0}
end
call('SADD', P .. ':chores', j.id)
save_job(j)
return {HELD, settle(j.id)}
