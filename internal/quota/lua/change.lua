-- Tells a recipient's cache what Postgres has decided about one push.
--
-- KEYS[1]  bookings, KEYS[2] filler: see reserve.lua
-- ARGV[1]  push id
-- ARGV[2]  its send time, ms; absent: its place is given back
--
-- A filler that asked Postgres before this change must not bring back the old
-- state: it may not fill any more. Answers {1} if the cache is loaded, {0} if not.

local bookings, filler = KEYS[1], KEYS[2]

redis.call('DEL', filler)
if not redis.call('ZSCORE', bookings, 'loaded') then return {0} end
if ARGV[2] then
  redis.call('ZADD', bookings, ARGV[2], ARGV[1])
else
  redis.call('ZREM', bookings, ARGV[1])
end
return {1}
