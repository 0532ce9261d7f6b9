-- Reads a page of jobs, newest first, without their large fields.
-- ARGV: cursor (0: from the newest), count, then the names of the fields wanted
-- Reply: an array of arrays: id, then the fields
-- Changes nothing.
local from = ARGV[1] == '0' and '+inf' or '(' .. ARGV[1]
local page = {}
for i, id in ipairs(call('ZREVRANGEBYSCORE', P .. ':jobs', from, '-inf', 'LIMIT', 0, ARGV[2])) do
    page[i] = {id, unpack(call('HMGET', job_key(id), unpack(ARGV, 3)))}
end
return page
