-- The head of every script: what the algorithms and the tail share.
--
-- now      this moment on Redis' own clock. (Tests put a head of their own here, whose clock they set.)
-- px(t)    how long a key has to live, in milliseconds, that matters for the time t. A millisecond is added: Redis counts from
--          the beginning of the script, a little before now.
-- number()  the next argument. The variable read is the index of the last one.
--
-- An algorithm is one file, which adds a function of a key, a cost and an act to algorithms. It reads its numbers and the key, and
--   take     charges the cost if it has room,
--   refund   gives the cost back, as far as it is used,
--   no act   leaves all as it is.
-- It returns 1 if the cost has, or had, room, 0 if not, and three integers: the limit's state afterwards. Its keys
-- expire when they no longer matter. It deletes a key whose state is as before all use.
--
-- All times are in microseconds. The times in a key determine its state, not its expiry. When the clock goes back, as in a
-- failover, uses are kept. But no state reaches further ahead than a use at this moment would. One that does comes from
-- a clock that was ahead of this one, and is written again with all of it used now. Only this is written without an act.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function px(t) return math.ceil(t / 1000) + 1 end

local read
local function number()
  read = read + 1
  return tonumber(ARGV[read])
end

local algorithms = {}
