-- Prolongs a lease and reports progress.
-- ARGV: ref, token, frames_done, lease_us
-- Reply: {HELD | LOST | CANCELLED}
-- Keeps: I11; I10: the job's frames_done moves by the difference, so that it is always the sum over
--   its tasks. May be repeated.
local ref, token = ARGV[1], ARGV[2]
local id, task = string.match(ref, '^([^/]*)/(.*)$')
local tasks = P .. ':tasks:' .. id
local state, frames_done, updated, watched =
    unpack(call('HMGET', P .. ':job:' .. id, 'state', 'frames_done', 'updated', 'watched'))
local head, kind, middle, was, weight, rest =
    string.match(call('HGET', tasks, task) or '',
                 '^(leased (%S+) ' .. token .. ') (%- %S+ %S+ %S+) (%S+) (%S+)(.*)$')
if head and not is_ended[state] then
    local frames = math.max(0, math.min(ARGV[3], weight))
    call('ZADD', P .. ':leases', int(now + ARGV[4]), ref)
    if kind == 'video' and frames ~= tonumber(was) then
        call('HSET', tasks, task,
             head .. ' ' .. middle .. ' ' .. frames .. ' ' .. weight .. rest)
        write_job(id, updated, watched, 'frames_done', frames_done + frames - was)
    end
    return {HELD}
end

local j, t = load(ref)
return {(check(j, t, token, 'renew'))} -- no lease is closed by a renew: never a repeat
