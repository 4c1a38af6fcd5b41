-- page.lua reads a few members of a sorted set, from behind a place on, at one
-- moment: between two commands of a client the ranks could move.
--
-- KEYS  1 root
-- ARGV  1 what follows the root in the set's name
--       2 score and 3 member of the place ('' for the beginning)   4 how many
-- Answer  {member, score, …} of those that come behind the place, whether its member
--         is still there or not.
-- Cost  3 commands, O(log n); if the member is gone, one more for each doubling of
--       how many have its score.

local key, at, member, n = root .. ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- Whether a comes behind b as Redis orders members: by their bytes. Lua's own < goes
-- by the server's locale.
local function is_behind(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

-- The rank of the first member behind the place.
local function rank_behind()
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. at)
  local high = low + redis.call('ZCOUNT', key, at, at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_behind(redis.call('ZRANGE', key, middle, middle)[1], member) then high = middle else low = middle + 1 end
  end
  return low
end

local start = 0
if member ~= '' then
  local found = redis.call('ZSCORE', key, member)
  start = found and tonumber(found) == tonumber(at) and redis.call('ZRANK', key, member) + 1 or rank_behind()
end
return redis.call('ZRANGE', key, start, start + n - 1, 'WITHSCORES')
