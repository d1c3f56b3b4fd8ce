-- Examines some items of deleted queues. Answers with names of objects that may be released.
-- KEYS: set with the names of all such objects, prefix of queues.
-- ARGV: limit of the items to examine, limit of the names in the answer.
-- Answers {number of deleted queues with items that were not examined yet, names}.
local call, aside = redis.call, KEYS[1] .. ':aside'
local g = call('LINDEX', aside, 0)
if g then
  local name = string.match(g, ':%d+:(.*)$')
  local page = call('HRANDFIELD', g, ARGV[1], 'WITHVALUES')
  for i = 1, #page, 2 do
    if string.sub(page[i + 1], 1, 1) == 'o'
      and call('HEXISTS', KEYS[2] .. name .. ':i', page[i]) == 0 then
      call('SADD', KEYS[1], 'queue/' .. name .. '/' .. page[i])
    end
    call('HDEL', g, page[i])
  end
  if call('EXISTS', g) == 0 then call('LPOP', aside) end
end
return {call('LLEN', aside), call('SRANDMEMBER', KEYS[1], ARGV[2])}
