-- Answers {for how much longer a channel is paused, in milliseconds; 0: it is not}.
-- If that is more than it was paused for, the clock went back: then it is paused
-- for as long from now on.
--
-- KEYS[1]  see pause.lua
local left = redis.call('PTTL', KEYS[1])
local most = tonumber(redis.call('GET', KEYS[1]) or '')
if most and left > most then
  redis.call('PEXPIRE', KEYS[1], most)
  left = most
end
return {math.max(left, 0)}
