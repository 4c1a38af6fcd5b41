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
local function fuse_key(id) return tag .. id end
local function class_key(id) return 'class:' .. tag .. id end

-- Lua 5.1 would print a large number in 14 digits, and any number as a float,
-- which takes as long as a command does.
local function ms(number) return string.format('%d', number) end
local function score(number) return string.format('%.2f', number) end
local now_text = ms(now)

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

-- Writes pairs {score, member, score, member, …} to a task's due index. Only if one
-- of them is the first then can the index have been empty, or nodes sleep too long.
local function index(task, pairs, channel)
  local key = due_key(task)
  redis.call('ZADD', key, unpack(pairs))
  local first = redis.call('ZRANGE', key, 0, 0)[1]
  for i = 2, #pairs, 2 do
    if pairs[i] == first then
      redis.call('SADD', root .. 'tasks', task)
      redis.pcall('PUBLISH', channel, task)
      return
    end
  end
end

-- What calls answered that are made again after a lost reply, by their tokens: for
-- half a minute at least, each half minute in a hash of its own. There is none with a
-- TTL, for a large one would hold Redis up when it expires.
local ANSWERS_MS = 30000
local function answers_key(ago)
  return root .. 'answers:' .. (math.floor(now / ANSWERS_MS) - ago) % 4
end
local function drop_old_answers() redis.call('UNLINK', answers_key(2), answers_key(3)) end
