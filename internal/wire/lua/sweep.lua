-- sweep.lua looks at some class keys, and indexes the bare jobs among them.
--
-- KEYS  1 root
-- ARGV  1 to 4 as in adoption.lua   5 node   6 cursor, '' to begin
--       7 since, in ms: whether a sweep is wanted that began later than the last
--       8 pattern of the class keys   9 what the sweep has cost so far, in ms
--       10 how long the next one waits at least, in ms   11 and how many times
--       as long as this one cost
-- Answer  {state, cursor, adopted…}: 0 nothing to do: the last sweep began since
--         and its wait is not over, or another node is at it; 1 there is more,
--         from the cursor on; 2 through.
-- Cost  SCAN of some 500 keys, fewer where many are class keys: about a ms.
--       Replaying it changes nothing more.
--
-- keyfuse:sweep holds `began until node state`: a sweep that is under way holds
-- for half a minute after each step, one that is through until the next is due.

local node, cursor, since = ARGV[5], ARGV[6], tonumber(ARGV[7])
local HOLD, COUNT, BUDGET, CLASS_COST = 30000, 250, 500, 5
local turn = root .. 'sweep'
local began, til, holder, state = string.match(redis.call('GET', turn) or '', '^(%d+) (%d+) (%S+) (%S+)$')
local own = holder == node and state == 'sweeping'

if cursor == '' then
  if began and now >= tonumber(began) and now < tonumber(til) and since <= tonumber(began) and not own then return { 0, '' } end
  began, cursor = ms(now), '0'
elseif not own then
  return { 0, '' } -- it took too long, and another node has begun anew
end

redis.call('SREM', root .. 'tasks', '') -- a full Redis allows it, and then what follows

-- Most jobs are in the index of one of a few tasks: asking there costs a fifth of
-- reading their class keys.
local FEW = 16
local tasks = redis.call('SMEMBERS', root .. 'tasks')
if #tasks > FEW then tasks = {} end
local function unknown(ids)
  for _, task in ipairs(tasks) do
    local rest = {}
    for from = 1, #ids, 500 do -- unpack takes no more than some 8,000
      local upto = math.min(from + 499, #ids)
      for i, at in ipairs(redis.call('ZMSCORE', due_key(task), unpack(ids, from, upto))) do
        if not at then rest[#rest + 1] = ids[from + i - 1] end
      end
    end
    adopted[KNOWN] = adopted[KNOWN] + #ids - #rest
    ids = rest
  end
  return ids
end

local skip, work = #class_key('') + 1, 0
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', ARGV[8], 'COUNT', COUNT)
  cursor = page[1]
  local ids = {}
  for _, key in ipairs(page[2]) do
    local id = string.sub(key, skip)
    if id ~= '' and #id <= 512 and not string.find(id, '^class:') and not string.find(id, '^keyfuse:') then
      ids[#ids + 1] = id
    end
  end
  local rest = unknown(ids)
  adopt_all(rest, 1, #rest)
  work = work + COUNT + #ids + CLASS_COST * #rest
until cursor == '0' or work >= BUDGET

local done = cursor == '0'
local wait = done and math.max(tonumber(ARGV[10]), tonumber(ARGV[11]) * tonumber(ARGV[9])) or HOLD
redis.call('SET', turn, began .. ' ' .. ms(now + wait) .. ' ' .. node .. ' ' .. (done and 'done' or 'sweeping'))
return { done and 2 or 1, cursor, unpack(adopted) }
