-- interval_bucket is a token_bucket that gets limit tokens at once whenever per has passed, until it is full. The time begins with the
-- use that finds it full.
--
-- Key      a string "next missing": when it gets the next tokens, and how many are missing
-- Numbers  limit, per, burst
-- Answer   missing, time until the next tokens, 0

function algorithms.interval_bucket(key, cost, act)
  local limit, per, burst = number(), number(), number()
  local next, missing = now + per, 0

  local function keep()
    if missing > 0 then
      local full = next - now + (math.ceil(missing / limit) - 1) * per
      redis.call('SET', key, string.format('%.0f %.0f', next, missing), 'PX', px(full))
    else
      redis.call('DEL', key)
    end
  end

  local state = redis.call('GET', key)
  if state then
    local n, m = string.match(state, '(%d+) (%d+)')
    n, m = tonumber(n), tonumber(m)
    if n <= now then
      local times = math.floor((now - n) / per) + 1
      n, m = n + times * per, m - times * limit
    end
    if m > 0 then
      missing = m
      if n > next then keep() else next = n end -- if it is later, the clock went back
    end
  end
  local allowed = missing + cost <= burst
  if act == 'refund' then
    missing = missing - cost
    keep()
  elseif act and allowed then
    missing = missing + cost
    keep()
  end
  return allowed and 1 or 0, missing, next - now, 0
end
