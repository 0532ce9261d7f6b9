-- Prolongs a lease and reports progress.
-- ARGV: ref, token, frames_done, lease_us
-- Reply: {HELD | LOST | CANCELLED}
-- Keeps: I11; I10: the job's frames_done moves by the difference, so that it is always the sum over
--   its tasks. May be repeated.
local j, t = load(ARGV[1])
local verdict = check(j, t, ARGV[2], 'renew') -- no lease is closed by a renew: never a repeat
if verdict == HELD then
    call('ZADD', P .. ':leases', int(now + ARGV[4]), ARGV[1])
    if progress(j, t, tonumber(ARGV[3])) then
        save_task(j, t)
        save_job(j)
    end
end
return {verdict}
