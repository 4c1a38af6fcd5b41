-- undefine.lua removes the definition of a threshold. Windows that are open end
-- as they would have; what is hit from now on has no definition.
--
-- KEYS  1 root
-- ARGV  1 id or pattern   2 wake-up channel
-- Answer  1 if it was there, else 0.
-- Cost  6 commands. Replaying it changes nothing more, and answers 0.

local name, channel = ARGV[1], ARGV[2]
if redis.call('HDEL', thresholds_key, name) == 0 then return 0 end
redis.call('HDEL', payloads_key, name)
redis.call('SREM', root .. 'patterns', name)
redis.call('DEL', root .. 'firings:' .. name)
tell_defined(channel)
return 1
