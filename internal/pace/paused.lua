-- Answers for each paused tenant of a channel {the two numbers that name it, the remaining pause in milliseconds}.
-- If more remains than was requested, the clock went back: then the requested pause begins now.
--
-- KEYS[1]  see pause.lua
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all, answer, longest = redis.call('HGETALL', KEYS[1]), {}, 0
for i = 1, #all, 2 do
  local ends, most = string.match(all[i + 1], '^(%d+):(%d+)$')
  local left = ends - now
  if left <= 0 then
    redis.call('HDEL', KEYS[1], all[i])
  else
    if left > tonumber(most) then
      left = tonumber(most)
      redis.call('HSET', KEYS[1], all[i], string.format('%.0f:%s', now + left, most))
    end
    local high, low = string.match(all[i], '^(-?%d+):(-?%d+)$')
    table.insert(answer, high)
    table.insert(answer, low)
    table.insert(answer, left)
    longest = math.max(longest, left)
  end
end
if longest > 0 then redis.call('PEXPIRE', KEYS[1], longest) end
return answer
