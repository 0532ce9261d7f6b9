-- Promotes delayed tasks, requeues lapsed leases, ends jobs at their deadline, forgets old ones,
-- goes on with a chore. Any process, any time.
-- ARGV: max
-- Reply: number of tasks moved, at most max
-- Keeps: I7, I9 (a task whose attempts are used up fails its job). May be repeated.
return maintain(tonumber(ARGV[1]))
