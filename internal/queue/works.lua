-- Reports whether a queue of asynq can wake workers: Redis accepts writes, the queue is not
-- paused, and its keys have the types that asynq needs.
--
-- KEYS[1]    key for a test write
-- KEYS[2]    exists while the queue is paused
-- KEYS[3…4]  lists
-- KEYS[5…8]  sorted sets
--
-- Answers {the number of the key that stops the queue; 0: none does}.

redis.call('SET', KEYS[1], '', 'PX', 1000)
if redis.call('EXISTS', KEYS[2]) == 1 then return {2} end
for i = 3, #KEYS do
  local want, is = i <= 4 and 'list' or 'zset', redis.call('TYPE', KEYS[i]).ok
  if is ~= 'none' and is ~= want then return {i} end
end
return {0}
