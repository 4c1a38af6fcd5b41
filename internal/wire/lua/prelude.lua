-- prelude.lua stands before every other script of this folder.
--
-- KEYS[1] is always the root, `keyfuse:` (or `keyfuse:{tag}:`, where all keys
-- carry that hash tag and so live in one slot). All other names are made from
-- it, because what a script touches is only known once it has read an index.
--
-- Scripts judge time by Redis's clock alone. A score in a due index is a time
-- in ms plus a quarter for each step of how its job was found:
-- .00 armed by a client, .25 an event, .50 the sweep, .75 fired by hand.

local root = KEYS[1]
local tag = string.match(root, '^keyfuse:({.*}):$') or ''

-- While a cluster moves a slot, its keys are on two servers, and a script would find
-- some of them missing wherever it runs. A server that gives a slot away refuses keys
-- that it does not have, and one that receives it refuses two of which it lacks one:
-- both refuse this, before anything was written. These two keys never exist.
-- (getNodeByQuery in Redis's cluster.c, which is asked for each command of a script)
if tag ~= '' and type(redis.pcall('EXISTS', root .. 'nothing', root .. 'nowhere')) == 'table' then
  return redis.error_reply('TRYAGAIN the slot of this partition is being moved')
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function due_key(task) return root .. 'due:' .. task end
local function retrying_key(task) return root .. 'retrying:' .. task end
local function running_key(task) return root .. 'running:' .. task end
local function dead_key(task) return root .. 'dead:' .. task end
local function runs_key(task) return root .. 'runs:' .. task end
local function fuse_key(id) return tag .. id end
local function class_key(id) return 'class:' .. tag .. id end

-- Lua 5.1 would print a large number in 14 digits, and any number as a float,
-- which takes as long as a command does.
local function ms(number) return string.format('%d', number) end
local function score(number) return string.format('%.2f', number) end
local now_text = ms(now)

-- The members of keyfuse:ids: what finds the runs of a job by its id.
local function ids_member(id, task, rid) return id .. '\0' .. task .. ' ' .. rid end

-- The runs of a job: {task, rid} each.
local function runs_of(id)
  local runs, skip = {}, #id + 2
  for _, member in ipairs(redis.call('ZRANGE', root .. 'ids', '[' .. id .. '\0', '(' .. id .. '\1', 'BYLEX')) do
    local rest = string.sub(member, skip)
    local task, rid = string.match(rest, '^(%S+) (%S+)$')
    -- An id may hold a zero byte itself, and then begin with another id and one.
    if task and not string.find(rest, '\0', 1, true) then runs[#runs + 1] = { task = task, rid = rid } end
  end
  return runs
end

-- The task that a class value names, or nil if it names none.
local function task_of(value)
  local name = string.match(value, '^[^ ]*')
  if #name <= 128 and string.find(name, '^[A-Za-z0-9][A-Za-z0-9._:/-]*$') then return name end
end

-- When a fuse runs out: nil if it has, math.huge if it never will. In its due
-- millisecond a key is still there, and then it is for us to delete it.
local function fuse_due(id)
  local at = redis.call('PEXPIRETIME', fuse_key(id))
  if at == -2 then return nil end
  if at == -1 then return math.huge end
  if at > now then return at end
  redis.call('DEL', fuse_key(id))
  return nil
end

-- The score of a sorted set's first member, or nil.
local function first_score(key)
  local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2])
end

-- Wakes the nodes if the first score of a task's sorted set is lower than it was
-- before: they sleep until the one that they know. PUBLISH may be forbidden, and
-- a lost wake-up loses nothing.
local function wake_if_earlier(key, before, task, channel)
  local first = first_score(key)
  if first and (not before or first < before) then redis.pcall('PUBLISH', channel, task) end
end

-- Writes pairs {score, member, score, member, …} to a task's due index.
local function index(task, pairs, channel)
  local key = due_key(task)
  local before = first_score(key)
  redis.call('ZADD', key, unpack(pairs))
  if not before then redis.call('SADD', root .. 'tasks', task) end
  wake_if_earlier(key, before, task, channel)
end

-- A run's record is a line of fields and then three strings end to end:
--   attempt due reason source count #id #error\n id error payload
-- claim.lua makes it. This is the same record with another attempt and, unless
-- nil, another error; what is no record stays as it is.
local function amend(rec, attempt, err)
  local line_end = string.find(rec, '\n', 1, true) or 1
  local middle, id_len, err_len = string.match(string.sub(rec, 1, line_end - 1), '^%d+ (.*) (%d+) (%d+)$')
  if not middle then return rec, '' end
  local id = string.sub(rec, line_end + 1, line_end + id_len)
  local old = string.sub(rec, line_end + id_len + 1, line_end + id_len + err_len)
  local payload = string.sub(rec, line_end + id_len + err_len + 1)
  err = err or old
  return attempt .. ' ' .. middle .. ' ' .. id_len .. ' ' .. #err .. '\n' .. id .. err .. payload, id
end

local function attempt_of(rec) return tonumber(string.match(rec, '^%d+') or 0) end

-- A field of keyfuse:running:<task>: a lease. The attempt in it is the fencing
-- token: whoever holds an older one finds no such field.
local function lease(rid, attempt, node) return rid .. ' ' .. attempt .. ' ' .. node end
local function run_of(held) return string.sub(held, 1, string.find(held, ' ', 1, true) - 1) end

-- Whether a lease that is not held was lost. While its node has not been given
-- up nobody else ends its leases: then an earlier call settled the run, and only
-- its reply was lost.
local function is_lost(held)
  return not redis.call('ZSCORE', root .. 'nodes', string.match(held, '%S+$'))
end
