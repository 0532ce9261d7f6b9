-- Announces that somebody waits for a job: its changes are told through events:JOB meanwhile.
-- ARGV: job, revision that the caller has seen ('': the present one), us to wait
-- Reply: {1, 0}: it has changed since, or is not there; {0, revision}: XREAD past that one
-- May be repeated.
local SLACK_US = 1000000 -- from this reply to the end of the XREAD that follows
local j = load_job(ARGV[1])
if not j or ARGV[2] ~= '' and j.revision ~= tonumber(ARGV[2]) then
    return {1, 0}
end
call('HSET', j.key, 'watched', math.max(j.watched, now + tonumber(ARGV[3]) + SLACK_US))
return {0, j.revision}
