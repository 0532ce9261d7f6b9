-- Reads a page of jobs, newest first, without their large fields.
-- ARGV: cursor (0: from the newest), count, looks (jobs looked at, at most), state and tenant
--   ('': any), then the names of the fields wanted
-- Reply: {cursor to go on from, '0' at the end, then arrays: id, then the fields}
-- Changes nothing, and looks at a bounded number of jobs, however few of them are wanted.
local count, looks, state, tenant = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local from = ARGV[1] == '0' and '+inf' or '(' .. ARGV[1]
local found = call('ZREVRANGEBYSCORE', P .. ':jobs', from, '-inf', 'WITHSCORES', 'LIMIT', 0, looks)
local page = {'0'}
for i = 1, #found, 2 do
    local key = P .. ':job:' .. found[i]
    local v = call('HMGET', key, 'state', 'tenant')
    if (state == '' or v[1] == state) and (tenant == '' or v[2] == tenant) then
        page[#page + 1] = {found[i], unpack(call('HMGET', key, unpack(ARGV, 6)))}
    end
    if #page > count or i == #found - 1 and #found == 2 * looks then
        page[1] = int(found[i + 1])
        break
    end
end
return page
