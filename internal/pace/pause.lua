-- Pauses a channel, unless it is paused for longer already.
--
-- KEYS[1]  is there for as long as the channel is paused; says for how long it was
-- ARGV[1]  for how long, in milliseconds
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[1])
end
return {}
