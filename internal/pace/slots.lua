-- Takes the next slots of a channel. This is the generic cell rate algorithm,
-- with a caller that waits instead of being refused.
--
-- The service levels share the slots by start-time fair queueing: each level has a
-- tag, which grows by one over its share with each push that is sent, and the level with
-- the least tag comes first. A worker sends what it was sent for since it last asked. The
-- worker itself decides which of its levels uses a slot. But if the level that comes
-- first waits at other workers only, this one takes no slot ahead of its time: the others
-- do, unless nothing is left there.
--
-- KEYS[1]  "used.at": when the taken slots are used up, and when this was
--          written, in microseconds. The key outlives them for a while.
-- KEYS[2]  the tags: of the level served last, of each level, and for each level when a
--          worker last had something waiting in it, in microseconds
-- ARGV[1]  the interval between slots, in microseconds
-- ARGV[2]  number of slots that may be used at once after a rest
-- ARGV[3]  maximum number of slots to take
-- ARGV[4]  maximum distance of the last slot from the first, in microseconds
-- ARGV[5]  how long a worker may have to wait for a slot, in microseconds
-- ARGV[6]  when the slots that the worker knows of are used up, in microseconds from
--          now; negative: in the past; empty: it knows of none
-- ARGV[7]  number of levels
-- ARGV[8]  how far a level may be behind its share, in pushes of the level with the
--          least share; then for each level its share, the number of pushes sent since
--          the worker last asked, and 1 if something waits in it, otherwise 0
--
-- Answers {the number of slots taken, microseconds until the first one, and until all
-- taken slots are used up, the tags in millionths}. If none was taken: {0, microseconds
-- until the next try, 0, the tags}.

local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted, close = tonumber(ARGV[3]), tonumber(ARGV[4])
local longest, known = tonumber(ARGV[5]), tonumber(ARGV[6])
local levels = tonumber(ARGV[7] or '0')
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local slack = (burst - 1) * interval
local stay = math.max(longest, 1000000)

-- The tags, and whether the level that comes first waits at this worker.
local answer, yields = {0, 0, 0}, false
if levels > 0 then
  local tags = {}
  for tag in string.gmatch(redis.call('GET', KEYS[2]) or '', '%S+') do
    tags[#tags + 1] = tonumber(tag)
  end
  if #tags ~= 1 + 2 * levels then
    for i = 1, 1 + 2 * levels do tags[i] = 0 end
  end
  local smallest = math.huge
  for i = 1, levels do
    local share, sent = tonumber(ARGV[6 + 3 * i]), tonumber(ARGV[7 + 3 * i])
    smallest = math.min(smallest, share)
    tags[1 + i] = tags[1 + i] + sent / share
    if sent > 0 then tags[1] = math.max(tags[1], tags[1 + i] - 1 / share) end
  end
  for i = 1, levels do
    tags[1 + i] = math.max(tags[1 + i], tags[1] - tonumber(ARGV[8]) / smallest)
  end
  local least
  for i = 1, levels do
    local here, seen = ARGV[8 + 3 * i] == '1', 1 + levels + i
    tags[seen] = math.min(tags[seen], now) -- the clock may have gone back
    local waits = now - tags[seen] <= stay -- at any worker
    if here then
      if not waits then tags[1 + i] = math.max(tags[1 + i], tags[1]) end
      tags[seen] = now
    end
    if (here or waits) and (not least or tags[1 + i] < least) then
      least, yields = tags[1 + i], not here
    end
  end
  local text = {}
  for i = 1, 1 + 2 * levels do text[i] = string.format('%.6f', tags[i]) end
  for i = 1, 1 + levels do answer[3 + i] = string.format('%.0f', tags[i] * 1000000) end
  redis.call('SET', KEYS[2], table.concat(text, ' '), 'PX', string.format('%.0f', math.ceil(stay / 1000) + 60000))
end

local used, owed, written = 0, -stay, 0
local u, at = string.match(redis.call('GET', KEYS[1]) or '', '(%d+)%.(%d+)')
if u then
  -- A clock that went back stood still: what was owed then is owed now.
  written = tonumber(at)
  used = tonumber(u) - math.max(written - now, 0)
  owed = used - now
end
if now - written > 20000 then
  -- Redis may have been started since then, and have lost slots that other workers
  -- still wait for. Take none until these are over, but for five seconds at most, so
  -- that a slower channel does not stop for hours. The uptime of Redis is known to a
  -- second. A Redis user that may not call INFO skips this.
  local info = redis.pcall('INFO', 'server')
  local runs = type(info) == 'string' and tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
  local over = runs and math.min(longest, 5000000) - (runs - 1) * 1000000 or 0
  if over > 0 then
    answer[2] = string.format('%.0f', over)
    return answer
  end
end
if known and known > owed + interval + 20000 then
  -- Redis has lost slots that workers wait for. Wait until they are used.
  used = now + longest + slack
end

local begin = math.max(now, used - slack)
if yields and begin > now + 2 * close then
  answer[2] = string.format('%.0f', begin - now - 2 * close)
  return answer
end
local taken = 0
while taken == 0 or taken < wanted and used - slack <= begin + close do
  used = math.max(used, now) + interval
  taken = taken + 1
end
redis.call('SET', KEYS[1], string.format('%.0f.%.0f', used, now), 'PX', string.format('%.0f', math.ceil((used - now + stay) / 1000)))
answer[1], answer[2], answer[3] = taken, string.format('%.0f', begin - now), string.format('%.0f', used - now)
return answer
