-- reap.lua takes the runs of a node that was given up from it: they may be
-- claimed again at once.
--
-- KEYS  1 root
-- ARGV  1 node that was given up   2 task   3 cursor, 0 at first
--       4 error to leave in the records   5 wake-up channel
-- Answer  {next cursor (0 when through), runs taken}
-- Cost  an HSCAN of some 500 leases and 5 commands a run found.
--       Replaying it changes nothing more.

local node, task, err, channel = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local page = redis.call('HSCAN', running_key(task), ARGV[3], 'COUNT', 500)
local taken = 0
for i = 1, #page[2], 2 do
  local member = page[2][i]
  local rid, attempt, holder = string.match(member, '^(%S+) (%d+) (%S+)$')
  if holder == node then
    redis.call('HDEL', running_key(task), member)
    local rec = redis.call('HGET', runs_key(task), rid)
    if rec then
      redis.call('HSET', runs_key(task), rid, (amend(rec, attempt, err)))
      redis.call('ZADD', retrying_key(task), ms(now), rid)
      taken = taken + 1
    end
  end
end
if taken > 0 then redis.pcall('PUBLISH', channel, task) end
return { page[1], taken }
