-- The tail of every script: takes from all limits, or from none; or refunds all, or resets all; and returns their states.
--
-- KEYS[i]  the state of limit i; all in one cluster slot, none twice
-- ARGV[1]  take, peek, refund or reset
-- ARGV[2…] for each limit: the name of its algorithm, the cost, the algorithm's numbers
--
-- Answers a flat list: for each limit 1 if it allows the cost, 0 if not, and the three numbers of its algorithm. After a refund or
-- a reset these are what a peek would answer.

local verb = ARGV[1]
if verb == 'take' and #KEYS == 1 then -- nearly all are like this
  read = 3
  return {algorithms[ARGV[2]](KEYS[1], tonumber(ARGV[3]), verb)}
end

local answer = {}

-- each has every limit act, and returns whether all have room.
local function each(act)
  local allowed, last = true, 0
  read = 1
  for _, key in ipairs(KEYS) do
    local algorithm = algorithms[ARGV[read + 1]]
    read = read + 1
    answer[last + 1], answer[last + 2], answer[last + 3], answer[last + 4] = algorithm(key, number(), act)
    allowed, last = allowed and answer[last + 1] == 1, last + 4
  end
  return allowed
end

if verb == 'refund' then each(verb) end
if verb == 'reset' then redis.call('DEL', unpack(KEYS)) end
if each() and verb == 'take' then each(verb) end
return answer
