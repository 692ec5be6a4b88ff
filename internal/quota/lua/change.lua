-- Records in a recipient's cache a decision of Postgres about one push.
--
-- KEYS[1]  bookings: see reserve.lua
-- ARGV[1]  push id
-- ARGV[2]  its send time, ms; -inf: its place is given back
-- ARGV[3]  how long to keep this while the cache is not loaded, ms: a caller that read Postgres before
--          and is loading the cache must not restore the old state
-- ARGV[4]  the push's kind, whether or not a rule depends on kinds
--
-- Answers {1} if the cache is loaded, {0} if not.

local bookings = KEYS[1]

local loaded = redis.call('ZSCORE', bookings, 'loaded')
if not loaded and redis.call('ZSCORE', bookings, 'crowded') then return {0} end
redis.call('ZADD', bookings, ARGV[2], loaded == '0' and ARGV[1] or ARGV[1] .. ARGV[4])
if loaded then return {1} end
redis.call('PEXPIRE', bookings, ARGV[3])
return {0}
