-- Pauses a tenant at a channel, unless it pauses for longer already, or very many tenants pause.
--
-- KEYS[1]  the tenants that pause: "until:most": the end of the pause by Redis' clock, and its length, in milliseconds
-- ARGV[1]  the tenant
-- ARGV[2]  length of the pause, in milliseconds
-- ARGV[3]  maximum number of paused tenants
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local wanted = tonumber(ARGV[2])
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known then
  local ends, most = string.match(known, '^(%d+):(%d+)$')
  if math.min(ends - now, tonumber(most)) >= wanted then return {} end
elseif redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
  return {}
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f:%.0f', now + wanted, wanted))
if redis.call('PTTL', KEYS[1]) < wanted then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {}
