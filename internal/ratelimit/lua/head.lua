-- The head of every script: what the algorithms and the tail share.
--
-- now      this moment on Redis' own clock. (Tests put a head of their own here, whose clock they set.)
-- px(t)    how long a key has to live, in milliseconds, that matters for the time t. A millisecond is added: Redis counts from
--          the beginning of the script, a little before now.
-- word(), number()  the next argument.
--
-- An algorithm is one file, which adds a function of a key and a cost to algorithms. It reads its numbers, looks at the key,
-- writes nothing, and returns a table of
--   allowed   whether the cost has room
--   charge()  writes the cost down, with an expiry
--   answer()  how it stands, in whole numbers: before charge() without the cost, after it with the cost
-- All times are in microseconds. What a key says is right by the times in it, not by when it expires, and a clock that goes back
-- makes no room.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function px(t) return string.format('%.0f', math.ceil(t / 1000) + 1) end

local read = 1
local function word()
  read = read + 1
  return ARGV[read]
end
local function number() return tonumber(word()) end

local algorithms = {}
