-- counter.lua stands, behind window.lua, before hit.lua: what a hit does to one
-- counter. Nothing is written here but notes of what is to be.
--
-- A counter, while a script looks at it, has: id; name and def, its definition;
-- text and value, as found; last, the count that was last seen; ttl, as
-- PEXPIRETIME gives it; found, the window that was open, with old_task, old_def and
-- stored_items as it was; was, what it was like, if it goes on; replaced, see window.lua; window, the one
-- that is open now; opened, whether this script opened one; class, a class key of
-- the client's own.

-- The definition of an id: its own, or the pattern with the longest text before its
-- *. define.lua sees to it that no two that match are equally long.
local patterns, definitions = nil, {}
local function read_patterns()
  patterns = {}
  for _, name in ipairs(redis.call('SMEMBERS', root .. 'patterns')) do
    local head, tail = split_pattern(name)
    if head then patterns[#patterns + 1] = { name = name, head = head, tail = tail } end
  end
  table.sort(patterns, function(a, b) return #a.head > #b.head end)
end

local function definition(name)
  if definitions[name] == nil then
    local text = redis.call('HGET', thresholds_key, name)
    definitions[name] = text and read_definition(text) or false
  end
  return definitions[name]
end

local function definition_of(id)
  if #id > 512 or string.find(id, '^class:') or string.find(id, '^keyfuse:') then return nil end
  local own = definition(id)
  if own then return id, own end
  if not patterns then read_patterns() end
  for _, p in ipairs(patterns) do
    if #id >= #p.head + #p.tail and string.sub(id, 1, #p.head) == p.head and string.sub(id, #id - #p.tail + 1) == p.tail then
      return p.name, definition(p.name)
    end
  end
end

-- A script may fire so many runs, and so many bytes of them; see hit.lua.
local runs, fired_bytes = 0, 0
local function fire_window(c, w, count, reason, due)
  local items = w.items > 0 and (c.stored_items > 0 and w == c.found and read_items(c.id) or '') .. table.concat(w.added) or ''
  local keeps_class = w == c.found and w.task == c.old_task and w.def == c.old_def
  local class = keeps_class and redis.call('MGET', class_key(c.id))[1] or c.class or class_of(w.def, w.task)
  local payload = window_payload(w, count, reason, due, items, class)
  fire(w.task, c.rid_prefix .. ms(runs), c.id, run_record(0, c.id, ms(due), reason, 'threshold', count, payload))
  note_firing(w.def, reason, count, c.id)
  runs, fired_bytes = runs + 1, fired_bytes + #payload
end

-- What a window takes from its definition, at each look.
local function follow(w, c)
  local def = c.def
  w.need, w.timeout, w.task, w.slides, w.def = def.count, def.timeout, def.task, def.debounce > 0, c.name
end

-- Looks whether the window that was found goes on, and ends it if not.
local function go_on_or_end(c, has_class)
  local w = c.found
  local over = w.ends <= now or not has_class
  w.count = tonumber(c.last)
  c.ttl = redis.call('PEXPIRETIME', fuse_key(c.id))
  c.replaced = is_replaced(w, c.text, c.ttl, c.last)
  if not over and not c.replaced then
    c.was = { count = w.count, ends = w.ends, fired = w.fired }
    c.window, w.count = w, c.value
    follow(w, c)
    if w.def ~= c.old_def then
      count_open(c.old_def, -1)
      count_open(w.def, 1)
    end
    return
  end
  local count, reason = outcome(c.id, w, c.text, c.replaced)
  if count and has_class then fire_window(c, w, count, reason, math.min(w.ends, now)) end
  count_open(w.def, -1)
  if c.replaced then return end -- it counts for the next window
  c.value = has_class and 0 or math.max(c.value - w.count, 0) -- what came since it was last seen
  c.text = ms(c.value)
end

-- A counter, or why it can't be hit.
local function look_at(c, record, has_class)
  c.name, c.def = definition_of(c.id)
  if not c.def then return 'N' end
  if c.text and not is_integer(c.text) or not c.text and redis.call('TYPE', fuse_key(c.id)).ok ~= 'none' then return 'W' end
  c.value, c.stored_items = tonumber(c.text or 0), 0
  c.found = record and read_window(record) or nil
  if not c.found then return end
  c.old_task, c.old_def, c.stored_items = c.found.task, c.found.def, c.found.items
  go_on_or_end(c, has_class)
end

-- Whether a window may open: a class key that is there already is a client's own
-- for this counter, or it is another job's.
local function may_open(c)
  if c.found or c.opened then return true end
  local kind = redis.call('TYPE', class_key(c.id)).ok
  if kind == 'none' then return true end
  local class = kind == 'string' and redis.call('GET', class_key(c.id))
  if not class or task_of(class) ~= c.def.task then return false end
  -- The fuse of a timer that we armed is 0, and one that has run out is gone.
  if c.value == 0 and redis.call('ZSCORE', due_key(c.def.task), c.id) then return false end
  c.class = class
  return true
end

local function open(c)
  local length = c.def.debounce > 0 and c.def.debounce or c.def.within
  local w = { start = now, ends = now + length, items = 0, added = {}, added_bytes = 0 }
  if c.value ~= 0 and not c.found then -- a client may have given its counter a TTL already
    local at = redis.call('PEXPIRETIME', fuse_key(c.id))
    if at > now then w.ends = math.min(w.ends, at) end
  end
  follow(w, c)
  c.window, c.opened = w, true
  count_open(c.name, 1)
  return w
end

-- Why an item can't be added, or nil.
local function no_place(c, item)
  local w, def = c.window, c.def
  if item == '' or w and w.fired then return nil end
  if w and w.items >= def.max_items then return 'I' end
  local length = w and w.added_bytes or 0
  if w and w == c.found and c.stored_items > 0 then
    c.stored_bytes = c.stored_bytes or redis.pcall('STRLEN', items_key(c.id))
    if type(c.stored_bytes) == 'number' then length = length + c.stored_bytes end
  end
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
  w.count = count
  if w.fired then return nil, w, false end
  if w.slides and c.was and (by > 0 or count ~= c.was.count) then
    w.ends = math.min(now + def.debounce, w.start + def.longest)
  end
  if item ~= '' then
    w.items, w.added[#w.added + 1], w.added_bytes = w.items + 1, ',' .. item, w.added_bytes + #item + 1
  end
  if count < w.need then return nil, w, false end

  fire_window(c, w, by == 0 and c.text or ms(count), 'threshold', now)
  if def.once then
    w.fired, w.items, w.added, w.added_bytes = true, 0, {}, 0
  else
    count_open(w.def, -1)
    c.window, c.value, c.was = nil, 0, nil
  end
  return nil, w, true
end
