-- Announces that somebody waits for a job: its changes are told through events:JOB meanwhile.
-- ARGV: job, `updated` as the caller has seen it ('': as it is now), us to wait
-- Reply: {1, 0}: it has changed since, or is not there; {0, updated}: XREAD past that one
-- May be repeated.
local SLACK_US = 1000000 -- from this reply to the end of the XREAD that follows
local j = load_job(ARGV[1])
if not j or ARGV[2] ~= '' and j.updated ~= ARGV[2] then
    return {1, 0}
end
call('HSET', j.key, 'watched', int(math.max(j.watched or 0, now + ARGV[3] + SLACK_US)))
return {0, j.updated}
