-- Gives a failed task back: delayed while it may be tried again, else the job fails.
-- ARGV: ref, token, reason_kind, reason, log tail, tries (attempts that this kind of error is worth;
--   the job's own bound holds, too), delay_us
-- Reply: {HELD | LOST | CANCELLED}
-- Keeps: I7, I9 (attempts are bounded; a failed job has a reason). A repeat is HELD.
local j, t = load(ARGV[1])
local kind, reason = ARGV[3], ARGV[4]
local verdict, is_repeat = check(j, t, ARGV[2], 'fail')
if verdict ~= HELD or is_repeat then
    return {verdict}
end

explain(j, t, kind, reason, ARGV[5])
local tries = math.min(ARGV[6], call('HGET', j.key, 'max_attempts'))
local is_last = tonumber(t.attempt) >= tries
if is_last then
    if tries > 1 then
        reason = string.format('task %s: given up after %s attempts, the last on worker %s: %s',
                               t.id, t.attempt, t.worker, reason)
    end
    fail_job(j, t, 'fail', kind, reason)
else
    progress(j, t, 0)
    leave(j, t)
    t.closed = 'fail'
    make_delayed(j, t, tonumber(ARGV[7]))
end
save_task(j, t)
save_job(j)
if is_last then
    chore(j.id, CHORE_MAX)
end
return {HELD}
