-- arm.lua arms jobs: fuse, mapping and index in one step.
--
-- KEYS  1 root
-- ARGV  1 fail | replace | keep: what to do with an id that is pending already
--       2 wake-up channel
--       3 token, a number by which a call that is made again after a lost reply is
--         known
--       4 distinct if no id is among the jobs twice, else empty
--       then for each job: id, when, task, class value. when is a time in ms,
--       or +ms from now.
-- Answer  {now} if all were armed, each for its time or for now if that has passed;
--         else {now, code, due, code, due, …}: 0 armed, 1 replaced, 2 kept,
--         3 refused: pending already, 4 refused: a key holds other data,
--         5 refused: a threshold counts under this id.
--         due is that of the job that is there now (0 after 4 and 5).
-- Cost  one SET a job and 8 commands a call where all ids are new, else about 8 a job;
--       O(log n) a job. Replaying it within half a minute changes nothing and
--       answers the same, whatever became of the jobs meanwhile.

local mode, channel, token, distinct = ARGV[1], ARGV[2], ARGV[3], ARGV[4] ~= ''
local ARMED, REPLACED, KEPT, PENDING, FOREIGN, WINDOW = 0, 1, 2, 3, 4, 5
local FIRST, FIELDS = 5, 4

-- Heartbeats drop old answers. Where no daemon runs, one call in a hundred does, by its
-- token.
local function remember(answer)
  redis.call('HSET', answers_key(0), token, answer)
  if string.sub(token, -2) == '00' then drop_old_answers() end
end

local told = redis.call('HGET', answers_key(0), token) or redis.call('HGET', answers_key(1), token)
if told then
  local again = {}
  for part in string.gmatch(told, '%S+') do again[#again + 1] = part end
  return again
end

-- Of each job: whether its time is still to come, that time as text, and its keys.
-- (Lengths are counted here and below: a # is a search.)
local n, ahead, due = 0, {}, {}
local keys, mapping = { root .. 'windows' }, {}
for i = FIRST, #ARGV, FIELDS do
  local id, at = ARGV[i], ARGV[i + 1]
  local ends = tonumber(at)
  if string.byte(at) == 43 then -- a +
    ends = now + ends
    at = ms(ends)
  end
  local class = class_key(id)
  n = n + 1
  ahead[n], due[n] = ends > now, ends > now and at or now_text
  keys[2 * n], keys[2 * n + 1] = fuse_key(id), class
  mapping[2 * n - 1], mapping[2 * n] = class, ARGV[i + 3]
end

local function light(fuse, at)
  redis.call('SET', fuse, '0', 'PXAT', at) -- a small number costs no memory; no counter is 0
end

-- Ids that a window is open for. If it was cancelled by hand, its record is still
-- there, and would end the job.
local counting = {}
local taken = redis.call('EXISTS', unpack(keys))
if taken > 0 and redis.call('EXISTS', keys[1]) == 1 then
  taken = taken - 1
  local ids = {}
  for k = 1, n do ids[k] = ARGV[FIRST + (k - 1) * FIELDS] end
  for k, record in ipairs(redis.call('HMGET', keys[1], unpack(ids))) do
    if record then counting[k], taken = true, taken + 1 end
  end
end

if distinct and taken == 0 then
  local batches = {}
  for k = 1, n do
    local i = FIRST + (k - 1) * FIELDS
    local task = ARGV[i + 2]
    if ahead[k] then light(keys[2 * k], due[k]) end
    local batch = batches[task]
    if not batch then
      batch = { length = 0 }
      batches[task] = batch
    end
    local length = batch.length
    batch[length + 1], batch[length + 2], batch.length = due[k], ARGV[i], length + 2
  end
  redis.call('MSET', unpack(mapping))
  for task, batch in pairs(batches) do index(task, batch, channel) end
  remember(now_text)
  return { now_text }
end

-- What is there under the k-th id: a code that refuses the job or nil, and the task and
-- due time of a pending one.
local function existing(k, id)
  if counting[k] then return WINDOW end
  local class = redis.call('TYPE', class_key(id)).ok
  local fuse = redis.call('TYPE', fuse_key(id)).ok
  if fuse ~= 'none' and fuse ~= 'string' then return FOREIGN end
  if class == 'none' then return fuse ~= 'none' and FOREIGN or nil end
  if class ~= 'string' then return FOREIGN end
  local task = task_of(redis.call('GET', class_key(id)))
  if not task then return FOREIGN end
  local at = fuse_due(id)
  if not at then
    at = redis.call('ZSCORE', due_key(task), id)
    at = at and math.floor(tonumber(at)) or now
  end
  return PENDING, task, at
end

-- Arms the k-th job if its id may be taken. Returns its code and due time.
local function arm(k, id, task)
  local code, other, at = existing(k, id)
  if code == FOREIGN or code == WINDOW then return code, 0 end
  if code == PENDING and mode ~= 'replace' then
    return mode == 'keep' and KEPT or PENDING, at == math.huge and '-1' or ms(at)
  end
  if ahead[k] then light(keys[2 * k], due[k]) else redis.call('DEL', keys[2 * k]) end
  redis.call('SET', mapping[2 * k - 1], mapping[2 * k])
  index(task, { due[k], id }, channel)
  if other and other ~= task then redis.call('ZREM', due_key(other), id) end
  return code and REPLACED or ARMED, due[k]
end

local reply, wrote, all_armed = { now_text }, false, true
for k = 1, n do
  local i = FIRST + (k - 1) * FIELDS
  local code, at = arm(k, ARGV[i], ARGV[i + 2])
  reply[2 * k], reply[2 * k + 1] = code, at
  wrote = wrote or code == ARMED or code == REPLACED
  all_armed = all_armed and code == ARMED
end
if all_armed then reply = { now_text } end
if wrote then remember(table.concat(reply, ' ')) end -- what armed nothing may be tried again
return reply
