-- bucket is token_bucket and leaky_bucket: tokens that drip in, or water that drips out. One moment describes both: when the
-- bucket will be full of tokens, or empty of water, again. Each unit of cost moves it by per / limit. It is the "theoretical
-- arrival time" of GCRA, the generic cell rate algorithm.
--
-- A time is a whole number of microseconds and a number of parts, limit parts make a microsecond. So nothing is ever rounded.
--
-- Key      a string "whole parts": that moment
-- Numbers  limit; whole and parts of the move by the cost, and of the maximum
-- Answer   whole and parts of the time until that moment, 0

local function keep(key, whole, parts)
  if whole < now or whole == now and parts == 0 then
    redis.call('DEL', key)
  else
    redis.call('SET', key, string.format('%.0f %.0f', whole, parts), 'PX', px(whole - now + 1))
  end
end

function algorithms.bucket(key, cost, act)
  local limit = number()
  local add, add_parts, most, most_parts = number(), number(), number(), number()
  local whole, parts = now, 0
  local state = redis.call('GET', key)
  if state then
    local w, p = string.match(state, '(%d+) (%d+)')
    w, p = tonumber(w), tonumber(p)
    if w - now > most or w - now == most and p > most_parts then
      whole, parts = now + most, most_parts -- the clock went back
      keep(key, whole, parts)
    elseif w >= now then
      whole, parts = w, p
    end
  end
  if act == 'refund' then
    whole, parts = whole - add, parts - add_parts
    if parts < 0 then whole, parts = whole - 1, parts + limit end
    keep(key, whole, parts)
    return 1, 0, 0, 0
  end
  local next_whole, next_parts = whole + add, parts + add_parts
  if next_parts >= limit then next_whole, next_parts = next_whole + 1, next_parts - limit end
  local allowed = next_whole - now < most or next_whole - now == most and next_parts <= most_parts
  if allowed and act == 'take' then
    whole, parts = next_whole, next_parts
    keep(key, whole, parts)
  end
  return allowed and 1 or 0, whole - now, parts, 0
end
