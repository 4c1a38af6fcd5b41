-- reap.lua takes some runs of a node that was given up from it: they may be
-- claimed again at once.
--
-- KEYS  1 root
-- ARGV  1 node that was given up   2 task   3 error to leave in the records
--       4 wake-up channel
-- Answer  {1 if there may be more of them, else 0; runs taken}
-- Cost  a look at the task's leases, and 5 commands for each run that is taken: 200
--       at most, or 1 MiB of records. Replaying it takes what is left.

local node, task, err, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local runs, bytes, taken, more = 200, 1048576, 0, 0
for _, member in ipairs(redis.call('HKEYS', running_key(task))) do
  local held = read_lease(member)
  if held.node == node then
    if taken == runs or bytes <= 0 then
      more = 1
      break
    end
    local rec = redis.call('HGET', running_key(task), member)
    redis.call('HDEL', running_key(task), member)
    redis.call('HSET', runs_key(task), held.rid, (amend(rec, held.attempt, err)))
    redis.call('ZADD', root .. 'ids', 0, ids_member(held.id, task, held.rid))
    redis.call('ZADD', retrying_key(task), ms(now), held.rid)
    bytes, taken = bytes - #rec, taken + 1
  end
end
if taken > 0 then redis.pcall('PUBLISH', channel, task) end
return { more, taken }
