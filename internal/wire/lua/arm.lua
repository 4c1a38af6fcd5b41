-- arm.lua arms jobs: fuse, mapping and index in one step.
--
-- KEYS  1 root
-- ARGV  1 fail | replace | keep: what to do with an id that is pending already
--       2 wake-up channel
--       3 token, by which a call that is made again after a lost reply is known
--       then for each job: id, when, task, class value. when is a time in ms,
--       or +ms from now.
-- Answer  {now} if all were armed, each for its time or for now if that has passed;
--         else {now, code, due, code, due, …}: 0 armed, 1 replaced, 2 kept,
--         3 refused: pending already, 4 refused: a key holds other data,
--         5 refused: a threshold counts under this id.
--         due is that of the job that is there now (0 after 4 and 5).
-- Cost  one SET a job and some 8 commands a call where all ids are new;
--       O(log n) a job. Replaying it within half a minute changes nothing and
--       answers the same, whatever became of the jobs meanwhile.

local mode, channel, token = ARGV[1], ARGV[2], ARGV[3]
local ARMED, REPLACED, KEPT, PENDING, FOREIGN, WINDOW = 0, 1, 2, 3, 4, 5
local FIRST, FIELDS = 4, 4

local told = redis.call('HGET', answers_key(0), token) or redis.call('HGET', answers_key(1), token)
if told then
  local again = {}
  for part in string.gmatch(told, '%S+') do again[#again + 1] = part end
  return again
end

-- When each job is due, and that as text. (Lengths are counted here and below: a # is
-- a search.)
local due, due_text, n = {}, {}, 0
local ids, keys, seen, all_new = {}, {}, {}, true
for i = FIRST, #ARGV, FIELDS do
  local id, at = ARGV[i], ARGV[i + 1]
  local ahead = string.byte(at) == 43 -- a +
  local ends = tonumber(at) + (ahead and now or 0)
  if ends <= now then
    ends, at = now, now_text
  elseif ahead then
    at = ms(ends)
  end
  n = n + 1
  due[n], due_text[n] = ends, at
  ids[n], keys[2 * n - 1], keys[2 * n] = id, fuse_key(id), class_key(id)
  if seen[id] then all_new = false end
  seen[id] = true
end
all_new = redis.call('EXISTS', unpack(keys)) == 0 and all_new

-- Ids that a window is open for. If it was cancelled by hand, its record is still
-- there, and would end the job.
local counts = {}
if redis.call('EXISTS', root .. 'windows') == 1 then
  for k, record in ipairs(redis.call('HMGET', root .. 'windows', unpack(ids))) do
    if record then counts[ids[k]], all_new = true, false end
  end
end

-- What is there under an id: a code that refuses a job or nil, and the task and due
-- time of a pending one.
local function existing(id)
  if counts[id] then return WINDOW end
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

local reply, mapping, mapped, batches, wrote, all_armed = { now_text }, {}, 0, {}, false, true

-- Arms the k-th job, whose arguments begin at i.
local function arm(k, i)
  local task = ARGV[i + 2]
  wrote = true
  if due[k] > now then
    redis.call('SET', keys[2 * k - 1], '0', 'PXAT', due_text[k]) -- a small number costs no memory; no counter is 0
  end
  mapping[mapped + 1], mapping[mapped + 2] = keys[2 * k], ARGV[i + 3]
  mapped = mapped + 2
  local batch = batches[task]
  if not batch then
    batch = { length = 0 }
    batches[task] = batch
  end
  local length = batch.length
  batch[length + 1], batch[length + 2] = due_text[k], ARGV[i]
  batch.length = length + 2
end

local function flush()
  if mapped > 0 then redis.call('MSET', unpack(mapping)) end
  for task, batch in pairs(batches) do index(task, batch, channel) end
  mapping, mapped, batches = {}, 0, {}
end

local function answer(code, at)
  all_armed = all_armed and code == ARMED
  reply[#reply + 1] = code
  reply[#reply + 1] = at
end

-- Arms the k-th job, whose id may be taken.
local function arm_carefully(k, i)
  local id, task = ARGV[i], ARGV[i + 2]
  local code, other, at = existing(id)
  if code == FOREIGN or code == WINDOW then return answer(code, 0) end
  if code == PENDING and mode ~= 'replace' then
    return answer(mode == 'keep' and KEPT or PENDING, at == math.huge and '-1' or ms(at))
  end
  arm(k, i)
  if due[k] <= now then redis.call('DEL', fuse_key(id)) end
  flush()
  if other and other ~= task then redis.call('ZREM', due_key(other), id) end
  answer(code and REPLACED or ARMED, due_text[k])
end

for k = 1, n do
  local i = FIRST + (k - 1) * FIELDS
  if all_new then arm(k, i) else arm_carefully(k, i) end
end
flush()
if all_armed then reply = { now_text } end

-- Keeps the answer for a while. What armed nothing may be tried again.
if wrote then
  if redis.call('HSET', answers_key(0), token, table.concat(reply, ' ')) == 1 and redis.call('HLEN', answers_key(0)) == 1 then
    drop_old_answers() -- the first of its half minute
  end
end
return reply
