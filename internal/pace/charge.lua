-- Takes further slots of a channel for an attempt that has begun: see slots.lua.
--
-- KEYS[1]  see slots.lua
-- ARGV[1]  the interval between slots, in microseconds
-- ARGV[2]  number of slots that may be used at once after a rest
-- ARGV[3]  number of slots to take
-- ARGV[4]  how long a worker may have to wait for a slot, in microseconds
-- ARGV[5]  when the slots that the worker knows of are used up, in microseconds from
--          now; negative: in the past; empty: it knows of none
--
-- Answers {microseconds until all taken slots are used up, at least 0}.

local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local n, longest, known = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stay = math.max(longest, 1000000)

-- The slot of the attempt itself may be over. Its further slots follow it all the same.
local used = now
local u, at = string.match(redis.call('GET', KEYS[1]) or '', '(%d+)%.(%d+)')
if u then used = tonumber(u) - math.max(tonumber(at) - now, 0) end
if known and known > used - now + interval + 20000 then
  -- Redis has lost slots that workers wait for.
  used = now + longest + (burst - 1) * interval
end
used = used + n * interval
redis.call('SET', KEYS[1], string.format('%.0f.%.0f', used, now), 'PX', string.format('%.0f', math.ceil((math.max(used - now, 0) + stay) / 1000)))
return {string.format('%.0f', math.max(used - now, 0))}
