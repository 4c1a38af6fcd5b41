-- define.lua defines a threshold, in the place of the one that its id or
-- pattern had. Windows that are open go on by the new definition at their next hit.
--
-- KEYS  1 root
-- ARGV  1 id or pattern   2 definition and 3 payload (window.lua; '' for none)
--       4 wake-up channel   5 how many patterns there may be
-- Answer  {code, other}: 0 new, 1 replaced, 2 the same as before, 3 refused:
--         the other pattern would match some ids equally, 4 refused: there are too
--         many patterns.
-- Cost  O(number of patterns). Replaying it changes nothing.

local NEW, REPLACED, SAME, EQUAL, MANY = 0, 1, 2, 3, 4
local name, text, payload, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function ends_with(s, tail) return #s >= #tail and string.sub(s, #s - #tail + 1) == tail end

local before = redis.call('HGET', thresholds_key, name)
if before == text and (redis.call('HGET', payloads_key, name) or '') == payload then return { SAME, '' } end
local head, tail = split_pattern(name)
if head then
  if not before and redis.call('SCARD', root .. 'patterns') >= tonumber(ARGV[5]) then return { MANY, '' } end
  for _, other in ipairs(redis.call('SMEMBERS', root .. 'patterns')) do
    local h, t = split_pattern(other)
    if other ~= name and h == head and (ends_with(tail, t) or ends_with(t, tail)) then return { EQUAL, other } end
  end
end
redis.call('HSET', thresholds_key, name, text)
if payload == '' then redis.call('HDEL', payloads_key, name) else redis.call('HSET', payloads_key, name, payload) end
if head then redis.call('SADD', root .. 'patterns', name) end
redis.call('SADD', root .. 'tasks', read_definition(text).task)
tell_defined(channel)
return { before and REPLACED or NEW, '' }
