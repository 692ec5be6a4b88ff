-- The tail of every script: looks at all limits, and charges all or none.
--
-- KEYS[i]  the state of limit i; all in one cluster slot, none twice
-- ARGV[1]  charge, or look
-- ARGV[2…] for each limit: the name of its algorithm, the cost, the algorithm's numbers
--
-- Answers a flat list: for each limit 1 if it allows the cost, 0 if not, and then what its algorithm answers.

local limits, allowed = {}, true
for i, key in ipairs(KEYS) do
  local look = algorithms[word()]
  limits[i] = look(key, number())
  allowed = allowed and limits[i].allowed
end

local answer = {}
for _, limit in ipairs(limits) do
  if allowed and ARGV[1] == 'charge' then limit.charge() end
  answer[#answer + 1] = limit.allowed and 1 or 0
  for _, n in ipairs({limit.answer()}) do answer[#answer + 1] = n end
end
return answer
