-- arm.lua arms jobs: fuse, mapping and index in one step.
--
-- KEYS  1 root
-- ARGV  1 fail | replace | keep: what to do with an id that is pending already
--       2 wake-up channel
--       3 token, by which a call that is made again after a lost reply is known
--       then for each job: id, when, task, class value. when is a time in ms,
--       or +ms from now.
-- Answer  {now, code, due, code, due, …}: 0 armed, 1 replaced, 2 kept,
--         3 refused: pending already, 4 refused: a key holds other data,
--         5 refused: a threshold counts under this id.
--         due is that of the job that is there now (0 after 4 and 5).
-- Cost  one SET a job and some 10 commands a call where all ids are new;
--       O(log n) a job. Replaying it within half a minute changes nothing and
--       answers the same, whatever became of the jobs meanwhile.

local mode, channel, token = ARGV[1], ARGV[2], ARGV[3]
local ARMED, REPLACED, KEPT, PENDING, FOREIGN, WINDOW = 0, 1, 2, 3, 4, 5
local answers, answered, KEEP_MS = root .. 'answers', root .. 'answered', 30000

local told = redis.call('HGET', answers, token)
local again = {}
for part in string.gmatch(told or '', '%S+') do again[#again + 1] = part end
if #again > 1 then return again end
now = tonumber(again[1]) or now -- only the time was kept if all jobs were armed

local jobs, keys, seen, all_new = {}, {}, {}, true
for i = 4, #ARGV, 4 do
  local id, at = ARGV[i], ARGV[i + 1]
  local due = tonumber(at)
  if string.sub(at, 1, 1) == '+' then due = now + due end
  jobs[#jobs + 1] = { id = id, due = math.max(due, now), task = ARGV[i + 2], class = ARGV[i + 3] }
  keys[#keys + 1] = fuse_key(id)
  keys[#keys + 1] = class_key(id)
  if seen[id] then all_new = false end
  seen[id] = true
end
if told then
  for _, job in ipairs(jobs) do
    again[#again + 1] = ARMED
    again[#again + 1] = ms(job.due)
  end
  return again
end
all_new = all_new and redis.call('EXISTS', unpack(keys)) == 0

-- Ids that a window is open for. If it was cancelled by hand, its record is still
-- there, and would end the job.
local counts = {}
if redis.call('EXISTS', root .. 'windows') == 1 then
  local ids = {}
  for i, job in ipairs(jobs) do ids[i] = job.id end
  for i, record in ipairs(redis.call('HMGET', root .. 'windows', unpack(ids))) do
    if record then counts[ids[i]], all_new = true, false end
  end
end

-- What is there under a job's id: a code that refuses it or nil, and the task
-- and due time of a pending job.
local function existing(job)
  if counts[job.id] then return WINDOW end
  local class = redis.call('TYPE', class_key(job.id)).ok
  local fuse = redis.call('TYPE', fuse_key(job.id)).ok
  if fuse ~= 'none' and fuse ~= 'string' then return FOREIGN end
  if class == 'none' then return fuse ~= 'none' and FOREIGN or nil end
  if class ~= 'string' then return FOREIGN end
  local task = task_of(redis.call('GET', class_key(job.id)))
  if not task then return FOREIGN end
  local due = fuse_due(job.id)
  if not due then
    due = redis.call('ZSCORE', due_key(task), job.id)
    due = due and math.floor(tonumber(due)) or now
  end
  return PENDING, task, due
end

local reply, mapping, batches, wrote, all_armed = { ms(now) }, {}, {}, false, true

local function arm(job)
  wrote = true
  if job.due > now then
    redis.call('SET', fuse_key(job.id), 0, 'PXAT', ms(job.due)) -- a small number costs no memory; no counter is 0
  end
  mapping[#mapping + 1] = class_key(job.id)
  mapping[#mapping + 1] = job.class
  local batch = batches[job.task] or {}
  batches[job.task] = batch
  batch[#batch + 1] = ms(job.due)
  batch[#batch + 1] = job.id
end

local function flush()
  if #mapping > 0 then redis.call('MSET', unpack(mapping)) end
  for task, batch in pairs(batches) do index(task, batch, channel) end
  mapping, batches = {}, {}
end

local function answer(code, due)
  all_armed = all_armed and code == ARMED
  reply[#reply + 1] = code
  reply[#reply + 1] = due == math.huge and '-1' or ms(due)
end

for _, job in ipairs(jobs) do
  local code, task, due
  if not all_new then code, task, due = existing(job) end
  if code == FOREIGN or code == WINDOW then
    answer(code, 0)
  elseif code == PENDING and mode ~= 'replace' then
    answer(mode == 'keep' and KEPT or PENDING, due)
  else
    arm(job)
    if not all_new then
      if job.due <= now then redis.call('DEL', fuse_key(job.id)) end
      flush()
      if task and task ~= job.task then redis.call('ZREM', due_key(task), job.id) end
    end
    answer(code and REPLACED or ARMED, job.due)
  end
end
flush()

-- Keeps the answer for a while. What armed nothing may be tried again.
if wrote then
  redis.call('HSET', answers, token, all_armed and reply[1] or table.concat(reply, ' '))
  redis.call('ZADD', answered, ms(now), token)
  local old = redis.call('ZRANGE', answered, '-inf', ms(now - KEEP_MS), 'BYSCORE', 'LIMIT', 0, 10)
  if #old > 0 then
    redis.call('HDEL', answers, unpack(old))
    redis.call('ZREM', answered, unpack(old))
  end
  redis.call('PEXPIRE', answers, KEEP_MS)
  redis.call('PEXPIRE', answered, KEEP_MS)
end
return reply
