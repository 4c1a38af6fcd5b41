-- hit.lua counts hits: it opens windows, crosses thresholds, and ends windows
-- whose time is over. A hit by 0 counts nothing: it looks at what other clients
-- have counted.
--
-- KEYS  1 root
-- ARGV  1 wake-up channel   2 what the ids of runs begin with
--       3 token, by which a call that is made again after a lost reply is known;
--         '' if all hits are by 0, which may be made again
--       4 for how long it is known, in ms
--       5 ids: then ids, each of which is hit by 1
--         runs: then for hits in a row of one id by 1: id, how many
--         full: then for each hit: id, by, item (JSON, or '' for none)
-- Answer  one text: for each hit `count/need!@ends`: ! if it fired; ends is when
--         its window ends, in ms; /need and @ends only where they differ from those
--         of the hit before. `+n`: n hits that go on counting by 1 from the one
--         before. Or why a hit was refused, so that it changed nothing: N no
--         definition, W the counter is no integer, O it would overflow, J the id is
--         a pending job's, I too many items, B too many bytes of items. `-` for a
--         hit by 0 where nothing is counted. There are fewer than hits if those
--         that are left would take too long: make another call for them.
-- Cost  some 10 commands a call, 1 for each id whose window goes on, some 10 for
--       each window that opens or ends. Replaying it changes nothing, and answers
--       the same.
--
-- The first write is one that a full Redis refuses: then nothing has changed.

local channel, token, keep = ARGV[1], ARGV[3], tonumber(ARGV[4])
-- A look may be made again, and by then something else may fire.
local rid_prefix = ARGV[2] .. '.' .. time[1] .. string.format('%06d', time[2]) .. '.'
local FIRST, STEP = 6, ({ ids = 1, runs = 2, full = 3 })[ARGV[5]]
local counted, counted_until = root .. 'counted', root .. 'counted_until'
local only_look = token == ''

local told = not only_look and redis.call('HGET', counted, token)
if told and tonumber(redis.call('ZSCORE', counted_until, token) or 0) > now then return told end

local ids, keys, places = {}, {}, {}
for i = FIRST, #ARGV, STEP do
  local id = ARGV[i]
  if not places[id] then
    local n = #ids + 1
    ids[n], keys[n], places[id] = id, fuse_key(id), n
  end
end
local records = redis.call('HMGET', windows_key, unpack(ids))
local counts = redis.call('HMGET', counts_key, unpack(ids))
local values = redis.call('MGET', unpack(keys))

-- Whether the class key of an open window is there: without it somebody has
-- cancelled by hand.
local classes = {}
for at, id in ipairs(ids) do
  if records[at] then classes[#classes + 1] = class_key(id) end
end
local all_classes = #classes == 0 or redis.call('EXISTS', unpack(classes)) == #classes
local function has_class(at) return all_classes or redis.call('EXISTS', class_key(ids[at])) == 1 end

-- Most hits find a window open that goes on, by the definition that it knows: then
-- all there is to do is to count, and no more of the counter is looked at. What
-- its record says behind the times is read once for all that say the same.
local TIMES = 28 -- bytes: two times and two spaces
local now13 = ms13(now)
local tails = {}
local function read_tail(text)
  local known = tails[text]
  if known == nil then
    local state, at, need = string.match(text, '^(%a+) (%d+) (%d+)')
    known = state == 'counting' and at == defined and #need <= 16 and { need = tonumber(need), text = need }
    tails[text] = known
  end
  return known
end

local quick = {} -- by place: {count, need, …}, or false if there is more to do
local function look_quickly(at)
  local record, value, last = records[at], values[at], counts[at]
  if not record or not value or not last or not has_class(at) then return false end
  local ends = string.sub(record, 1, 13)
  local known = ends > now13 and read_tail(string.sub(record, TIMES + 1))
  if not known then return false end
  if value ~= last and not (is_integer(value) and is_integer(last) and tonumber(value) > tonumber(last)) then return false end
  local count = tonumber(value)
  if not count or count >= known.need or redis.call('PEXPIRETIME', keys[at]) ~= tonumber(ends) + GRACE then return false end
  return { count = count, need = known.need, need_text = known.text, ends_text = ends }
end

local counters, answers = {}, {}
local last_need, last_ends

local function say(count, need, has_fired, ends)
  if need ~= last_need then count = count .. '/' .. need end
  if has_fired then count = count .. '!' end
  if ends ~= last_ends then count = count .. '@' .. ends end
  last_need, last_ends = need, ends
  answers[#answers + 1] = count
end

-- Hits that may do more than to count take some 30 µs each: no more of them go into
-- a call than take a few ms, nor more firings.
local WORK, FIRINGS, BYTES = 150, 50, 1048576
local work = 0
local function is_enough() return work >= WORK or runs >= FIRINGS or fired_bytes >= BYTES end

-- Counts a hit that may do more than that.
local function count_fully(at, by, item)
  work = work + 1
  local c = counters[at]
  if not c then
    local last = counts[at]
    c = { id = ids[at], text = values[at] or nil, last = last and is_integer(last) and last or '0', rid_prefix = rid_prefix .. at .. '.' }
    c.refused = look_at(c, records[at], has_class(at))
    counters[at] = c
    if quick[at] and c.window then c.window.count = quick[at].count end
    quick[at] = false
  end
  local refused, w, has_fired = c.refused, nil, false
  if not refused then refused, w, has_fired = hit(c, by, item) end
  if w then return say(ms(math.min(w.count, MAX_COUNT)), ms(w.need), has_fired, ms13(w.ends)) end
  answers[#answers + 1] = refused or '-'
end

-- How many of some hits in a row only count.
local function only_count(w, by, times, item)
  if not w or w.slides or item ~= '' or by == 0 then return 0 end
  if by == 1 then return math.min(times, w.need - 1 - w.count) end
  return w.count + by < w.need and 1 or 0
end

local function count_run(at, by, times, item)
  if quick[at] == nil then quick[at] = look_quickly(at) end
  while times > 0 do
    local w = quick[at] or counters[at] and counters[at].window
    local n = only_count(w, by, times, item)
    if by == 0 and quick[at] then
      n, w.hit = 1, true
      answers[#answers + 1] = '-'
    elseif n > 0 then
      local first = ms(w.count + by)
      w.count, w.hit = w.count + n * by, true
      say(first, w.need_text or ms(w.need), false, w.ends_text or ms13(w.ends))
      if n > 1 then answers[#answers + 1] = '+' .. ms(n - 1) end
    elseif is_enough() then
      return false
    else
      n = 1
      count_fully(at, by, item)
    end
    times = times - n
  end
end

local function count_at(i)
  local at = places[ARGV[i]]
  if STEP == 1 then return count_run(at, 1, 1, '') end
  if STEP == 2 then return count_run(at, 1, tonumber(ARGV[i + 1]), '') end
  return count_run(at, tonumber(ARGV[i + 1]), 1, ARGV[i + 2])
end

local function count_all()
  for i = FIRST, #ARGV, STEP do
    if count_at(i) == false then break end
  end
  return table.concat(answers, ' ')
end

-- What is to be written, a command for all counters where there is one.
local written = { records = {}, counts = {}, gone = {}, forgotten = {}, classes = {}, index = {}, unindex = {} }

local function list_of(lists, key)
  local list = lists[key] or {}
  lists[key] = list
  return list
end

local function add(list, a, b)
  local n = #list
  list[n + 1], list[n + 2] = a, b
end

local function plan_end(c)
  if not c.found and not c.opened then return end
  add(written.gone, class_key(c.id), items_key(c.id))
  if not c.replaced or c.opened then add(written.gone, fuse_key(c.id)) end
  add(written.forgotten, c.id)
  add(list_of(written.unindex, c.old_task or c.def.task), c.id)
end

local function plan_window(c, record_was)
  local w, was = c.window, c.was
  local record = window_record(w)
  if record ~= record_was then add(written.records, c.id, record) end
  if not was or w.count ~= was.count then add(written.counts, c.id, ms(math.min(w.count, MAX_COUNT))) end
  if not was or c.old_task ~= w.task or c.old_def ~= w.def then add(written.classes, class_key(c.id), c.class or class_of(w.def, w.task)) end
  if not was or c.old_task ~= w.task or was.ends ~= w.ends then add(list_of(written.index, w.task), ms(w.ends), c.id) end
  if c.old_task and c.old_task ~= w.task then add(list_of(written.unindex, c.old_task), c.id) end
  if c.stored_items > 0 and (c.found ~= w or w.fired) or #w.added > 0 and (c.found ~= w or c.stored_items == 0) then
    add(written.gone, items_key(c.id))
  end
end

-- Writes a counter so that other clients see what is counted, with its TTL.
local function write_counter(c)
  local w = c.window
  local ttl = expiry_of(w)
  if not c.was or c.ttl ~= ttl or w.count ~= c.value then
    redis.call('SET', fuse_key(c.id), w.count == c.value and c.text or ms(w.count), 'PXAT', ms(ttl))
  end
  if #w.added > 0 then redis.pcall('APPEND', items_key(c.id), table.concat(w.added)) end
end

local function plan_all()
  for at = 1, #ids do
    local c, q = counters[at], quick[at]
    if q then
      q.text = q.hit and ms(q.count)
      if q.hit and q.text ~= counts[at] then add(written.counts, ids[at], q.text) end
    elseif c and c.window then
      plan_window(c, records[at])
    elseif c and not c.refused then
      plan_end(c)
    end
  end
end

local function write_all()
  if #written.counts > 0 then redis.call('HSET', counts_key, unpack(written.counts)) end
  if #written.records > 0 then redis.call('HSET', windows_key, unpack(written.records)) end
  write_fired(channel)
  if #written.gone > 0 then redis.call('DEL', unpack(written.gone)) end
  if #written.forgotten > 0 then
    redis.call('HDEL', windows_key, unpack(written.forgotten))
    redis.call('HDEL', counts_key, unpack(written.forgotten))
  end
  for task, list in pairs(written.unindex) do redis.call('ZREM', due_key(task), unpack(list)) end
  for at = 1, #ids do
    local c, q = counters[at], quick[at]
    if q then
      if q.hit and q.text ~= values[at] then redis.call('SET', keys[at], q.text, 'KEEPTTL') end
    elseif c and c.window then
      write_counter(c)
    end
  end
  if #written.classes > 0 then redis.call('MSET', unpack(written.classes)) end
  for task, list in pairs(written.index) do index(task, list, channel) end
  write_notes()
end

local function remember(answer)
  redis.call('HSET', counted, token, answer)
  redis.call('ZADD', counted_until, ms(now + keep), token)
  local old = redis.call('ZRANGE', counted_until, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, 10)
  if #old > 0 then
    redis.call('HDEL', counted, unpack(old))
    redis.call('ZREM', counted_until, unpack(old))
  end
  for _, key in ipairs({ counted, counted_until }) do
    if redis.call('PTTL', key) < keep then redis.call('PEXPIRE', key, ms(keep)) end
  end
end

local answer = count_all()
if not only_look and string.find(answer, '%d') then remember(answer) end
plan_all()
write_all()
return answer
