-- sliding_log keeps every use, with its instant, for as long as per.
--
-- Key      a ZSET with a member "total:cost" for each use, whose score is its instant. total sums this use and all before it, so that
--          all members are different, in one order with their instants, and a sum over any of them is a difference of two.
-- Numbers  limit, per
-- Answer   used, time until the cost has room (0: it has; or it never will), time until the last use is forgotten

function algorithms.sliding_log(key, cost)
  local limit, per = number(), number()
  local past = string.format('%.0f', now - per)

  -- read returns total, instant and cost of a use; of none, as if it had just been forgotten.
  local function read(use)
    if not use[1] then return 0, now - per, 0 end
    local total, its_cost = string.match(use[1], '(%d+):(%d+)')
    return tonumber(total), tonumber(use[2]), tonumber(its_cost)
  end
  local function at(rank) return read(redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')) end

  local total, newest = at(-1)
  local used, first_total, first = 0, 0, 0
  if newest > now - per then
    local its_cost
    first_total, first, its_cost = read(redis.call('ZRANGEBYSCORE', key, '(' .. past, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
    used = total - first_total + its_cost
  end

  -- wait finds the use that has to be forgotten first, with all before it.
  local function wait()
    local excess = used + cost - limit
    if excess <= 0 or excess > used then return 0 end
    local enough = total - used + excess
    if first_total >= enough then return first + per - now end
    local low, high = 0, redis.call('ZCARD', key) - 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if at(middle) >= enough then high = middle else low = middle + 1 end
    end
    local _, instant = at(low)
    return instant + per - now
  end
  local waiting = wait()

  return {
    allowed = used + cost <= limit,
    charge = function()
      used, total, newest = used + cost, total + cost, math.max(newest, now)
      redis.call('ZREMRANGEBYSCORE', key, '-inf', past)
      redis.call('ZADD', key, string.format('%.0f', newest), string.format('%016.0f:%.0f', total, cost))
      redis.call('PEXPIRE', key, px(newest + per - now))
    end,
    answer = function() return used, waiting, math.max(0, newest + per - now) end,
  }
end
