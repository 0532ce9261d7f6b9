-- Gives back leases whose holders are known to be dead; the attempts are not charged.
-- ARGV: max
-- Reply: number of leases given back, at most max
-- Keeps: I7, I11 (the old tokens are stale). May be repeated.
local refs = call('ZRANGE', P .. ':leases', 0, tonumber(ARGV[1]) - 1)
for _, ref in ipairs(refs) do
    give_back(load(ref))
end
return #refs
