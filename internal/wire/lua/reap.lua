-- reap.lua takes some runs of a node that was given up from it: they may be
-- claimed again at once.
--
-- KEYS  1 root
-- ARGV  1 node that was given up   2 task   3 cursor, 0 at first
--       4 error to leave in the records   5 wake-up channel
-- Answer  {next cursor (0 when through), runs taken}
-- Cost  an HSCAN of some 200 leases and 4 commands a run found.
--       Replaying it changes nothing more.

local node, task, err, channel = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local page = redis.call('HSCAN', running_key(task), ARGV[3], 'MATCH', '* ' .. node .. ' *', 'COUNT', 200)
local taken = 0
for i = 1, #page[2], 2 do
  local held = read_lease(page[2][i])
  if held.node == node then
    redis.call('HDEL', running_key(task), page[2][i])
    redis.call('HSET', runs_key(task), held.rid, (amend(page[2][i + 1], held.attempt, err)))
    redis.call('ZADD', root .. 'ids', 0, ids_member(held.id, task, held.rid))
    redis.call('ZADD', retrying_key(task), ms(now), held.rid)
    taken = taken + 1
  end
end
if taken > 0 then redis.pcall('PUBLISH', channel, task) end
return { page[1], taken }
