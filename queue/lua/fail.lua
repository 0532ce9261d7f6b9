-- Gives a failed task back: delayed while it may be tried again, else the job fails.
-- ARGV: ref, token, reason_kind, reason, log tail, tries (attempts that this kind of error is worth;
--   the job's own bound holds, too), delay_us
-- Reply: {HELD | LOST | CANCELLED}
-- Keeps: I7, I9 (attempts are bounded; a failed job has a reason). A repeat is HELD.
local t = load(ARGV[1])
local kind, reason, tries = ARGV[3], ARGV[4], tonumber(ARGV[6])
local verdict, is_repeat = check(t, ARGV[2], 'fail')
if verdict ~= HELD or is_repeat then
    return {verdict}
end

call('HSET', t.key, 'reason_kind', kind, 'reason', reason, 'log', ARGV[5])
tries = math.min(tries, tonumber(call('HGET', job_key(t.job), 'max_attempts')))
if t.attempt >= tries then
    if tries > 1 then
        reason = string.format('task %s: given up after %d attempts, the last on worker %s: %s',
                               t.id, t.attempt, t.worker, reason)
    end
    fail_job(t, 'fail', kind, reason)
    chore(t.job, CHORE_MAX)
else
    progress(t, 0)
    leave(t)
    call('HSET', t.key, 'closed', 'fail')
    make_delayed(t, tonumber(ARGV[7]))
end
touch(t.job)
return {HELD}
