-- exhume.lua requeues or deletes dead letters of one task.
--
-- KEYS  1 root
-- ARGV  1 task   2 requeue | delete   3 wake-up channel, then run ids
-- Answer  how many of them were dead, and now are not.
-- Cost  5 commands a run, O(log n). Replaying it changes nothing more.

local task, requeue, channel = ARGV[1], ARGV[2] == 'requeue', ARGV[3]
local done = 0
for i = 4, #ARGV do
  local rid = ARGV[i]
  if redis.call('ZREM', dead_key(task), rid) == 1 then
    local rec = redis.call('HGET', runs_key(task), rid)
    local id
    if rec then rec, id = amend(rec, 0, nil) end
    if rec and requeue then
      redis.call('HSET', runs_key(task), rid, rec)
      redis.call('ZADD', retrying_key(task), ms(now), rid)
    elseif rec then
      redis.call('HDEL', runs_key(task), rid)
      redis.call('ZREM', root .. 'ids', ids_member(id, task, rid))
    end
    done = done + 1
  end
end
if requeue and done > 0 then redis.pcall('PUBLISH', channel, task) end
return done
