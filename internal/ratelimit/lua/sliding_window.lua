-- sliding_window counts in buckets of time. A bucket counts until its end is per ago: as if all in it had come last in it.
--
-- Key      a hash: the number of a bucket since 1970 → what was used in it
-- Numbers  limit, per, width of a bucket
-- Answer   used, time until the cost has room (0: it has; or it never will), time until the last bucket is forgotten

function algorithms.sliding_window(key, cost)
  local limit, per, width = number(), number(), number()
  local current, oldest = math.floor(now / width), math.floor((now - per) / width)
  local old, used, newest = {}, 0, oldest - 1
  local all = redis.call('HGETALL', key)
  for i = 1, #all, 2 do
    local bucket = tonumber(all[i])
    if bucket < oldest then
      old[#old + 1] = all[i]
    else
      used = used + all[i + 1]
      if bucket > newest then newest = bucket end
    end
  end

  local function left(bucket) return (bucket + 1) * width + per - now end

  -- wait finds the bucket that has to be forgotten first.
  local function wait()
    local excess = used + cost - limit
    if excess <= 0 or excess > used then return 0 end
    local buckets, counts = {}, {}
    for i = 1, #all, 2 do
      local bucket = tonumber(all[i])
      if bucket >= oldest then buckets[#buckets + 1], counts[bucket] = bucket, all[i + 1] end
    end
    table.sort(buckets)
    for _, bucket in ipairs(buckets) do
      excess = excess - counts[bucket]
      if excess <= 0 then return left(bucket) end
    end
  end
  local waiting = wait()

  return {
    allowed = used + cost <= limit,
    charge = function()
      if #old > 0 then redis.call('HDEL', key, unpack(old)) end
      redis.call('HINCRBY', key, string.format('%.0f', current), cost)
      used, newest = used + cost, math.max(newest, current)
      redis.call('PEXPIRE', key, px(left(newest)))
    end,
    answer = function() return used, waiting, newest < oldest and 0 or left(newest) end,
  }
end
