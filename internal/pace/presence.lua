-- Says that a worker is there, by Redis' clock, and counts all that are.
--
-- KEYS[1]  workers by when they were last heard of, in milliseconds
-- ARGV[1]  the worker
-- ARGV[2]  after how long a worker that is not heard of is gone, in milliseconds
--
-- Answers how many workers there are.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
