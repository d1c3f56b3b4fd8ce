-- Reads entries of a channel after an id, in steps, so that an answer has a bound. If the channel
-- has an entry after the id, the answer has at least one.
-- KEYS: stream, floors. ARGV: channel, id ("": from the start, "$": the newest id only), entries at
-- most, bytes after which no further step is read, entries of one step.
-- Answers {"ok" | "more" | "gone", oldest id, id, entries}. The second id is the newest id for "$",
-- "" with "gone", and otherwise the id of ARGV. "gone": entries after the id were dropped. "more":
-- the channel has entries after the last entry of the answer.
local s, after = KEYS[1], ARGV[2]
local bytes_max, step = tonumber(ARGV[4]), tonumber(ARGV[5])
local first = redis.call('XRANGE', s, '-', '+', 'COUNT', 1)
local oldest = first[1] and first[1][1] or ''
if after == '$' then
  local last = redis.call('XREVRANGE', s, '+', '-', 'COUNT', 1)
  return {'ok', oldest, last[1] and last[1][1] or '', {}}
end
if after ~= '' and redis.call('HGET', KEYS[2], ARGV[1]) ~= after
  and #redis.call('XRANGE', s, after, after) == 0 then return {'gone', oldest, '', {}} end
local out, bytes, wanted, from = {}, 0, tonumber(ARGV[3]), after == '' and '-' or '(' .. after
while #out < wanted and bytes < bytes_max do
  local n = math.min(wanted - #out, step)
  local page = redis.call('XRANGE', s, from, '+', 'COUNT', n)
  for _, e in ipairs(page) do out[#out + 1] = e; bytes = bytes + #e[2][2] end
  if #page < n then break end
  from = '(' .. page[#page][1]
end
local last = redis.call('XREVRANGE', s, '+', '-', 'COUNT', 1)
local seen = #out > 0 and out[#out][1] or after
return {last[1] and last[1][1] ~= seen and 'more' or 'ok', oldest, after, out}
