-- adopt.lua indexes bare jobs: ids that have a class key and are in no index.
--
-- KEYS  1 root
-- ARGV  1 event | sweep: who found them   2 grace in ms
--       3 payload limit in bytes   4 wake-up channel, then ids
--       event  the fuse was heard to expire: if it is gone, the job is due now,
--              also one that the index has at a later time
--       sweep  the class key was seen: if its fuse is gone (an orphan), the job
--              is due after the grace, since its fuse may be about to be set
-- Answer  {indexed, known, immortal, refused, example, why}: how many ids were
--         indexed, were so already, have a fuse without TTL, have a class key
--         that makes no job (empty, another type, no task name, payload over the
--         limit); and one of these
-- Cost  MGET of the class keys, ZMSCORE of those that exist; 2 commands more
--       for each that is in no index.
--       Replaying it changes nothing.

local by_event, grace, limit, channel = ARGV[1] == 'event', tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local CHUNK = 32
local reply = { 0, 0, 0, 0, '', '' }
local INDEXED, KNOWN, IMMORTAL, REFUSED, EXAMPLE, WHY = 1, 2, 3, 4, 5, 6

local function refuse(id, why)
  reply[REFUSED] = reply[REFUSED] + 1
  reply[EXAMPLE], reply[WHY] = id, why
end

-- ids by task, of class keys that make a job
local found = {}
local function sort(id, value)
  local task = task_of(value)
  if not task then return refuse(id, 'its value begins with no task name') end
  if #value - #task - 1 > limit then return refuse(id, 'its payload is over the limit') end
  local ids = found[task] or {}
  found[task] = ids
  ids[#ids + 1] = id
end

for from = 5, #ARGV, CHUNK do
  local classes = {}
  for i = from, math.min(from + CHUNK - 1, #ARGV) do classes[#classes + 1] = class_key(ARGV[i]) end
  for i, value in ipairs(redis.call('MGET', unpack(classes))) do
    local id = ARGV[from + i - 1]
    if value then
      sort(id, value)
    elseif not by_event and redis.call('TYPE', classes[i]).ok ~= 'none' then
      refuse(id, 'it is no string')
    end
  end
end

local function adopt(id, batch)
  local due = fuse_due(id)
  if due == math.huge then
    reply[IMMORTAL] = reply[IMMORTAL] + 1
    return
  end
  if not due then due = by_event and now + 0.25 or now + grace + 0.5 end
  batch[#batch + 1] = score(due)
  batch[#batch + 1] = id
  reply[INDEXED] = reply[INDEXED] + 1
end

for task, ids in pairs(found) do
  local batch = {}
  for i, known in ipairs(redis.call('ZMSCORE', due_key(task), unpack(ids))) do
    -- A fuse that is heard before the index's time was set again, to end earlier.
    if known and not (by_event and tonumber(known) >= now + 1) then
      reply[KNOWN] = reply[KNOWN] + 1
    else
      adopt(ids[i], batch)
    end
  end
  if #batch > 0 then
    redis.call('SREM', root .. 'tasks', '') -- a full Redis allows it, and then what follows
    index(task, batch, channel)
  end
end
return reply
