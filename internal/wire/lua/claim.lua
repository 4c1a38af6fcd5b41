-- claim.lua takes what is due for a node, earliest first.
--
-- KEYS  1 root
-- ARGV  1 node   2 sequence number of this call, rising by one a call
--       3 runs wanted at most   4 bytes of records to stop after
--       5 payload limit in bytes: a longer one stays where it is
--       6 wake-up channel
--       then for each task: its name, runs wanted of it at most
-- Answer  {seconds, microseconds, next, refused, example, task, lease, record, …}
--         the clock; when the next run of a task that was asked for is due, in
--         ms, -1 if there is none, -2 if the node holds no lease (see beat.lua) and
--         so may take nothing; how many jobs were refused (class key of
--         another type, or payload over the limit), with the id of one.
-- Cost  2 commands a task, then about 10 for each task with something due;
--       O(log n) a run; 6 commands more for each window that ends.
--
-- A replay after a lost reply, with the same node and sequence number, answers
-- the same runs; an older sequence number, delayed on its way, takes nothing.
-- The first write of each step is one that Redis allows when it is out of
-- memory, and the rest of a script follows its first write: so a full Redis
-- can be worked empty.

local node, seq = ARGV[1], tonumber(ARGV[2])
local left, bytes, limit, channel = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local FIRST_TASK = 7
local CHUNK = 32 -- records read at a time at most, between two looks at the bytes
local chunk = 4  -- and at first: they may be long
local QUARTERS = { [0] = 'index', [1] = 'event', [2] = 'sweep', [3] = 'manual' }

local reply = { time[1], time[2], -1, 0, '' }
local taken = 0      -- runs taken by this call
local receipt = {}   -- of what, for a replay: `task rid attempt`, or `task +from to` for runs named by this call

local answered = #reply -- a # is a search, so not for each run
local function answer(task, held, rec)
  reply[answered + 1], reply[answered + 2], reply[answered + 3] = task, held, rec
  answered = answered + 3
  bytes = bytes - #rec
end

local rid_prefix = node .. '.' .. ms(seq) .. '.'

if not redis.call('ZSCORE', root .. 'nodes', node) then
  reply[3] = -2
  return reply
end
local last = redis.call('HGET', root .. 'claims', node)
if last then
  local last_seq = tonumber(string.match(last, '^%d+'))
  if seq < last_seq then return reply end
  if seq == last_seq then
    local held = {} -- task → what begins a lease of this node → that lease
    local function again(task, rid, attempt)
      if not held[task] then
        held[task] = {}
        for _, member in ipairs(redis.call('HKEYS', running_key(task))) do
          local l = read_lease(member)
          if l.node == node then held[task][l.rid .. ' ' .. l.attempt] = member end
        end
      end
      local member = held[task][rid .. ' ' .. attempt]
      if member then answer(task, member, redis.call('HGET', running_key(task), member)) end
    end
    for task, rid, attempt in string.gmatch(last, ' (%S+) (%S+) (%d+)') do
      local from = string.match(rid, '^+(%d+)')
      if not from then again(task, rid, attempt) end
      for i = tonumber(from or 1), tonumber(from and attempt or 0) do again(task, rid_prefix .. i, 1) end
    end
    reply[3] = now_text
    return reply
  end
end

local function next_chunk(done, n)
  local upto = math.min(done + chunk, n)
  chunk = math.min(2 * chunk, CHUNK)
  return upto
end

local function take_retrying(task, want)
  local key = retrying_key(task)
  local rids = redis.call('ZRANGE', key, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, want)
  local done = 0
  while done < #rids and bytes > 0 do
    local upto = next_chunk(done, #rids)
    local recs = redis.call('HMGET', runs_key(task), unpack(rids, done + 1, upto))
    redis.call('ZREM', key, unpack(rids, done + 1, upto))
    local taking, finders, gone = {}, {}, {}
    for i, rec in ipairs(recs) do
      if rec then
        local rid, attempt, id = rids[done + i], attempt_of(rec) + 1
        rec, id = amend(rec, attempt, nil)
        local held = lease(rid, attempt, node, id)
        gone[#gone + 1] = rid
        finders[#finders + 1] = ids_member(id, task, rid)
        taking[#taking + 1] = held
        taking[#taking + 1] = rec
        answer(task, held, rec)
        receipt[#receipt + 1] = task .. ' ' .. rid .. ' ' .. attempt
        taken = taken + 1
      end
    end
    if #gone > 0 then
      redis.call('HDEL', runs_key(task), unpack(gone))
      redis.call('ZREM', root .. 'ids', unpack(finders))
      redis.call('HSET', running_key(task), unpack(taking))
    end
    done = upto
  end
end

-- A due job that is not this task's to run: its fuse burns again, it was
-- cancelled, it can't be run, or its class names another task by now.
local function set_aside(task, id, due, value)
  if due == math.huge then return end -- immortal: held until it gets a TTL again
  if due then return index(task, { ms(due), id }, channel) end
  if not value and redis.call('TYPE', class_key(id)).ok == 'none' then return end
  local other = value and task_of(value)
  if other and other ~= task and #value - #other - 1 <= limit then
    return index(other, { now_text, id }, channel)
  end
  reply[4] = reply[4] + 1
  reply[5] = id
end

-- Due time, as text, and source of what stands in the index.
local function origin(at)
  if not string.find(at, '.', 1, true) then return at, 'index' end
  return ms(math.floor(at)), QUARTERS[math.floor((at % 1) * 4 + 0.5)]
end

local has_windows = redis.call('EXISTS', windows_key) == 1

-- The count, reason and payload of the run that a window's end fires, or nil; and
-- whether its counter was replaced by one that counts for the next window. If
-- somebody cancelled by deleting the class key, what came since is left: w.rest.
local function end_window(id, w, class)
  local text, replaced = read_counter(id, w)
  if not class then
    local rest = not replaced and not w.fired and tonumber(text) - tonumber(last_count(id)) or 0
    if rest > 0 then w.rest = ms(rest) end
    return replaced
  end
  local count, reason = outcome(id, w, text, replaced)
  if not count then return replaced end
  return replaced, count, reason, window_payload(w, count, reason, w.ends, w.items > 0 and read_items(id) or '', class)
end

local function take_due(task, want)
  local key = due_key(task)
  local page = redis.call('ZRANGE', key, '-inf', '(' .. ms(now + 1), 'BYSCORE', 'LIMIT', 0, want, 'WITHSCORES')
  local n = #page / 2
  if n == 0 then return 0, 0 end
  local all, fuses, classes = {}, {}, {}
  for i = 1, n do
    local id = page[2 * i - 1]
    all[i] = id
    fuses[i] = fuse_key(id)
    classes[i] = class_key(id)
  end
  local burning = redis.call('EXISTS', unpack(fuses)) > 0
  local prefix = task .. ' '
  local gone, taking, got, aside, ended = {}, {}, 0, {}, {}
  local done = 0

  local function take_run(i, reason, count, payload)
    local id = all[i]
    local rid = rid_prefix .. ms(taken)
    local held = lease(rid, 1, node, id)
    local due, source = origin(page[2 * i])
    if source == 'manual' then reason = source end
    local rec = run_record(1, id, due, reason, source, count, payload)
    got = got + 1
    gone[got] = classes[i]
    taking[2 * got - 1], taking[2 * got] = held, rec
    answer(task, held, rec)
    taken = taken + 1
  end

  local function take_window(i, w, class)
    local replaced, count, reason, payload = end_window(all[i], w, class)
    ended[#ended + 1] = { all[i], w, replaced }
    if not count then return end
    take_run(i, reason, count, payload)
    note_firing(w.def, reason, count, all[i])
  end

  while done < n and bytes > 0 do
    local upto = next_chunk(done, n)
    local values = redis.call('MGET', unpack(classes, done + 1, upto))
    local windows = has_windows and redis.call('HMGET', windows_key, unpack(all, done + 1, upto))
    for i = done + 1, upto do
      local id, value = all[i], values[i - done]
      local window = windows and windows[i - done] and read_window(windows[i - done])
      local due = burning and not window and fuse_due(id) or nil
      local mine = value and (value == task or string.find(value, prefix, 1, true) == 1)
      if window and (mine or not value) then
        take_window(i, window, value)
      elseif due or not mine or #value - #prefix > limit then
        aside[#aside + 1] = { id, due, value }
      else
        take_run(i, 'timer', 0, string.sub(value, #prefix + 1))
      end
    end
    done = upto
  end
  redis.call('ZREMRANGEBYRANK', key, 0, done - 1)
  if got > 0 then
    receipt[#receipt + 1] = task .. ' +' .. (taken - got) .. ' ' .. (taken - 1)
    redis.call('DEL', unpack(gone))
    redis.call('HSET', running_key(task), unpack(taking))
  end
  for _, e in ipairs(ended) do
    remove_window(e[1], e[2], e[3])
    if e[2].rest then redis.call('SET', fuse_key(e[1]), e[2].rest) end
  end
  for _, a in ipairs(aside) do set_aside(task, a[1], a[2], a[3]) end
  return done, got
end

-- Takes at most want runs of a task. True if there may be more to take.
local function take(task, want)
  local before = taken
  if (first_score(retrying_key(task)) or math.huge) <= now then
    take_retrying(task, want)
  end
  local rest, more = want - (taken - before), false
  while rest > 0 and bytes > 0 and (first_score(due_key(task)) or math.huge) < now + 1 do
    local seen, got = take_due(task, rest)
    rest = rest - got
    more = true
    if seen == 0 or got < seen then break end -- the next call goes on behind what was set aside
  end
  left = left - (taken - before)
  return more or taken > before
end

local paused = {}
for _, task in ipairs(redis.call('SMEMBERS', root .. 'paused')) do paused[task] = true end

-- Two rounds, so that a flood of one task leaves the others their share.
local tasks, wants = {}, {}
for i = FIRST_TASK, #ARGV, 2 do
  if not paused[ARGV[i]] then
    tasks[#tasks + 1] = ARGV[i]
    wants[#tasks] = tonumber(ARGV[i + 1])
  end
end
local share = math.ceil(left / math.max(#tasks, 1))
for round = 1, 2 do
  for i, task in ipairs(tasks) do
    local before = taken
    if wants[i] > 0 and left > 0 and bytes > 0 and not take(task, math.min(wants[i], share, left)) then
      wants[i] = 0
    end
    wants[i] = wants[i] - (taken - before)
  end
  share = left
end

local next_due = math.huge
for _, task in ipairs(tasks) do
  next_due = math.min(next_due, first_score(retrying_key(task)) or math.huge, first_score(due_key(task)) or math.huge)
end
if next_due < math.huge then reply[3] = ms(math.floor(next_due)) end
write_notes()
-- Noted also if nothing was taken, or the same call, delayed on its way, would
-- take runs that nobody hears of. Only then may a full Redis forbid it.
redis.pcall('HSET', root .. 'claims', node, ms(seq) .. ' ' .. table.concat(receipt, ' '))
return reply
