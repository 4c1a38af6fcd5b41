-- adoption.lua stands, behind the prelude, before adopt.lua and sweep.lua: how
-- bare jobs get into the index. An id that has a class key and is in no index is
-- indexed: at the time its fuse ends; or, if its fuse is gone, now if that was
-- heard, and else after a grace, since its fuse may be about to be set.
--
-- ARGV  1 event | sweep: who found them   2 grace in ms
--       3 payload limit in bytes   4 wake-up channel
-- Gives adopt_all(ids, from, upto), and adopted: {indexed, known, immortal,
-- refused, example, why}: how many ids were indexed, were so already, have a fuse
-- without TTL, have a class key that makes no job (empty, another type, no task
-- name, payload over the limit); and one of these.
-- Cost  EXISTS of the class keys of 32 ids that were heard; 1 command an id where
--       there is any, 1 more for each with a long payload, ZMSCORE of those with a
--       class key; 2 commands more for each that is in no index.

local by_event, grace, limit, channel = ARGV[1] == 'event', tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local HEAD = 129 -- bytes: the longest task name and a space
local adopted = { 0, 0, 0, 0, '', '' }
local INDEXED, KNOWN, IMMORTAL, REFUSED, EXAMPLE, WHY = 1, 2, 3, 4, 5, 6

local function refuse(id, why)
  adopted[REFUSED] = adopted[REFUSED] + 1
  adopted[EXAMPLE], adopted[WHY] = id, why
end

-- ids by task, of class keys that make a job
local found = {}
local function sort(id, head, length)
  local task = task_of(head)
  if not task then return refuse(id, 'its value begins with no task name') end
  if length - #task - 1 > limit then return refuse(id, 'its payload is over the limit') end
  local ids = found[task] or {}
  found[task] = ids
  ids[#ids + 1] = id
end

-- Reads a class key, but no payload: some hundred long ones would hold Redis up
-- for seconds.
local function read(id)
  local class = class_key(id)
  local head = redis.pcall('GETRANGE', class, 0, HEAD - 1)
  if type(head) == 'table' then
    if not by_event then refuse(id, 'it is no string') end
  elseif head ~= '' then
    sort(id, head, #head < HEAD and #head or redis.call('STRLEN', class))
  elseif not by_event and redis.call('EXISTS', class) == 1 then
    sort(id, head, 0)
  end
end

local CHUNK = 32
local function any_class(ids, from, upto)
  local classes = {}
  for i = from, upto do classes[#classes + 1] = class_key(ids[i]) end
  return redis.call('EXISTS', unpack(classes)) > 0
end

-- Reads the class keys of ids[from] to ids[upto]. Most keys that are heard to
-- expire have none: their jobs are claimed already, or never were any.
local function look_up(ids, from, upto)
  for first = from, upto, CHUNK do
    local last = math.min(first + CHUNK - 1, upto)
    if not by_event or any_class(ids, first, last) then
      for i = first, last do read(ids[i]) end
    end
  end
end

local function adopt(id, batch)
  local due = fuse_due(id)
  if due and redis.call('HEXISTS', root .. 'windows', id) == 1 then -- its end is not its counter's
    adopted[KNOWN] = adopted[KNOWN] + 1
    return
  end
  if due == math.huge then
    adopted[IMMORTAL] = adopted[IMMORTAL] + 1
    return
  end
  if not due then due = by_event and now + 0.25 or now + grace + 0.5 end
  batch[#batch + 1] = score(due)
  batch[#batch + 1] = id
  adopted[INDEXED] = adopted[INDEXED] + 1
end

-- Indexes what was found and is in no index yet.
local function index_found()
  for task, ids in pairs(found) do
    local batch = {}
    for i, known in ipairs(redis.call('ZMSCORE', due_key(task), unpack(ids))) do
      -- A fuse that is heard before the index's time was set again, to end earlier.
      if known and not (by_event and tonumber(known) >= now + 1) then
        adopted[KNOWN] = adopted[KNOWN] + 1
      else
        adopt(ids[i], batch)
      end
    end
    if #batch > 0 then
      redis.call('SREM', root .. 'tasks', '') -- a full Redis allows it, and then what follows
      index(task, batch, channel)
    end
  end
  found = {}
end

-- Adopts the bare jobs among ids[from] to ids[upto].
local function adopt_all(ids, from, upto)
  for first = from, upto, 500 do -- unpack takes no more than some 8,000
    look_up(ids, first, math.min(first + 499, upto))
    index_found()
  end
end
