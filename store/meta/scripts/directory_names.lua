-- Returns one page of names, ordered by bytes. KEYS: names, order. ARGV: min, max, count.
-- Answers {name, record, name, record, ...}.
local names = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local out = {}
for _, name in ipairs(names) do
  local record = redis.call('HGET', KEYS[1], name)
  if record then out[#out + 1] = name; out[#out + 1] = record end
end
return out
