-- Keeps what a worker says of itself, and forgets workers that have been silent for too long.
-- ARGV: worker, status, keep_us (0: it ends)
-- Reply: {}
-- Touches no job or task; a repeat changes only the time.
local worker, keep_us = ARGV[1], tonumber(ARGV[3])
if keep_us > 0 then
    call('ZADD', P .. ':workers', now + keep_us, worker)
    call('HSET', P .. ':statuses', worker, ARGV[2])
else
    call('ZADD', P .. ':workers', 0, worker)
end
local silent = call('ZRANGEBYSCORE', P .. ':workers', '-inf', now, 'LIMIT', 0, 16)
if silent[1] then
    call('ZREM', P .. ':workers', unpack(silent))
    call('HDEL', P .. ':statuses', unpack(silent))
end
return {}
