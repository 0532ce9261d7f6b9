-- Gives a task back untouched: it is ready again and the attempt is not charged.
-- ARGV: ref, token
-- Reply: {HELD | LOST | CANCELLED}
-- Keeps: I7, I11. A repeat is HELD.
local j, t = load(ARGV[1])
local verdict, is_repeat = check(j, t, ARGV[2], 'release')
if verdict == HELD and not is_repeat then
    give_back(j, t)
end
return {verdict}
