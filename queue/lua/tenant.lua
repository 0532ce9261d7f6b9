-- Sets what is given of a tenant's share and caps, and reads all of it.
-- ARGV: tenant, then for weight, running_max and open_max: a number, or '' to leave it as it is
-- Reply: {weight or '', running_max or '', open_max or '', running, open}
-- May be repeated.
local key = P .. ':tenant:' .. ARGV[1]
for i, field in ipairs({'weight', 'running_max', 'open_max'}) do
    if ARGV[i + 1] ~= '' then
        call('HSET', key, field, ARGV[i + 1])
        call('SADD', P .. ':tenants', ARGV[1])
    end
end
if ARGV[3] ~= '' then
    uncap(ARGV[1])
end
local v = call('HMGET', key, 'weight', 'running_max', 'open_max', 'running', 'open')
return {v[1] or '', v[2] or '', v[3] or '', v[4] or '0', v[5] or '0'}
