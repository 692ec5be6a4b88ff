-- Adds what Postgres held a moment ago to a recipient's cache. What the cache was
-- told about a push meanwhile is newer, and stays: so whoever has asked Postgres
-- may merge, in any order.
--
-- KEYS[1]  bookings: see reserve.lua
-- ARGV[1]  how long the cache may live from when it is loaded, ms; 0: these bookings are not all,
--          and are added to a loaded cache only
-- ARGV[2…] send time (ms) and push id of every booking
--
-- Answers {1} if the cache is loaded, {0} if not.

local bookings, ttl = KEYS[1], tonumber(ARGV[1])

if redis.call('ZSCORE', bookings, 'crowded') then return {0} end
if not redis.call('ZSCORE', bookings, 'loaded') then
  if ttl == 0 then return {0} end
  redis.call('ZADD', bookings, 0, 'loaded')
  redis.call('PEXPIRE', bookings, ttl)
end
for i = 2, #ARGV, 2 do
  redis.call('ZADD', bookings, 'NX', ARGV[i], ARGV[i + 1])
end
return {1}
