-- page.lua reads a few members of a sorted set, from behind a place on, at one
-- moment: between two commands of a client the ranks could move.
--
-- KEYS  1 root
-- ARGV  1 what follows the root in the set's name
--       2 score and 3 member of the place ('' for the beginning)   4 how many
-- Answer  {member, score, …}. If the member is not at its place any more, from
--         the first of its score on.
-- Cost  3 commands, O(log n).

local key, at, member, n = root .. ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local start = 0
if member ~= '' then
  local found = redis.call('ZSCORE', key, member)
  if found and tonumber(found) == tonumber(at) then
    start = redis.call('ZRANK', key, member) + 1
  else
    start = redis.call('ZCOUNT', key, '-inf', '(' .. at)
  end
end
return redis.call('ZRANGE', key, start, start + n - 1, 'WITHSCORES')
