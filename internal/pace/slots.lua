-- Takes the next slots of a channel. This is the generic cell rate algorithm,
-- with a caller that waits instead of being refused.
--
-- KEYS[1]  "used.at": when the taken slots are used up, and when this was
--          written, in microseconds. The key outlives them for a while.
-- ARGV[1]  the interval between slots, in microseconds
-- ARGV[2]  number of slots that may be used at once after a rest
-- ARGV[3]  maximum number of slots to take
-- ARGV[4]  maximum distance of the last slot from the first, in microseconds
-- ARGV[5]  how long a worker may have to wait for a slot, in microseconds
-- ARGV[6]  when the slots that the worker knows of are used up, in microseconds from
--          now; negative: in the past; empty: it knows of none
--
-- Answers {the number of slots taken, microseconds until the first one, and until all
-- taken slots are used up}. If none was taken: {0, microseconds until the next try, 0}.

local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted, close = tonumber(ARGV[3]), tonumber(ARGV[4])
local longest, known = tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local slack = (burst - 1) * interval
local stay = math.max(longest, 1000000)

local used, owed, written = 0, -stay, 0
local u, at = string.match(redis.call('GET', KEYS[1]) or '', '(%d+)%.(%d+)')
if u then
  -- A clock that went back stood still: what was owed then is owed now.
  written = tonumber(at)
  used = tonumber(u) - math.max(written - now, 0)
  owed = used - now
end
if now - written > 20000 then
  -- Redis may have been started since then, and have lost slots that other workers
  -- still wait for. Take none until these are over, but for five seconds at most, so
  -- that a slower channel does not stop for hours. The uptime of Redis is known to a
  -- second. A Redis user that may not call INFO skips this.
  local info = redis.pcall('INFO', 'server')
  local runs = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
  local over = runs and math.min(longest, 5000000) - (runs - 1) * 1000000 or 0
  if over > 0 then return {0, string.format('%.0f', over), 0} end
end
if known and known > owed + interval + 20000 then
  -- Redis has lost slots that workers wait for. Wait until they are used.
  used = now + longest + slack
end

local first = math.max(now, used - slack)
local taken = 0
while taken == 0 or taken < wanted and used - slack <= first + close do
  used = math.max(used, now) + interval
  taken = taken + 1
end
redis.call('SET', KEYS[1], string.format('%.0f.%.0f', used, now), 'PX', string.format('%.0f', math.ceil((used - now + stay) / 1000)))
return {taken, string.format('%.0f', first - now), string.format('%.0f', used - now)}
