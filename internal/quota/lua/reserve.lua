-- Books one place in a recipient's cache, if the cache is loaded and every
-- rule has a place left.
--
-- KEYS[1]  bookings: ZSET of member → send time in ms, -inf if the push has given its place back. It is
--          complete if it has the member "loaded". The member "crowded" says that there are too many to
--          be kept.
--          A member is a push id or, if "loaded" is 1 and not 0, a push id and a kind: a zero byte, the
--          channel, a zero byte and the category. Before the cache is loaded, members have their kinds.
-- ARGV[1]  push id
-- ARGV[2]  send time, ms
-- ARGV[3]  the push's kind, as in a member; empty: no rule asks for kinds
-- ARGV[4]  how many rolling rules follow that count all bookings
-- ARGV[5…] places and window (ms) of each of them; then of every other rule:
--            places;
--            window, ms; of a calendar rule: the length of the period that the send time lies in;
--            when that period begins, ms; empty: the rule is rolling;
--            which channels, and which categories, it counts, each between zero bytes; empty: all;
--            which categories it leaves out.
--
-- Answers {0} unknown:  not to be loaded; or this id holds another time or has given its place
--                       back, and only Postgres knows why.
--         {1} fillable: not loaded, or not with what the rules ask for; the caller may load it.
--         {2} free:     booked. Running it again changes nothing.
--         {3} blocked:  not booked; there seems to be no place.

local unknown, fillable, free, blocked = {0}, {1}, {2}, {3}
local bookings = KEYS[1]
local member, t = ARGV[1] .. ARGV[3], tonumber(ARGV[2])

local loaded = redis.call('ZSCORE', bookings, 'loaded')
if loaded ~= (ARGV[3] == '' and '0' or '1') then
  return not loaded and redis.call('ZSCORE', bookings, 'crowded') and unknown or fillable
end

local held = redis.call('ZSCORE', bookings, member)
if held then
  return tonumber(held) == t and free or unknown
end

-- run reports whether some run of places consecutive times (with values list entries each), shorter than the window,
-- leaves no place for t.
local function run(times, values, places, window)
  for last = values * places, #times, values do
    local a, b = tonumber(times[last - values * places + values]), tonumber(times[last])
    if b - a < window and t > b - window and t < a + window then return true end
  end
  return false
end

-- near lists members and times of the bookings that are nearer to t than the window.
local function near(window)
  local from, to = string.format('(%.0f', t - window), string.format('(%.0f', t + window)
  return redis.call('ZRANGEBYSCORE', bookings, from, to, 'WITHSCORES')
end

-- lists reports whether a list contains a name.
local function lists(list, name) return string.find(list, '\0' .. name .. '\0', 1, true) end

-- counted returns the times of the bookings (members and times) that a scope counts.
local function counted(found, channels, categories, without)
  local times = {}
  for i = 1, #found, 2 do
    local kind = string.sub(found[i], 38)
    local split = string.find(kind, '\0', 1, true) or 1
    local channel, category = string.sub(kind, 1, split - 1), string.sub(kind, split + 1)
    if (channels == '' or lists(channels, channel)) and (categories == '' or lists(categories, category)) and not lists(without, category) then
      times[#times + 1] = found[i + 1]
    end
  end
  return times
end

-- blocks reports whether a rule, whose arguments begin at an index, leaves no place for t.
local function blocks(at)
  local places, window, from = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local channels, categories, without = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5]
  if places == 0 then return true end
  local all = channels == '' and categories == '' and without == ''
  if not from then
    return run(counted(near(window), channels, categories, without), 1, places, window)
  end
  local first, last = string.format('%.0f', from), string.format('(%.0f', from + window)
  if all then return redis.call('ZCOUNT', bookings, first, last) >= places end
  return #counted(redis.call('ZRANGEBYSCORE', bookings, first, last, 'WITHSCORES'), channels, categories, without) >= places
end

local most = 1000 -- bookings that are kept
if redis.call('ZCARD', bookings) > most then
  redis.call('ZREMRANGEBYRANK', bookings, 0, -1)
  redis.call('ZADD', bookings, 0, 'crowded')
  redis.call('PEXPIRE', bookings, 60000)
  return unknown
end

local others = 5 + 2 * ARGV[4]
for i = 5, others - 1, 2 do
  local limit, window = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  if limit == 0 or run(near(window), 2, limit, window) then return blocked end
end
for i = others, #ARGV, 6 do
  if blocks(i) then return blocked end
end

redis.call('ZADD', bookings, t, member)
return free
