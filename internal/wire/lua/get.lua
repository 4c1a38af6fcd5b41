-- get.lua reads all that is held of some jobs, at one moment.
--
-- KEYS  1 root
-- ARGV  1 running | '': whether to look for runs under way, which is a look at all
--       of them, then ids
-- Answer  for each id {class value or false, fuse, index, {task, rid, state,
--         score, record, lease, …}, window or false, counter or false}: fuse as
--         PEXPIRETIME gives it (-2 none, -1 without TTL), the score in the due
--         index of the task that the class value names (-1: none), its runs
--         (score: when the next attempt is, it died or was claimed; lease is '' for
--         the first two), and the record of an open window with the value of its
--         counter.
-- Cost  6 commands an id and 3 a run; it reads payloads, so ask for few.

local reply = {}
for i = 2, #ARGV do
  local id = ARGV[i]
  local value = redis.call('TYPE', class_key(id)).ok == 'string' and redis.call('GET', class_key(id))
  local task = value and task_of(value)
  local at = task and redis.call('ZSCORE', due_key(task), id)
  local runs = {}
  local function add(run, state, since, rec, held)
    for _, part in ipairs({ run.task, run.rid, state, since, rec, held }) do runs[#runs + 1] = part end
  end
  for _, r in ipairs(runs_of(id)) do
    local state, since = 'retrying', redis.call('ZSCORE', retrying_key(r.task), r.rid)
    if not since then state, since = 'dead', redis.call('ZSCORE', dead_key(r.task), r.rid) end
    local rec = redis.call('HGET', runs_key(r.task), r.rid)
    if since and rec then add(r, state, since, rec, '') end
  end
  for _, r in ipairs(ARGV[1] == 'running' and under_way(id) or {}) do
    add(r, 'running', r.at, redis.call('HGET', running_key(r.task), r.lease), r.lease)
  end
  local window = redis.call('HGET', root .. 'windows', id)
  local counter = window and (redis.call('MGET', fuse_key(id))[1] or redis.call('HGET', root .. 'counts', id))
  reply[#reply + 1] = { value, redis.call('PEXPIRETIME', fuse_key(id)), at or -1, runs, window, counter }
end
return reply
