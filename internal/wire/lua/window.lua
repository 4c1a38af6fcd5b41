-- window.lua stands, behind the prelude, before the scripts that open, end or
-- drop a threshold's windows.
--
-- A window is a counter (the fuse key of an id, which any client may INCR), a
-- class key, a place in the due index at the window's end, its count as it was last
-- seen, in keyfuse:counts, and a record:
--   ends start state defined need items timeout task definition
-- in ms, of 13 digits; counting | sliding (its hits move its end) | fired (mode
-- once: closed until it ends); when it last followed its definition, as a number
-- of keyfuse:defined; how many hits fire it; items collected; fire | drop: what
-- its end does; and the id or pattern that defined it, which is any bytes.
--
-- The counter holds the truth while it has the TTL that we gave it: a day
-- longer than the window, so that hits of other clients count as long as nobody
-- has closed it. One that is gone, has no TTL, or has another TTL and counts less
-- than was seen, is not the one that we knew: somebody else's EXPIRE, DEL or SET
-- ended the window, and keyfuse:counts tells its count.
--
-- What others may have written under keyfuse: must not stop the script that meets
-- it, for many windows go through one call.

local GRACE = 86400000
local MAX_COUNT = 9007199254740991 -- 2^53 - 1: beyond it Lua can't count
local LAST_FIRINGS = 10            -- that are remembered of each definition
local thresholds_key, windows_key, counts_key = root .. 'thresholds', root .. 'windows', root .. 'counts'
local payloads_key = root .. 'payloads'
local defined = redis.call('GET', root .. 'defined') or '0'

local function items_key(id) return root .. 'items:' .. id end

-- Whether Redis can INCR a value: an integer as it writes one, of 64 bits.
local function is_integer(value)
  local digits = string.match(value, '^%-?([1-9]%d*)$')
  return value == '0' or digits and (#digits < 19 or #digits == 19 and digits <= '9223372036854775807')
end

-- The TTL of a window's counter, as PEXPIRETIME gives it.
local function expiry_of(w) return w.fired and w.ends or w.ends + GRACE end

-- Whether the counter of a window, with this value and this PEXPIRETIME, is another
-- one than that which had this count when it was last seen.
local function is_replaced(w, value, ttl, last)
  return not value or not is_integer(value) or ttl < 0 or ttl ~= expiry_of(w) and tonumber(value) < tonumber(last)
end

-- The count that was last seen, as text.
local function last_count(id)
  local last = redis.call('HGET', counts_key, id)
  return last and is_integer(last) and last or '0'
end

-- The value of a window's counter, and whether that is another counter.
local function read_counter(id, w)
  local text = redis.call('MGET', fuse_key(id))[1] -- false for another type
  return text, is_replaced(w, text, redis.call('PEXPIRETIME', fuse_key(id)), last_count(id))
end

-- The items that a window has collected.
local function read_items(id)
  local items = redis.pcall('GET', items_key(id))
  return type(items) == 'string' and items or ''
end

-- A pattern's text before and after its *, which stands for any bytes; nil if
-- there is none.
local function split_pattern(name)
  local star = string.find(name, '*', 1, true)
  if star then return string.sub(name, 1, star - 1), string.sub(name, star + 1) end
end

-- The window of a record, or nil.
local function read_window(text)
  local ends, start, state, need, items, timeout, task, def =
    string.match(text, '^(%d+) (%d+) (%a+) %d+ (%d+) (%d+) (%a+) (%S+) (.*)$')
  if not ends or math.max(#ends, #start) > 13 or math.max(#need, #items) > 16 then return nil end
  return {
    ends = tonumber(ends), start = tonumber(start), need = tonumber(need), items = tonumber(items),
    fired = state == 'fired', timeout = timeout, task = task, def = def,
    added = {}, added_bytes = 0, -- items of this call
  }
end

-- A time of 13 digits: such texts are in the order of the times, until 2286.
local function ms13(at) return string.format('%013d', at) end

local function window_record(w)
  return table.concat({
    ms13(w.ends), ms13(w.start), w.fired and 'fired' or w.slides and 'sliding' or 'counting', defined,
    ms(w.need), ms(w.items), w.timeout, w.task, w.def,
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

-- A definition, as define.lua keeps it, or nil if somebody has written another text:
--   count within timeout mode debounce max_wait max_items max_bytes task
-- with times in ms.
local function read_definition(text)
  local count, within, timeout, mode, debounce, longest, max_items, max_bytes, task =
    string.match(text, '^(%d+) (%d+) (%a+) (%a+) (%d+) (%d+) (%d+) (%d+) (%S+)$')
  if not count or math.max(#count, #within, #debounce, #longest, #max_items, #max_bytes) > 16 then return nil end
  return {
    count = tonumber(count), within = tonumber(within), timeout = timeout, once = mode == 'once',
    debounce = tonumber(debounce), longest = tonumber(longest),
    max_items = tonumber(max_items), max_bytes = tonumber(max_bytes), task = task,
  }
end

-- The payload of a definition, as a member of a JSON object and as it is: apart from
-- the rest, for it may be long, and few hits need it. Kept as `#json json payload`.
local payloads = {}
local function read_payload(name)
  local known = payloads[name]
  if not known then
    local text = redis.call('HGET', payloads_key, name) or ''
    local length, from = string.match(text, '^(%d+) ()')
    known = { '', '' }
    if length then known = { string.sub(text, from, from + length - 1), string.sub(text, from + length) } end
    payloads[name] = known
  end
  return known[1], known[2]
end

-- What the class keys of a definition hold.
local function class_of(name, task)
  local _, payload = read_payload(name)
  return payload == '' and task or task .. ' ' .. payload
end

-- What a firing's handler gets: the payload, or with items a document.
local function window_payload(w, count, reason, ends, items, class)
  if w.items == 0 then return string.match(class, '^[^ ]* (.*)$') or '' end
  return '{"count":' .. count .. ',"reason":"' .. reason .. '","window_start":"' .. rfc3339(w.start) ..
    '","window_end":"' .. rfc3339(ends) .. '"' .. (read_payload(w.def)) .. ',"items":[' .. string.sub(items, 2) .. ']}'
end

local lengths = {} -- as text: those of ids are few
local function run_record(attempt, id, due, reason, source, count, payload)
  local length = lengths[#id] or ms(#id)
  lengths[#id] = length
  return attempt .. ' ' .. due .. ' ' .. reason .. ' ' .. source .. ' ' .. count .. ' ' .. length .. ' 0\n' .. id .. payload
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
    local left = n ~= 0 and redis.pcall('HINCRBY', root .. 'open', def, n)
    if type(left) == 'number' and left <= 0 then redis.call('HDEL', root .. 'open', def) end
  end
  for def, list in pairs(firings) do
    if redis.call('HEXISTS', thresholds_key, def) == 1 then -- else nobody would ever remove the list
      local from = math.max(1, #list - LAST_FIRINGS + 1)
      redis.pcall('LPUSH', root .. 'firings:' .. def, unpack(list, from))
      redis.pcall('LTRIM', root .. 'firings:' .. def, 0, LAST_FIRINGS - 1)
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
-- text, and the reason, or nil if it fires nothing. value is that of its counter,
-- unless another one has replaced it.
local function outcome(id, w, value, replaced)
  if w.fired then return nil end
  local count = replaced and last_count(id) or value
  if tonumber(count) <= 0 then return nil end
  if tonumber(count) >= w.need then return count, 'threshold' end
  if w.timeout == 'fire' then return count, 'timeout' end
end

-- Removes what is left of a window but its place in the index. A counter that
-- was replaced stays: it counts for the next one.
local function remove_window(id, w, replaced)
  redis.call('DEL', class_key(id), items_key(id))
  if not replaced then redis.call('DEL', fuse_key(id)) end
  redis.call('HDEL', windows_key, id)
  redis.call('HDEL', counts_key, id)
  count_open(w.def, -1)
end

-- Tells the nodes that the definitions have changed. A lost message costs a delay
-- until their next heartbeat.
local function tell_defined(channel)
  redis.call('INCR', root .. 'defined')
  redis.pcall('PUBLISH', channel, '')
end
