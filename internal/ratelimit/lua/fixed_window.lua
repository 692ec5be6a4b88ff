-- fixed_window counts what comes between two multiples of per.
--
-- Key      a string "window used": the number of a window since 1970, and what was used in it
-- Numbers  limit, per
-- Answer   used, time until the window ends

function algorithms.fixed_window(key, cost)
  local limit, per = number(), number()
  local window, used = math.floor(now / per), 0
  local state = redis.call('GET', key)
  if state then
    local w, n = string.match(state, '(%d+) (%d+)')
    if tonumber(w) >= window then window, used = tonumber(w), tonumber(n) end
  end
  local left = (window + 1) * per - now
  return {
    allowed = used + cost <= limit,
    charge = function()
      used = used + cost
      redis.call('SET', key, string.format('%.0f %.0f', window, used), 'PX', px(left))
    end,
    answer = function() return used, left end,
  }
end
