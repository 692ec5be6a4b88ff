-- fixed_window counts from a first use on for as long as per, and then from the next one on.
--
-- Key      a string "end used": when the window ends, and what was used in it
-- Numbers  limit, per
-- Answer   used, time until the window ends

function algorithms.fixed_window(key, cost)
  local limit, per = number(), number()
  local ends, used = now + per, 0
  local state = redis.call('GET', key)
  if state then
    local e, n = string.match(state, '(%d+) (%d+)')
    if tonumber(e) > now then ends, used = tonumber(e), tonumber(n) end
  end
  local left = ends - now
  return {
    allowed = used + cost <= limit,
    charge = function()
      used = used + cost
      redis.call('SET', key, string.format('%.0f %.0f', ends, used), 'PX', px(left))
    end,
    answer = function() return used, left end,
  }
end
