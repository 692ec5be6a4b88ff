-- Marks a recipient with too many bookings for the cache: every script on them would take too long.
--
-- KEYS[1]  bookings: see reserve.lua
-- ARGV[1]  for how long, ms
--
-- Answers {1}.

redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[1], 0, 'crowded')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {1}
