-- run.lua stands, behind the prelude, before the scripts that make, change or end
-- runs.

local function retrying_key(task) return root .. 'retrying:' .. task end
local function running_key(task) return root .. 'running:' .. task end
local function dead_key(task) return root .. 'dead:' .. task end
local function runs_key(task) return root .. 'runs:' .. task end

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

-- The members of keyfuse:ids: what finds runs by their job's id that are in
-- keyfuse:runs:<task>, that is retrying or dead.
local function ids_member(id, task, rid) return id .. '\0' .. task .. ' ' .. rid end

-- The runs of a job that are retrying or dead: {task, rid} each.
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

-- What somebody else has written there may be too long for a lease.
local function attempt_of(rec)
  local digits = string.match(rec, '^%d+') or '0'
  return #digits <= 9 and tonumber(digits) or 0
end

-- A field of keyfuse:running:<task>: a lease, `rid attempt node at id`, where at is
-- when it was claimed, in ms. The attempt in it is the fencing token: whoever holds
-- an older one finds no such field.
local function lease(rid, attempt, node, id)
  return rid .. ' ' .. attempt .. ' ' .. node .. ' ' .. now_text .. ' ' .. id
end
local function read_lease(held)
  local rid, attempt, node, at, id = string.match(held, '^(%S+) (%d+) (%S+) (%d+) (.*)$')
  return { rid = rid, attempt = attempt, node = node, at = at, id = id }
end

-- The runs of a job that are under way: {task, rid, at, lease} each. There are as
-- many leases as handlers run, and this looks at all of them.
local function under_way(id)
  local runs = {}
  local pattern = '* ' .. string.gsub(id, '[%*%?%[%]\\^]', '\\%0')
  for _, task in ipairs(redis.call('SMEMBERS', root .. 'tasks')) do
    local cursor = '0'
    repeat
      local page = redis.pcall('HSCAN', running_key(task), cursor, 'MATCH', pattern, 'COUNT', 1000)
      if not page[1] then page = { '0', {} } end -- another type: one task's damage is its own
      cursor = page[1]
      for i = 1, #page[2], 2 do
        local held = read_lease(page[2][i])
        if held.id == id then runs[#runs + 1] = { task = task, rid = held.rid, at = held.at, lease = page[2][i] } end
      end
    until cursor == '0'
  end
  return runs
end

-- Whether a node holds its lease. While it does nobody else ends its runs' leases:
-- one that is not there was settled by an earlier call, and only its reply was lost.
local holds = {}
local function holds_lease(node)
  if holds[node] == nil then holds[node] = redis.call('ZSCORE', root .. 'nodes', node) or false end
  return holds[node]
end
