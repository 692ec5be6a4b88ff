-- sliding_log keeps the instant of every unit of cost for as long as per.
--
-- Key      a ZSET with a member for each unit, whose score is its instant. The member is the instant as well; other units of the
--          same instant have a number behind it, so that all are different.
-- Numbers  limit, per
-- Answer   used, time until the cost has room (0: it has; or it never will), time until the last unit is forgotten

function algorithms.sliding_log(key, cost)
  local limit, per = number(), number()
  local instant, past = string.format('%.0f', now), string.format('%.0f', now - per)
  local newest = math.max(now - per, redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2] or 0)
  local used = newest > now - per and redis.call('ZCOUNT', key, '(' .. past, '+inf') or 0

  -- wait finds the unit that has to be forgotten first.
  local function wait()
    local excess = used + cost - limit
    if excess <= 0 or excess > used then return 0 end
    local unit = redis.call('ZRANGEBYSCORE', key, '(' .. past, '+inf', 'WITHSCORES', 'LIMIT', excess - 1, 1)
    return unit[2] + per - now
  end
  local waiting = wait()

  return {
    allowed = used + cost <= limit,
    charge = function()
      redis.call('ZREMRANGEBYSCORE', key, '-inf', past)
      local same = newest < now and 0 or redis.call('ZCOUNT', key, instant, instant)
      for first = same, same + cost - 1, 1000 do
        local units = {}
        for n = first, math.min(first + 1000, same + cost) - 1 do
          units[#units + 1] = instant
          units[#units + 1] = n == 0 and instant or instant .. ':' .. n
        end
        redis.call('ZADD', key, unpack(units))
      end
      used, newest = used + cost, math.max(newest, now)
      redis.call('PEXPIRE', key, px(newest + per - now))
    end,
    answer = function() return used, waiting, newest + per - now end,
  }
end
