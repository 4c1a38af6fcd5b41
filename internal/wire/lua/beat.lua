-- beat.lua renews a node's lease, which is the lease of all its runs, and
-- notices nodes whose lease has run out.
--
-- KEYS  1 root
-- ARGV  1 node   2 lease in ms   3 what there is to know of the node (JSON)
--       4 canary | '': whether to lay a canary key and let the last one expire
--       5 first | '': whether to take a lease, or only to renew one
--       6 the name that this node had before, or '': it is given up now. A heartbeat
--       of that name that was long on its way may have renewed its lease meanwhile.
-- Answer  {seconds, microseconds, held, defined, nodes, format, gone, …}: the clock;
--         1 if the node held its lease until now, 0 if this is its first or it was
--         given up; a number that rises whenever thresholds are defined or
--         removed; how many nodes hold a lease; the format's version, '' if all was
--         deleted; those whose runs are to be reaped.
-- Cost  some 10 commands, O(log n). Replaying it answers the same, but that a
--       first beat is then held. The first write is one that a full Redis allows.
--
-- Once given up, a node stays so: it must go on under a new name. A node that
-- is late itself judges nobody: after an outage all nodes are late, and each
-- has this one beat to come back before the others look.

local node, length, info = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local nodes, gone = root .. 'nodes', root .. 'gone'
local until_ms = redis.call('ZSCORE', nodes, node)

if ARGV[6] ~= '' then
  redis.call('ZREM', nodes, ARGV[6])
  redis.call('SADD', gone, ARGV[6])
end
drop_old_answers()
local canary = root .. 'canary:' .. node
redis.call('DEL', canary) -- an expired key is heard of when it is touched
if until_ms or ARGV[5] == 'first' then
  redis.call('ZADD', nodes, ms(now + length), node)
  redis.call('HSET', root .. 'info', node, info)
  if ARGV[4] == 'canary' then redis.call('SET', canary, 1, 'PX', 100) end
end
if until_ms and tonumber(until_ms) >= now then
  for _, late in ipairs(redis.call('ZRANGE', nodes, '-inf', '(' .. ms(now), 'BYSCORE', 'LIMIT', 0, 10)) do
    redis.call('ZREM', nodes, late)
    redis.call('SADD', gone, late)
  end
end
local reply = { time[1], time[2], until_ms and 1 or 0, redis.call('GET', root .. 'defined') or 0, redis.call('ZCARD', nodes),
  redis.call('GET', root .. 'format') or '' }
for _, name in ipairs(redis.call('SMEMBERS', gone)) do reply[#reply + 1] = name end
return reply
