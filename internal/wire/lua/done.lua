-- done.lua settles runs of one task that succeeded: nothing of them stays.
--
-- KEYS  1 root
-- ARGV  1 task, then for each run: its lease (the field of running), id
-- Answer  the positions, from 0, of runs whose lease was lost: taken over by
--         others, so that nothing was changed.
-- Cost  4 commands a call, O(log n) a run. Replaying it changes nothing, and
--       answers the same.

local task = ARGV[1]
local leases = {}
for i = 2, #ARGV, 2 do leases[#leases + 1] = ARGV[i] end

local held, rids, finders, lost = {}, {}, {}, {}
for i, since in ipairs(redis.call('HMGET', running_key(task), unpack(leases))) do
  if since then
    local n, rid = #held + 1, run_of(leases[i])
    held[n], rids[n], finders[n] = leases[i], rid, ids_member(ARGV[2 * i + 1], task, rid)
  elseif is_lost(leases[i]) then
    lost[#lost + 1] = i - 1
  end
end
if #held > 0 then
  redis.call('HDEL', running_key(task), unpack(held))
  redis.call('HDEL', runs_key(task), unpack(rids))
  redis.call('ZREM', root .. 'ids', unpack(finders))
end
return lost
