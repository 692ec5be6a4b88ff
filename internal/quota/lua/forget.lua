-- Drops a recipient from the cache.
--
-- KEYS[1]  bookings: see reserve.lua
--
-- Answers {1}.

redis.call('DEL', KEYS[1])
return {1}
