-- The head of every script: what the algorithms and the tail share.
--
-- now      this moment on Redis' own clock. (Tests put a head of their own here, whose clock they set.)
-- px(t)    how long a key has to live, in milliseconds, that matters for the time t. A millisecond is added: Redis counts from
--          the beginning of the script, a little before now.
-- number()  the next argument, of which read is the last that was read.
--
-- An algorithm is one file, which adds a function of a key, a cost and an act to algorithms. It reads its numbers and the key, and
--   take     charges the cost if it has room,
--   refund   gives the cost back, as far as it is used,
--   no act   leaves all as it is.
-- It returns 1 if the cost has, or had, room, 0 if not, and three whole numbers that say how the limit stands then. What it writes
-- expires when it does not matter any more. What is as before all use it deletes.
--
-- All times are in microseconds. What a key says is right by the times in it, not by when it expires. When the clock goes back, as in a
-- failover, what was used stays used. But no state reaches further ahead than a use at this moment would: what does, comes from
-- a clock that was ahead of this one, and is written anew with all of it used now. This alone is written without an act.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function px(t) return math.ceil(t / 1000) + 1 end

local read
local function number()
  read = read + 1
  return tonumber(ARGV[read])
end

local algorithms = {}
