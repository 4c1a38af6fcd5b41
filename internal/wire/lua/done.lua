-- done.lua settles runs of one task and one node that succeeded: nothing of them
-- stays.
--
-- KEYS  1 root
-- ARGV  1 task   2 node, then the runs' leases (fields of running)
-- Answer  the positions, from 0, of runs whose lease was lost: taken over by
--         others, so that nothing was changed.
-- Cost  2 commands a call, O(1) a run; if the node was given up, 1 a run.
--       Replaying it changes nothing, and answers the same.

local key, node = running_key(ARGV[1]), ARGV[2]
local lost = {}
if holds_lease(node) then
  redis.call('HDEL', key, unpack(ARGV, 3))
else
  for i = 3, #ARGV do
    if redis.call('HDEL', key, ARGV[i]) == 0 then lost[#lost + 1] = i - 3 end
  end
end
return lost
