-- sliding is sliding_log and sliding_window: it remembers when each use is forgotten. Uses of one step of time are forgotten together; in
-- a log a step is a microsecond.
--
-- However many uses there are, it reads a few of them: the oldest, the newest, and in a refusal the one that has to be forgotten first.
-- Totals, which grow from one to the next, let it find that one, and are the use between any two. It drops forgotten uses,
-- whatever the act, so that no call searches past them twice.
--
-- Key      a list of "end total cost" for each step with a use: when it is forgotten, the total use up to its end,
--          modulo 10^15, and the use in it
-- Numbers  limit, width of a step, how long after the beginning of its step a use is forgotten
-- Answer   used, time until the cost has room (0: it has; or it never will), time until the newest use is forgotten

local modulus = 1000000000000000

-- parse returns end, total and cost of a use; of none, zeros.
local function parse(use)
  if not use then return 0, 0, 0 end
  local ends, total, cost = string.match(use, '(%d+) (%d+) (%d+)')
  return tonumber(ends), tonumber(total), tonumber(cost)
end

-- find returns the index of the first use that is late enough, and that use. The newest is late enough. It looks near the oldest first,
-- or, if asked to, near the newest; then in larger and larger steps. The last few it reads at once.
local function find(key, late, near_newest)
  local low, high, step = 0, redis.call('LLEN', key) - 1, 0
  if near_newest and high > 16 and not late(redis.call('LINDEX', key, high - 16)) then low = high - 15 end
  while high - low > 16 do
    local middle = math.min(low + step, math.floor((low + high) / 2))
    if late(redis.call('LINDEX', key, middle)) then high = middle else low, step = middle + 1, 16 * step + 15 end
  end
  local uses, first = redis.call('LRANGE', key, low, high), 1
  while first < #uses and not late(uses[first]) do first = first + 1 end
  return low + first - 1, uses[first]
end

-- write adds a use to the list, or writes one over the newest.
local function write(key, over, ends, total, cost)
  local use = string.format('%.0f %.0f %.0f', ends, total % modulus, cost)
  if over then redis.call('LSET', key, -1, use) else redis.call('RPUSH', key, use) end
  redis.call('PEXPIRE', key, px(ends - now))
end

function algorithms.sliding(key, cost, act)
  local limit, width, life = number(), number(), number()
  local mine = now - now % width + life -- when a use at this moment is forgotten
  local newest, total, newest_cost = parse(redis.call('LINDEX', key, -1))
  local base, used = 0, 0               -- the total before the oldest use, and what was used since

  if newest > now then
    local oldest, its_total, its_cost = parse(redis.call('LINDEX', key, 0))
    if oldest <= now then
      local first, use = find(key, function(use) return tonumber(string.match(use, '%d+')) > now end)
      redis.call('LTRIM', key, first, -1)
      oldest, its_total, its_cost = parse(use)
    end
    base = its_total - its_cost
    used = (total - base) % modulus
  elseif newest > 0 then
    redis.call('DEL', key)
  end

  -- reach finds the use where the total reaches a number.
  local function reach(much, near_newest)
    return find(key, function(use) return (tonumber(string.match(use, '%d+ (%d+)')) - base) % modulus >= much end, near_newest)
  end

  if newest > mine then -- the clock went back
    local first, use = find(key, function(use) return tonumber(string.match(use, '%d+')) > mine end)
    local _, its_total, its_cost = parse(use)
    newest, newest_cost = mine, (total - its_total + its_cost) % modulus
    redis.call('LTRIM', key, 0, first)
    write(key, true, mine, total, newest_cost)
  end

  if act == 'refund' then
    if used > cost then
      local last, use = reach(used - cost, true)
      local ends, its_total, its_cost = parse(use)
      local back = (its_total - base) % modulus - (used - cost)
      redis.call('LTRIM', key, 0, last)
      write(key, true, ends, its_total - back, its_cost - back)
    else
      redis.call('DEL', key)
    end
    return 1, 0, 0, 0
  end
  local excess, waiting = used + cost - limit, 0
  if excess > 0 then
    if excess <= used then
      local _, use = reach(excess)
      waiting = parse(use) - now
    end
  elseif act then
    if used > 0 and newest == mine then
      write(key, true, mine, total + cost, newest_cost + cost)
    else
      write(key, false, mine, total + cost, cost)
    end
    newest, used = mine, used + cost
  end
  return excess <= 0 and 1 or 0, used, waiting, math.max(newest - now, 0)
end
