-- get.lua reads all that is held of some jobs, at one moment.
--
-- KEYS  1 root
-- ARGV  ids
-- Answer  for each id {class value or false, fuse, index, {task, rid, state,
--         score, record, …}, window or false, counter or false}: fuse as
--         PEXPIRETIME gives it (-2 none, -1 without TTL), the score in the due
--         index of the task that the class value names (-1: none), its runs, and
--         the record of an open window with the value of its counter.
-- Cost  6 commands an id and 3 a run; it reads payloads, so ask for few.

local reply = {}
for _, id in ipairs(ARGV) do
  local value = redis.call('TYPE', class_key(id)).ok == 'string' and redis.call('GET', class_key(id))
  local task = value and task_of(value)
  local at = task and redis.call('ZSCORE', due_key(task), id)
  local runs = {}
  for _, r in ipairs(runs_of(id)) do
    local state, since = 'retrying', redis.call('ZSCORE', retrying_key(r.task), r.rid)
    if not since then state, since = 'dead', redis.call('ZSCORE', dead_key(r.task), r.rid) end
    if not since then state, since = 'running', -1 end
    local rec = redis.call('HGET', runs_key(r.task), r.rid)
    if rec then
      for _, part in ipairs({ r.task, r.rid, state, since, rec }) do runs[#runs + 1] = part end
    end
  end
  local window = redis.call('HGET', root .. 'windows', id)
  local counter = window and (redis.call('MGET', fuse_key(id))[1] or redis.call('HGET', root .. 'counts', id))
  reply[#reply + 1] = { value, redis.call('PEXPIRETIME', fuse_key(id)), at or -1, runs, window, counter }
end
return reply
