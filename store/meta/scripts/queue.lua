-- The common first part of the scripts for one queue: the text of queue_<operation>.lua follows it.
-- KEYS: queue, all queues, change feed, names of objects that may be released.
-- ARGV: name, bound of the change feed, limit of the dead items that are kept, limit of the expired
-- leases that one call ends, then the arguments of the operation.
-- The scripts add an entry to the change feed when a waiting call may go on. That is when the first
-- item can be taken, a full queue has room again, or a closed queue has become empty.
local q, name, tail_max = KEYS[1], ARGV[1], ARGV[2]
local dead_max, expire_max = tonumber(ARGV[3]), ARGV[4]
local h, w, it, d = q .. ':h', q .. ':w', q .. ':i', q .. ':d'
local l, r, p, x = q .. ':l', q .. ':r', q .. ':p', q .. ':x'
local call = redis.call
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local conf = call('HMGET', h, 'max', 'deliveries', 'closed')
local max, tries, closed = tonumber(conf[1]), tonumber(conf[2]), conf[3] == '1'
local function mark() call('XADD', KEYS[3], 'MAXLEN', '~', tail_max, '*', 'q', name) end
local function gone(id)
  local v = call('HGET', it, id)
  if v and string.sub(v, 1, 1) == 'o' then
    call('SADD', KEYS[4], 'queue/' .. name .. '/' .. id)
  end
  call('HDEL', it, id)
  call('HDEL', d, id)
end
local function dead(id, why)
  call('LPUSH', x, t[1] .. string.format('%06d', t[2]) .. '000\n' .. id .. '\n' .. why)
  call('LTRIM', x, 0, dead_max - 1)
  gone(id)
end
local function back(id)
  local n = tonumber(call('HGET', d, id) or '0')
  if n >= tries then
    dead(id, 'taken ' .. n .. ' times and never acknowledged')
    return
  end
  local v = call('HGET', it, id)
  if v then call('ZADD', w, string.match(v, '^.(%d+):'), id) end
end
local function expire()
  for _, id in ipairs(call('ZRANGEBYSCORE', l, '-inf', now, 'LIMIT', 0, expire_max)) do
    call('ZREM', l, id)
    call('HDEL', r, id)
    back(id)
  end
end
local function next_ms()
  local first = call('ZRANGE', l, 0, 0, 'WITHSCORES')
  return first[2] and math.max(1, first[2] - now) or 0
end
local w0, n0 = call('ZCARD', w), call('HLEN', it)
local function done(out)
  local w1, n1 = call('ZCARD', w), call('HLEN', it)
  if max and ((w0 == 0 and w1 > 0) or (n0 >= max and n1 < max)
    or (closed and n0 > 0 and n1 == 0)) then mark() end
  return out
end
local function facts()
  local c = call('HMGET', h, 'max', 'seq', 'acked', 'closed')
  return {name, c[1], call('ZCARD', w), call('ZCARD', l), call('LLEN', x), c[2] or '0',
    c[3] or '0', c[4] or '0'}
end
