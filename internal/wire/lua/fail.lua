-- fail.lua settles runs of one task that did not succeed.
--
-- KEYS  1 root
-- ARGV  1 task   2 wake-up channel, then for each run: its lease,
--       retry | dead | return, delay in ms (for a retry), error
--       retry   is tried again after the delay
--       dead    goes to the dead letters
--       return  is given back as if this attempt had never been: its node stops
-- Answer  the positions, from 0, of runs whose lease was lost, as of done.lua.
-- Cost  5 commands a run, O(log n), and a copy of its record. Replaying it
--       changes nothing, and answers the same. The first write is one that a full
--       Redis allows.

local task, channel = ARGV[1], ARGV[2]
local lost, earliest = {}, first_score(retrying_key(task))
for i = 3, #ARGV, 4 do
  local member, verdict, delay, err = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  local held = read_lease(member)
  local rid, rec = held.rid, redis.call('HGET', running_key(task), member)
  if not rec or not rid then
    if not holds_lease(held.node or '') then lost[#lost + 1] = (i - 3) / 4 end
  else
    redis.call('HDEL', running_key(task), member)
    local attempt = attempt_of(rec)
    if verdict == 'return' then
      rec = amend(rec, attempt - 1, nil)
    else
      rec = amend(rec, attempt, err)
    end
    redis.call('HSET', runs_key(task), rid, rec)
    redis.call('ZADD', root .. 'ids', 0, ids_member(held.id, task, rid))
    if verdict == 'dead' then
      redis.call('ZADD', dead_key(task), ms(now), rid)
    else
      redis.call('ZADD', retrying_key(task), ms(verdict == 'retry' and now + delay or now), rid)
    end
  end
end
wake_if_earlier(retrying_key(task), earliest, task, channel)
return lost
