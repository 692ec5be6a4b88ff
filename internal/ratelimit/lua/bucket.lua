-- bucket is token_bucket and leaky_bucket: tokens that drip in, or water that drips out. Both are known by one moment: when the
-- bucket will be full of tokens, or empty of water, again. Each unit of cost puts it off by per / limit. That is the "theoretical
-- arrival time" of GCRA, the generic cell rate algorithm.
--
-- A time is a whole number of microseconds and a number of parts, of which limit make a microsecond. So nothing is ever rounded.
--
-- Key      a string "whole parts": that moment
-- Numbers  limit; whole and parts of what the cost puts off, and of how far it may be put off
-- Answer   whole and parts of the time until that moment

function algorithms.bucket(key, cost)
  local limit = number()
  local add, add_parts, most, most_parts = number(), number(), number(), number()
  local whole, parts = now, 0
  local state = redis.call('GET', key)
  if state then
    local w, p = string.match(state, '(%d+) (%d+)')
    if tonumber(w) >= now then whole, parts = tonumber(w), tonumber(p) end
  end
  local next_whole, next_parts = whole + add, parts + add_parts
  if next_parts >= limit then next_whole, next_parts = next_whole + 1, next_parts - limit end
  local used = next_whole - now
  return {
    allowed = used < most or used == most and next_parts <= most_parts,
    charge = function()
      whole, parts = next_whole, next_parts
      redis.call('SET', key, string.format('%.0f %.0f', whole, parts), 'PX', px(used + 1))
    end,
    answer = function() return whole - now, parts end,
  }
end
