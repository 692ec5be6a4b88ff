-- Books one place in a recipient's cache, if the cache is loaded and every
-- rule has a place left.
--
-- KEYS[1]  bookings: ZSET of push id → send time in ms, -inf if the push has given its place back. It
--          is complete if it has the member "loaded". The member "crowded" says that there are too
--          many to be kept.
-- ARGV[1]  push id
-- ARGV[2]  send time, ms
-- ARGV[3…] limit and window (ms) of every rule
--
-- Answers {0} unknown:  not to be loaded; or this id holds another time or has given its place
--                       back, and only Postgres knows why.
--         {1} fillable: not loaded; the caller may load it.
--         {2} free:     booked. Running it again changes nothing.
--         {3} blocked:  not booked; there seems to be no place.

local unknown, fillable, free, blocked = {0}, {1}, {2}, {3}
local bookings = KEYS[1]
local id, t = ARGV[1], tonumber(ARGV[2])

if not redis.call('ZSCORE', bookings, 'loaded') then
  return redis.call('ZSCORE', bookings, 'crowded') and unknown or fillable
end

local held = redis.call('ZSCORE', bookings, id)
if held then
  return tonumber(held) == t and free or unknown
end

-- blocks tells whether some run of limit bookings, shorter than the window, leaves no place for t.
local function blocks(limit, window)
  if limit == 0 then return true end
  local from, to = string.format('(%.0f', t - window), string.format('(%.0f', t + window)
  local near = redis.call('ZRANGEBYSCORE', bookings, from, to, 'WITHSCORES')
  for last = 2 * limit, #near, 2 do
    local a, b = tonumber(near[last - 2 * limit + 2]), tonumber(near[last])
    if b - a < window and t > b - window and t < a + window then return true end
  end
  return false
end

local most = 1000 -- bookings that are kept
if redis.call('ZCARD', bookings) > most then
  redis.call('ZREMRANGEBYRANK', bookings, 0, -1)
  redis.call('ZADD', bookings, 0, 'crowded')
  redis.call('PEXPIRE', bookings, 60000)
  return unknown
end

for i = 3, #ARGV, 2 do
  if blocks(tonumber(ARGV[i]), tonumber(ARGV[i + 1])) then return blocked end
end

redis.call('ZADD', bookings, t, id)
return free
