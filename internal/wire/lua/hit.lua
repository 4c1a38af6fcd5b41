-- hit.lua counts hits: it opens windows, crosses thresholds, and ends windows
-- whose time is over. A hit by 0 counts nothing: it looks at what other clients
-- have counted.
--
-- KEYS  1 root
-- ARGV  1 wake-up channel   2 what the ids of runs begin with; no other call's do
--       3 token, by which a call that is made again after a lost reply is known;
--         '' if all hits are by 0, which may be made again
--       4 for how long it is known, in ms
--       then for each hit: id, by, item (JSON, or '' for none)
-- Answer  one text: now, and for each hit ` count/need!@left`: ! if it fired;
--         left is the time until its window ends, in ms; /need and @left only
--         where they differ from those of the hit before. Or why it was refused,
--         so that it changed nothing: ` N` no definition, ` W` the counter is no
--         integer, ` O` it would overflow, ` J` the id is a pending job's, ` I`
--         too many items, ` B` too many bytes of items.
-- Cost  some 10 commands a call, 1 or 2 for each id, 5 for each window that
--       opens or ends. Replaying it changes nothing, and answers the same.
--
-- The first write is one that a full Redis refuses: then nothing has changed.

local channel, rid_prefix, token, keep = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local FIRST = 5
local counted, counted_until = root .. 'counted', root .. 'counted_until'
local only_look = token == ''

local told = not only_look and redis.call('HGET', counted, token)
if told then return told end

local ids, places, keys = {}, {}, {}
for i = FIRST, #ARGV, 3 do
  local id = ARGV[i]
  if not places[id] then
    ids[#ids + 1] = id
    keys[#ids] = fuse_key(id)
    places[id] = #ids
  end
end
local exact = redis.call('HMGET', thresholds_key, unpack(ids))
local records = redis.call('HMGET', windows_key, unpack(ids))
local values = redis.call('MGET', unpack(keys))

-- The definition of an id: its own, or the pattern with the longest text before
-- its *. define.lua sees to it that no two that match are equally long.
local patterns, definitions = nil, {}
local function read_patterns()
  patterns = {}
  for _, name in ipairs(redis.call('SMEMBERS', root .. 'patterns')) do
    local head, tail = split_pattern(name)
    patterns[#patterns + 1] = { name = name, head = head, tail = tail }
  end
  table.sort(patterns, function(a, b) return #a.head > #b.head end)
end

local function name_of(id, own)
  if own and not split_pattern(id) then return id end
  if not patterns then read_patterns() end
  for _, p in ipairs(patterns) do
    if #id >= #p.head + #p.tail and string.sub(id, 1, #p.head) == p.head and string.sub(id, #id - #p.tail + 1) == p.tail then
      return p.name
    end
  end
end

local function definition(id, own)
  local name = name_of(id, own)
  if name and not definitions[name] then
    definitions[name] = read_definition(name == id and own or redis.call('HGET', thresholds_key, name))
  end
  return name, definitions[name]
end

-- Whether the class key of each open window is there: without it somebody has
-- cancelled by hand.
local has_class = {}
local function look_for_classes()
  local classes = {}
  for i, id in ipairs(ids) do
    if records[i] then classes[#classes + 1] = class_key(id) end
  end
  local all = #classes == 0 or redis.call('EXISTS', unpack(classes)) == #classes
  for i, id in ipairs(ids) do
    if records[i] then has_class[i] = all or redis.call('EXISTS', class_key(id)) == 1 end
  end
end
look_for_classes()

local runs = 0
local function fire_window(c, w, count, reason, due)
  local items = w.items > 0 and (w == c.found and redis.call('GET', items_key(c.id)) or '') .. w.added or ''
  local class = w == c.found and redis.call('GET', class_key(c.id)) or c.class or c.def.class
  local payload = window_payload(w, count, reason, due, items, class)
  fire(w.task, rid_prefix .. ms(runs), c.id, run_record(0, c.id, due, reason, 'threshold', count, payload))
  note_firing(w.def, reason, count, c.id)
  runs = runs + 1
end

-- Looks whether the window that was found goes on, and ends it if not.
local function go_on_or_end(c, has_its_class)
  local w, over = c.found, c.found.ends <= now
  if not has_its_class then over = true end
  if over or only_look or not c.text or c.value < w.count then
    c.ttl = redis.call('PEXPIRETIME', fuse_key(c.id))
    c.replaced = c.ttl < 0
  end
  if not over and not c.replaced then
    c.was = { count = w.count, ends = w.ends, task = w.task, fired = w.fired }
    c.window, w.count = w, c.value
    return
  end
  local count, reason = outcome(w, c.text, c.replaced)
  if count and has_its_class then fire_window(c, w, count, reason, math.min(w.ends, now)) end
  count_open(w.def, -1)
  if c.replaced then return end -- it counts for the next window
  c.value = has_its_class and 0 or math.max(c.value - w.count, 0) -- what came since it was last seen
end

-- A counter: why it can't be hit, or its window, if one is open.
local function look_at(i)
  local c = { id = ids[i], text = values[i] or nil }
  c.name, c.def = definition(c.id, exact[i])
  if not c.def then return { refused = 'N' } end
  if c.text and not is_integer(c.text) or not c.text and redis.call('TYPE', keys[i]).ok ~= 'none' then
    return { refused = 'W' }
  end
  c.value = tonumber(c.text or 0)
  c.found = records[i] and read_window(records[i]) or nil
  if c.found then go_on_or_end(c, has_class[i]) end
  return c
end

-- Whether a window may open: a class key that is there already is a client's own
-- for this counter, or it is another job's.
local function may_open(c)
  if c.found or c.opened then return true end
  local kind = redis.call('TYPE', class_key(c.id)).ok
  if kind == 'none' then return true end
  local class = kind == 'string' and redis.call('GET', class_key(c.id))
  if not class or task_of(class) ~= c.def.task then return false end
  local at = redis.call('ZSCORE', due_key(c.def.task), c.id)
  if at and not string.find(at, '.', 1, true) then return false end -- a timer that we armed
  c.class = class
  return true
end

local function open(c)
  local length = c.def.debounce > 0 and c.def.debounce or c.def.within
  local w = { start = now, ends = now + length, items = 0, added = '', def = c.name, json = c.def.json }
  if c.value ~= 0 and not c.found then -- a client may have given its counter a TTL already
    local at = redis.call('PEXPIRETIME', fuse_key(c.id))
    if at > now then w.ends = math.min(w.ends, at) end
  end
  c.window, c.opened = w, true
  count_open(c.name, 1)
  return w
end

-- Why an item can't be added, or nil.
local function no_place(c, item)
  local w, def = c.window, c.def
  if item == '' or w and w.fired then return nil end
  if w and w.items >= def.max_items then return 'I' end
  local length = w and #w.added or 0
  if w and w == c.found and w.items > 0 then length = length + redis.call('STRLEN', items_key(c.id)) end
  if length + #item + 1 > def.max_bytes then return 'B' end
end

-- Counts a hit. Gives why it was refused or nil, its window, and whether it fired.
local function hit(c, by, item)
  local def, w = c.def, c.window
  local count = (w and w.count or c.value) + by
  if by > 0 and count > MAX_COUNT then return 'O' end
  if by == 0 and not w and count <= 0 then return nil end
  if not w and not may_open(c) then return 'J' end
  local why = no_place(c, item)
  if why then return why end

  w = w or open(c)
  w.count, w.need, w.timeout, w.task = count, def.count, def.timeout, def.task
  if w.fired then return nil, w, false end
  if def.debounce > 0 and c.was and (by > 0 or count ~= c.was.count) then
    w.ends = math.min(now + def.debounce, w.start + def.longest)
  end
  if item ~= '' then w.items, w.added = w.items + 1, w.added .. ',' .. item end
  if count < def.count then return nil, w, false end

  fire_window(c, w, by == 0 and c.text or ms(count), 'threshold', now)
  if def.once then
    w.fired, w.items, w.added = true, 0, ''
  else
    count_open(w.def, -1)
    c.window, c.value, c.was = nil, 0, nil
  end
  return nil, w, true
end

local states = {}
local function count_all()
  local reply, last_need, last_left = { now_text }, nil, nil
  for i = FIRST, #ARGV, 3 do
    local at, by = places[ARGV[i]], tonumber(ARGV[i + 1])
    local c = states[at] or look_at(at)
    states[at] = c
    local refused, w, has_fired = c.refused, nil, false
    if not refused then refused, w, has_fired = hit(c, by, ARGV[i + 2]) end
    local text = refused or ''
    if w then
      local need, left = ms(w.need), ms(w.ends - now)
      text = ms(math.min(w.count, MAX_COUNT))
      if need ~= last_need then text = text .. '/' .. need end
      if has_fired then text = text .. '!' end
      if left ~= last_left then text = text .. '@' .. left end
      last_need, last_left = need, left
    end
    reply[#reply + 1] = text
  end
  return table.concat(reply, ' ')
end

-- What is to be written, a command for all counters where there is one.
local written = { records = {}, gone = {}, forgotten = {}, classes = {}, index = {}, unindex = {} }

local function list_of(lists, key)
  local list = lists[key] or {}
  lists[key] = list
  return list
end

local function add(list, ...)
  for _, v in ipairs({ ... }) do list[#list + 1] = v end
end

local function plan_end(c)
  if not c.found and not c.opened then return end
  add(written.gone, class_key(c.id), items_key(c.id))
  if not c.replaced or c.opened then add(written.gone, fuse_key(c.id)) end
  add(written.forgotten, c.id)
  add(list_of(written.unindex, c.found and c.found.task or c.def.task), c.id)
end

local function plan_window(c, at)
  local w, was = c.window, c.was
  local record = window_record(w)
  if record ~= records[at] then add(written.records, c.id, record) end
  if not was or was.task ~= w.task then add(written.classes, class_key(c.id), c.class or c.def.class) end
  if not was or was.task ~= w.task or was.ends ~= w.ends then add(list_of(written.index, w.task), ms(w.ends), c.id) end
  local old = was and was.task or c.found and c.found.task
  if old and old ~= w.task then add(list_of(written.unindex, old), c.id) end
  if c.found and c.found ~= w or was and w.fired ~= was.fired then add(written.gone, items_key(c.id)) end
end

-- Writes a counter so that other clients see what is counted, with its TTL.
local function write_counter(c)
  local w, was = c.window, c.was
  local ttl = w.fired and w.ends or w.ends + GRACE
  if not was or was.ends ~= w.ends or was.fired ~= w.fired or c.ttl and c.ttl ~= ttl then
    redis.call('SET', fuse_key(c.id), w.count == c.value and c.text or ms(w.count), 'PXAT', ms(ttl))
  elseif w.count ~= c.value then
    redis.call('SET', fuse_key(c.id), ms(w.count), 'KEEPTTL')
  end
  if w.added ~= '' then redis.call('APPEND', items_key(c.id), w.added) end
end

local function write_all()
  for at, c in pairs(states) do
    if c.window then plan_window(c, at) elseif not c.refused then plan_end(c) end
  end
  if #written.records > 0 then redis.call('HSET', windows_key, unpack(written.records)) end
  write_fired(channel)
  if #written.gone > 0 then redis.call('DEL', unpack(written.gone)) end
  if #written.forgotten > 0 then redis.call('HDEL', windows_key, unpack(written.forgotten)) end
  for task, list in pairs(written.unindex) do redis.call('ZREM', due_key(task), unpack(list)) end
  for _, c in pairs(states) do
    if c.window then write_counter(c) end
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
if not only_look and string.find(answer, ' %-?%d') then remember(answer) end
write_all()
return answer
