-- What the queue holds now: the lanes with their lengths, leases, dead letters, tenants, workers.
-- ARGV: most of each to show
-- Reply: {now, depth, delayed, leases, dead, jobs; lanes {class, priority, tenant, tasks, created
--   of the oldest job}; leases {ref, worker, attempt, frames, weight, since, deadline}; dead {ref,
--   time, worker, attempts, kind and reason and log}; tenants {name, weight, running_max, open_max,
--   running, open}; workers {worker, status}}
-- Changes nothing. Its time is bounded by ARGV, not by the number of tasks.
local most = tonumber(ARGV[1])
local lanes, leases, dead, tenants, workers = {}, {}, {}, {}, {}

local function add_lane(class, priority, tenant)
    local lane = P .. ':ready:' .. class .. ':' .. priority .. ':' .. tenant
    local first = call('ZRANGE', lane, 0, 0, 'WITHSCORES')[2]
    if first and #lanes < most then
        lanes[#lanes + 1] = {class, priority, tenant, call('ZCARD', lane), int(first)}
    end
end

for _, class in ipairs({'worker', 'dispatcher'}) do
    for _, priority in ipairs(call('ZRANGE', P .. ':bands:' .. class, 0, most - 1)) do
        local band = P .. ':lanes:' .. class .. ':' .. priority
        for _, tenant in ipairs(call('ZRANGE', band, 0, most - #lanes)) do
            add_lane(class, priority, tenant)
        end
    end
end
for _, tenant in ipairs(call('SRANDMEMBER', P .. ':tenants', most)) do
    tenants[#tenants + 1] = {tenant, unpack(call('HMGET', P .. ':tenant:' .. tenant, 'weight',
                                                 'running_max', 'open_max', 'running', 'open'))}
    for _, band in ipairs(call('SMEMBERS', P .. ':capped:' .. tenant)) do
        add_lane(string.match(band, '^(.*):'), string.match(band, ':(.*)$'), tenant)
    end
end
local held = call('ZRANGE', P .. ':leases', 0, most - 1, 'WITHSCORES')
for i = 1, #held, 2 do
    local _, t = load(held[i])
    leases[#leases + 1] = {held[i], t.worker, t.attempt, t.frames, t.weight, t.since,
                           int(held[i + 1])}
end
local gone = call('ZREVRANGE', P .. ':dead', 0, most - 1, 'WITHSCORES')
for i = 1, #gone, 2 do
    local j, t = load(gone[i])
    dead[#dead + 1] = {gone[i], int(gone[i + 1]), t.worker, t.attempt,
                       call('HGET', P .. ':tasks:' .. j.id, '!' .. t.id) or ''}
end
for _, worker in ipairs(call('ZRANGEBYSCORE', P .. ':workers', now, '+inf', 'LIMIT', 0, most)) do
    workers[#workers + 1] = {worker, call('HGET', P .. ':statuses', worker)}
end
return {now_text, call('XLEN', P .. ':depth'), call('ZCARD', P .. ':delayed'),
        call('ZCARD', P .. ':leases'), call('ZCARD', P .. ':dead'), call('ZCARD', P .. ':jobs'),
        lanes, leases, dead, tenants, workers}
