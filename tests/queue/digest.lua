-- A digest of all keys and their contents, in an order that does not depend on how they are kept.
local function pairs_of(flat)
    local all = {}
    for i = 1, #flat, 2 do
        all[#all + 1] = flat[i] .. '=' .. flat[i + 1]
    end
    table.sort(all)
    return all
end
local function flatten(v)
    local all = {}
    for i, x in ipairs(v) do
        all[i] = type(x) == 'table' and flatten(x) or tostring(x)
    end
    return table.concat(all, ',')
end
local read = {
    string = function(k) return redis.call('GET', k) end,
    list = function(k) return flatten(redis.call('LRANGE', k, 0, -1)) end,
    zset = function(k) return flatten(redis.call('ZRANGE', k, 0, -1, 'WITHSCORES')) end,
    stream = function(k) return flatten(redis.call('XRANGE', k, '-', '+')) end,
    hash = function(k) return flatten(pairs_of(redis.call('HGETALL', k))) end,
    set = function(k)
        local all = redis.call('SMEMBERS', k)
        table.sort(all)
        return flatten(all)
    end,
}
local keys, all = redis.call('KEYS', '*'), {}
table.sort(keys)
for i, k in ipairs(keys) do
    all[i] = k .. ': ' .. read[redis.call('TYPE', k).ok](k)
end
return redis.sha1hex(table.concat(all, '\n'))
