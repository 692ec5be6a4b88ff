-- Registers a worker by Redis' clock, and counts all workers.
--
-- KEYS[1]  workers by when they were last heard of, in milliseconds
-- ARGV[1]  the worker
-- ARGV[2]  after how long a silent worker counts as gone, in milliseconds
--
-- Answers {the number of workers, how many of them come before this one by name,
-- Redis' clock in microseconds}.
local time = redis.call('TIME')
local micros = time[1] * 1000000 + time[2]
local now = math.floor(micros / 1000)
-- A time after now was recorded before the clock went back.
for _, other in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], string.format('(%.0f', now), '+inf')) do
  redis.call('ZADD', KEYS[1], now, other)
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local all, before = redis.call('ZRANGE', KEYS[1], 0, -1), 0
for _, other in ipairs(all) do
  if other < ARGV[1] then before = before + 1 end
end
return {#all, before, string.format('%.0f', micros)}
