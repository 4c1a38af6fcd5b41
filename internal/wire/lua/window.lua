-- window.lua stands, behind the prelude, before the scripts that open, end or
-- drop a threshold's windows.
--
-- A window is a counter (the fuse key of an id, which any client may INCR), a
-- class key, a place in the due index at the window's end, and a record:
--   start ends count need items state timeout task definition
-- in ms; count as it was last seen; how many hits fire it; items collected;
-- counting | fired (mode once: fired, and closed until it ends); fire | drop: what
-- its end does; and the id or pattern that defined it, which is any bytes.
--
-- The counter holds the truth while it has the TTL that we gave it: a day
-- longer than the window, so that hits of other clients count as long as nobody
-- has closed it. One that is gone, or has no TTL, is not the one that we knew:
-- somebody else's EXPIRE or DEL ended the window, and the record tells its count.

local GRACE = 86400000
local MAX_COUNT = 9007199254740991 -- 2^53 - 1: beyond it Lua can't count
local LAST_FIRINGS = 10            -- that are remembered of each definition
local thresholds_key, windows_key = root .. 'thresholds', root .. 'windows'

local function items_key(id) return root .. 'items:' .. id end

-- A pattern's text before and after its *, which stands for any bytes; nil if
-- there is none.
local function split_pattern(name)
  local star = string.find(name, '*', 1, true)
  if star then return string.sub(name, 1, star - 1), string.sub(name, star + 1) end
end

-- The window of a record, or nil.
local function read_window(text)
  local start, ends, count, need, items, state, timeout, task, def =
    string.match(text, '^(%d+) (%d+) (%-?%d+) (%d+) (%d+) (%a+) (%a+) (%S+) (.*)$')
  if not start then return nil end
  return {
    start = tonumber(start), ends = tonumber(ends), count = tonumber(count), need = tonumber(need),
    items = tonumber(items), fired = state == 'fired', timeout = timeout, task = task, def = def,
    added = '', -- items of this call
  }
end

local function window_record(w)
  return table.concat({
    ms(w.start), ms(w.ends), ms(math.min(w.count, MAX_COUNT)), ms(w.need), ms(w.items),
    w.fired and 'fired' or 'counting', w.timeout, w.task, w.def,
  }, ' ')
end

-- An RFC 3339 time in UTC. The date is civil_from_days of Howard Hinnant's
-- "chrono-Compatible Low-Level Date Algorithms".
local function rfc3339(at)
  local floor = math.floor
  local rest = at % 86400000
  local z = floor(at / 86400000) + 719468
  local era = floor(z / 146097)
  local doe = z - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local mp = floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', yoe + era * 400 + (month <= 2 and 1 or 0),
    month, doy - floor((153 * mp + 2) / 5) + 1,
    floor(rest / 3600000), floor(rest / 60000) % 60, floor(rest / 1000) % 60, rest % 1000)
end

-- A definition, as define.lua keeps it:
--   count within timeout mode debounce max_wait max_items max_bytes #json\n json class
-- times in ms; json is the payload as a member of an object; class is the value
-- of the class keys.
local function read_definition(text)
  local line_end = string.find(text, '\n', 1, true)
  local count, within, timeout, mode, debounce, longest, max_items, max_bytes, length =
    string.match(string.sub(text, 1, line_end - 1), '^(%d+) (%d+) (%a+) (%a+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  local class = string.sub(text, line_end + length + 1)
  return {
    count = tonumber(count), within = tonumber(within), timeout = timeout, once = mode == 'once',
    debounce = tonumber(debounce), longest = tonumber(longest),
    max_items = tonumber(max_items), max_bytes = tonumber(max_bytes),
    json = string.sub(text, line_end + 1, line_end + length), class = class, task = task_of(class),
  }
end

-- What a firing's handler gets: the payload, or with items a document.
local function window_payload(w, count, reason, ends, items, class)
  if w.items == 0 then return string.match(class, '^[^ ]* (.*)$') or '' end
  local json = w.json
  if not json then
    local def = redis.call('HGET', thresholds_key, w.def)
    json = def and read_definition(def).json or ''
  end
  return '{"count":' .. count .. ',"reason":"' .. reason .. '","window_start":"' .. rfc3339(w.start) ..
    '","window_end":"' .. rfc3339(ends) .. '"' .. json .. ',"items":[' .. string.sub(items, 2) .. ']}'
end

local function run_record(attempt, id, due, reason, source, count, payload)
  return attempt .. ' ' .. ms(due) .. ' ' .. reason .. ' ' .. source .. ' ' .. count .. ' ' .. ms(#id) .. ' 0\n' .. id .. payload
end

-- What is written at a script's end, a command for all of a kind.
local opened = {}  -- definition → windows opened less closed
local firings = {} -- definition → {at reason count id, …}

local function count_open(def, n) opened[def] = (opened[def] or 0) + n end

local function note_firing(def, reason, count, id)
  local list = firings[def] or {}
  firings[def] = list
  list[#list + 1] = now_text .. ' ' .. reason .. ' ' .. count .. ' ' .. id
end

local function write_notes()
  for def, n in pairs(opened) do
    if n ~= 0 and redis.call('HINCRBY', root .. 'open', def, n) <= 0 then redis.call('HDEL', root .. 'open', def) end
  end
  for def, list in pairs(firings) do
    if redis.call('HEXISTS', thresholds_key, def) == 1 then -- else nobody would ever remove the list
      local from = math.max(1, #list - LAST_FIRINGS + 1)
      redis.call('LPUSH', root .. 'firings:' .. def, unpack(list, from))
      redis.call('LTRIM', root .. 'firings:' .. def, 0, LAST_FIRINGS - 1)
    end
  end
end

-- Runs that wait for their first attempt: task → what is to be written.
local fired = {}

local function fire(task, rid, id, rec)
  local f = fired[task] or { records = {}, waiting = {}, finders = {} }
  fired[task] = f
  local n = #f.records
  f.records[n + 1], f.records[n + 2] = rid, rec
  f.waiting[n + 1], f.waiting[n + 2] = now_text, rid
  f.finders[n + 1], f.finders[n + 2] = '0', ids_member(id, task, rid)
end

local function write_fired(channel)
  for task, f in pairs(fired) do
    local earliest = first_score(retrying_key(task))
    redis.call('HSET', runs_key(task), unpack(f.records))
    redis.call('ZADD', retrying_key(task), unpack(f.waiting))
    redis.call('ZADD', root .. 'ids', unpack(f.finders))
    redis.call('SADD', root .. 'tasks', task)
    wake_if_earlier(retrying_key(task), earliest, task, channel)
  end
end

-- How an open window ends that nothing more is to be counted in: the count, as
-- text, and the reason, or nil if it fires nothing.
local function outcome(w, value, replaced)
  if w.fired then return nil end
  local count = replaced and ms(w.count) or value
  if tonumber(count) >= w.need then return count, 'threshold' end
  if w.timeout == 'fire' then return count, 'timeout' end
end

-- Removes what is left of a window but its place in the index. A counter that
-- was replaced stays: it counts for the next one.
local function remove_window(id, w, replaced)
  redis.call('DEL', class_key(id), items_key(id))
  if not replaced then redis.call('DEL', fuse_key(id)) end
  redis.call('HDEL', windows_key, id)
  count_open(w.def, -1)
end

-- Tells the nodes that the definitions have changed. A lost message costs a delay
-- until their next heartbeat.
local function tell_defined(channel)
  redis.call('INCR', root .. 'defined')
  redis.pcall('PUBLISH', channel, '')
end

local function is_integer(value) return string.find(value, '^%-?%d+$') end
