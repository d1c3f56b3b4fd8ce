-- Returns one page of queues.
-- KEYS: prefix of queues, all queues.
-- ARGV: lower bound of the names, rows at most.
-- All scores are 0, so the names are sorted by bytes.
local out, call, rows = {}, redis.call, tonumber(ARGV[2])
local names = call('ZRANGEBYLEX', KEYS[2], ARGV[1], '+', 'LIMIT', 0, rows + 1)
local more = #names > rows and '1' or '0'
for i, name in ipairs(names) do
  if i > rows then break end
  local q = KEYS[1] .. name
  local c = call('HMGET', q .. ':h', 'max', 'seq', 'acked', 'closed')
  if c[1] then
    out[#out + 1] = {name, c[1], call('ZCARD', q .. ':w'), call('ZCARD', q .. ':l'),
      call('LLEN', q .. ':x'), c[2] or '0', c[3] or '0', c[4] or '0'}
  end
end
return {'ok', out, more, names[math.min(#names, rows)] or ''}
