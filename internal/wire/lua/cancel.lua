-- cancel.lua removes what has not started of a job: its fuse, mapping and
-- place in the index, the window that is open for it, and runs of it that wait
-- for another attempt.
--
-- KEYS  1 root
-- ARGV  ids
-- Answer  for each id {code, run id}: 0 nothing there, 1 cancelled, 2 a run of
--         it is under way and goes on, 3 it is among the dead letters.
-- Cost  a few commands an id, O(log n); where there was nothing to cancel, a look
--       at all runs under way.

local NONE, CANCELLED, RUNNING, DEAD = 0, 1, 2, 3
local reply = {}
for _, id in ipairs(ARGV) do
  local code, run = NONE, ''
  for _, r in ipairs(runs_of(id)) do
    if redis.call('ZREM', retrying_key(r.task), r.rid) == 1 then
      redis.call('HDEL', runs_key(r.task), r.rid)
      redis.call('ZREM', root .. 'ids', ids_member(id, r.task, r.rid))
      code, run = CANCELLED, r.rid
    elseif code == NONE then
      code, run = DEAD, r.rid
    end
  end
  local class = redis.call('TYPE', class_key(id)).ok == 'string' and redis.call('GET', class_key(id))
  local task = class and task_of(class)
  if task then
    redis.call('DEL', class_key(id))
    if redis.call('TYPE', fuse_key(id)).ok == 'string' then redis.call('DEL', fuse_key(id)) end
    redis.call('ZREM', due_key(task), id)
    code, run = CANCELLED, ''
  end
  local window = redis.call('HGET', windows_key, id)
  window = window and read_window(window)
  if window then
    remove_window(id, window, redis.call('TYPE', fuse_key(id)).ok ~= 'string')
    redis.call('ZREM', due_key(window.task), id)
    code, run = CANCELLED, ''
  end
  local running = code ~= CANCELLED and under_way(id)[1]
  if running then code, run = RUNNING, running.rid end
  reply[#reply + 1] = code
  reply[#reply + 1] = run
end
write_notes()
return reply
