-- fixed_window counts in windows as long as per. One begins with a first use, and lasts until per later; or, aligned, at each multiple of
-- per since 1970.
--
-- Key      a string "end used": when the window ends, and what was used in it
-- Numbers  limit, per, 1 for aligned windows and else 0
-- Answer   used, time until the window ends, 0

local function keep_window(key, ends, used)
  redis.call('SET', key, string.format('%.0f %.0f', ends, used), 'PX', px(ends - now))
end

function algorithms.fixed_window(key, cost, act)
  local limit, per, aligned = number(), number(), number()
  local ends, used = now + per, 0
  if aligned == 1 then ends = now - now % per + per end
  local state = redis.call('GET', key)
  if state then
    local e, n = string.match(state, '(%d+) (%d+)')
    e, n = tonumber(e), tonumber(n)
    if e > ends then keep_window(key, ends, n) end -- the clock went back
    if e > now then ends, used = math.min(e, ends), n end
  end
  local allowed = used + cost <= limit
  if act == 'refund' then
    used = used - cost
    if used > 0 then keep_window(key, ends, used) else redis.call('DEL', key) end
  elseif act and allowed then
    used = used + cost
    keep_window(key, ends, used)
  end
  return allowed and 1 or 0, used, ends - now, 0
end
