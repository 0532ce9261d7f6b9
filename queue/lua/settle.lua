-- Goes on with what cancel, retry or plan_commit began for a job.
-- ARGV: job
-- Reply: 1 more is left, 0 all is done
-- Keeps: I7, I10. May be repeated.
if call('SISMEMBER', P .. ':chores', ARGV[1]) == 0 then
    return 0
end
return settle(ARGV[1])
