-- Appends entries to a channel: all of them or none, next to each other. The bound, the floor and
-- the change feed are updated in the same script.
-- KEYS: stream, bounds, floors, change feed.
-- ARGV: channel, bound (0: keep it), token, is a retry (0, 1), time in ns, entries to search for
-- the token of a retry, channels at most, bound of a new channel, dropped entries to look at for
-- the floor, bound of the change feed, then the values.
-- Answers {"ok", id of the last entry} | {"full"}: there are too many channels.
-- The floor is the id after which no entry was dropped. It is "-" when more entries were dropped
-- than the script looks at: no entry has this id. The token stands in the last entry.
local s, name, token, ns = KEYS[1], ARGV[1], ARGV[3], ARGV[5]
local look_back, channels_max, default_max = ARGV[6], tonumber(ARGV[7]), ARGV[8]
local floor_max, tail_max = tonumber(ARGV[9]), ARGV[10]
if ARGV[4] == '1' then
  for _, e in ipairs(redis.call('XREVRANGE', s, '+', '-', 'COUNT', look_back)) do
    if e[2][5] == 'k' and e[2][6] == token then return {'ok', e[1]} end
  end
end
local max = tonumber(redis.call('HGET', KEYS[2], name))
if not max and redis.call('HLEN', KEYS[2]) >= channels_max then return {'full'} end
if ARGV[2] ~= '0' then
  max = tonumber(ARGV[2])
  redis.call('HSET', KEYS[2], name, ARGV[2])
elseif not max then
  max = tonumber(default_max)
  redis.call('HSET', KEYS[2], name, default_max)
end
for i = 11, #ARGV - 1 do redis.call('XADD', s, '*', 'v', ARGV[i], 't', ns) end
local last = redis.call('XADD', s, '*', 'v', ARGV[#ARGV], 't', ns, 'k', token)
local over = redis.call('XLEN', s) - max
if over > 0 then
  local floor = '-'
  if over <= floor_max then
    local cut = redis.call('XRANGE', s, '-', '+', 'COUNT', over)
    floor = cut[#cut][1]
  end
  redis.call('HSET', KEYS[3], name, floor)
  redis.call('XTRIM', s, 'MAXLEN', '=', max)
end
redis.call('XADD', KEYS[4], 'MAXLEN', '~', tail_max, '*', 'c', name)
return {'ok', last}
