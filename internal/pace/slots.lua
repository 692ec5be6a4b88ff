-- Takes the next slots of a channel. This is the generic cell rate algorithm,
-- with a caller that waits instead of being refused.
--
-- KEYS[1]  "used.at": when the slots that were taken are used up, and when that
--          was written down, in microseconds. It stays for a while after them.
-- ARGV[1]  the interval between slots, in microseconds
-- ARGV[2]  how many slots may be used at once after a rest
-- ARGV[3]  how many slots are wanted at most
-- ARGV[4]  how close to the first the others must be, in microseconds
-- ARGV[5]  how long a worker may have to wait for a slot, in microseconds
-- ARGV[6]  for how much longer slots are used up as far as the worker knows, in
--          microseconds; less than 0: since when they are not; empty: it knows none
--
-- Answers {how many slots were taken, microseconds until the first, and until all
-- that were taken are used up}. If none was taken: {0, microseconds until slots
-- are taken again, 0}.

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
  -- Redis may have been started since then, and have lost slots that workers wait
  -- for, of which this one knows nothing. None is taken until they are over, for five
  -- seconds at most: a channel that is slower must not stand still for hours. How long
  -- Redis runs is known to a second; a user that must not ask does without.
  local info = redis.pcall('INFO', 'server')
  local runs = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
  local over = runs and math.min(longest, 5000000) - (runs - 1) * 1000000 or 0
  if over > 0 then return {0, string.format('%.0f', over), 0} end
end
if known and known > owed + interval + 20000 then
  -- Redis has lost slots that workers wait for: let them be used first.
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
