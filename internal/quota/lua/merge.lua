-- Adds bookings that Postgres held a moment ago to a recipient's cache. Updates of a push in the meantime are newer and
-- take precedence. So all callers that have read Postgres may merge, in any order.
--
-- KEYS[1]  bookings: see reserve.lua
-- ARGV[1]  how long the cache may live from when it is loaded, ms; 0: these bookings are not all,
--          and are added to a loaded cache only
-- ARGV[2]  1: the members have kinds, since a rule asks for them; 0: they have none
-- ARGV[3…] send time (ms) and member of every booking
--
-- Answers {1} if the cache is loaded, {0} if not.

local bookings, ttl, kinds = KEYS[1], tonumber(ARGV[1]), ARGV[2]

if redis.call('ZSCORE', bookings, 'crowded') then return {0} end
local loaded = redis.call('ZSCORE', bookings, 'loaded')
if loaded ~= kinds then
  if loaded == '0' or loaded and ttl == 0 then -- the policy has changed: the kinds of these bookings are unknown
    redis.call('DEL', bookings)
  end
  if ttl == 0 then return {0} end
  if kinds == '0' then -- updates from before the load have kinds
    local told = redis.call('ZRANGE', bookings, 0, -1, 'WITHSCORES')
    for i = 1, #told, 2 do
      if #told[i] > 36 then
        redis.call('ZREM', bookings, told[i])
        redis.call('ZADD', bookings, told[i + 1], string.sub(told[i], 1, 36))
      end
    end
  end
  redis.call('ZADD', bookings, kinds, 'loaded')
  redis.call('PEXPIRE', bookings, ttl)
end
for i = 3, #ARGV, 2 do
  redis.call('ZADD', bookings, 'NX', ARGV[i], ARGV[i + 1])
end
return {1}
