-- Tells a recipient's cache what Postgres has decided about one push.
--
-- KEYS[1]  bookings: see reserve.lua
-- ARGV[1]  push id
-- ARGV[2]  its send time, ms; -inf: its place is given back
-- ARGV[3]  how long this is remembered while the cache is not loaded, ms: who asked Postgres before
--          and loads it now must not bring back the old state
-- ARGV[4]  the push's kind, whether or not a rule asks for it
--
-- Answers {1} if the cache is loaded, {0} if not.

local bookings = KEYS[1]

local loaded = redis.call('ZSCORE', bookings, 'loaded')
if not loaded and redis.call('ZSCORE', bookings, 'crowded') then return {0} end
redis.call('ZADD', bookings, ARGV[2], loaded == '0' and ARGV[1] or ARGV[1] .. ARGV[4])
if loaded then return {1} end
redis.call('PEXPIRE', bookings, ARGV[3])
return {0}
