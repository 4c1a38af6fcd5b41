-- move.lua gives a job that waits another time: a pending one its due time, or
-- else a retrying one its next attempt. An open window can be fired by hand, and
-- then ends with the count that it has.
--
-- KEYS  1 root
-- ARGV  1 id   2 when, in ms, or +ms from now   3 timer | manual: manual is now,
--       and says that somebody fired it by hand   4 wake-up channel
--       5 what the id of the run begins with that a window fires
-- Answer  {code, due in ms, task, run id, count of a window that was fired}: 0
--         nothing there, 1 moved, 2 a run of it is under way, 3 it is among the
--         dead letters, 4 its class key makes no job, 5 it is a window, whose end
--         can't be moved, or that has fired already: nothing was changed.
-- Cost  a few commands, O(log n); where nothing waits, a look at all runs under
--       way. Replaying it changes nothing more.

local NONE, MOVED, RUNNING, DEAD, REFUSED, WINDOW = 0, 1, 2, 3, 4, 5
local id, at, manual, channel = ARGV[1], ARGV[2], ARGV[3] == 'manual', ARGV[4]
local due = tonumber(at)
if string.sub(at, 1, 1) == '+' then due = now + due end
due = math.max(due, now)

local class = redis.call('TYPE', class_key(id)).ok
local window = class == 'string' and redis.call('HGET', windows_key, id) -- else cancelled by hand
window = window and read_window(window)
if window then
  if not manual or window.fired then return { WINDOW, 0, '', '' } end
  local rid = ARGV[5] .. '.' .. time[1] .. string.format('%06d', time[2]) -- another one if this is made again
  local text, replaced = read_counter(id, window)
  local count = replaced and last_count(id) or text
  local items = window.items > 0 and read_items(id) or ''
  local payload = window_payload(window, count, 'manual', now, items, redis.call('GET', class_key(id)))
  fire(window.task, rid, id, run_record(0, id, now_text, 'manual', 'manual', count, payload))
  note_firing(window.def, 'manual', count, id)
  write_fired(channel)
  remove_window(id, window, replaced)
  redis.call('ZREM', due_key(window.task), id)
  write_notes()
  return { MOVED, now_text, window.task, rid, count }
end

if class ~= 'none' then
  local task = class == 'string' and task_of(redis.call('GET', class_key(id)))
  if not task then return { REFUSED, 0, '', '' } end
  local fuse = redis.call('TYPE', fuse_key(id)).ok
  if fuse ~= 'none' and fuse ~= 'string' then return { REFUSED, 0, '', '' } end
  if due <= now then
    redis.call('DEL', fuse_key(id))
  elseif fuse == 'none' then
    redis.call('SET', fuse_key(id), id, 'PXAT', ms(due))
  else
    redis.call('PEXPIREAT', fuse_key(id), ms(due))
  end
  index(task, { score(manual and due + 0.75 or due), id }, channel)
  return { MOVED, ms(due), task, '' }
end

local code, found = NONE, { task = '', rid = '' }
for _, r in ipairs(runs_of(id)) do
  if redis.call('ZSCORE', retrying_key(r.task), r.rid) then
    redis.call('ZADD', retrying_key(r.task), ms(due), r.rid)
    redis.pcall('PUBLISH', channel, r.task)
    return { MOVED, ms(due), r.task, r.rid }
  elseif code == NONE then
    code, found = DEAD, r
  end
end
local running = under_way(id)[1]
if running then code, found = RUNNING, running end
return { code, 0, found.task, found.rid }
