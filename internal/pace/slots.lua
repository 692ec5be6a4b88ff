-- Takes the next slots of a channel. This is the generic cell rate algorithm,
-- with a caller that waits instead of being refused.
--
-- KEYS[1]  when the slots that were taken are used up, in microseconds
-- ARGV[1]  the interval between slots, in microseconds
-- ARGV[2]  how many slots may be used at once after a rest
-- ARGV[3]  how many slots are wanted at most
-- ARGV[4]  how close to the first the others must be, in microseconds
--
-- Answers {how many slots were taken, microseconds until the first}.

local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted, close = tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local used = tonumber(redis.call('GET', KEYS[1]) or 0)
local slack = (burst - 1) * interval
local first = math.max(now, used - slack)
local taken = 0
while taken == 0 or taken < wanted and used - slack <= first + close do
  used = math.max(used, now) + interval
  taken = taken + 1
end
redis.call('SET', KEYS[1], string.format('%.0f', used), 'PX', string.format('%.0f', math.ceil((used - now) / 1000)))
return {taken, string.format('%.0f', first - now)}
