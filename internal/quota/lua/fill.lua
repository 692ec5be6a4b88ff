-- Loads a recipient's cache with what Postgres holds, unless something has
-- changed since the filler asked Postgres.
--
-- KEYS[1]  bookings, KEYS[2] filler: see reserve.lua
-- ARGV[1]  push id of the filler
-- ARGV[2]  how long the cache may live, ms
-- ARGV[3…] send time (ms) and push id of every booking
--
-- Answers {1} if the cache was loaded, {0} if not.

local bookings, filler = KEYS[1], KEYS[2]

if redis.call('GET', filler) ~= ARGV[1] then return {0} end
redis.call('DEL', bookings, filler)
redis.call('ZADD', bookings, 0, 'loaded')
for i = 3, #ARGV, 2 do
  redis.call('ZADD', bookings, ARGV[i], ARGV[i + 1])
end
redis.call('PEXPIRE', bookings, ARGV[2])
return {1}
