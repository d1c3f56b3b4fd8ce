-- Leases items.
-- ARGV[1] to ARGV[4]: see queue.lua. Then: items at most, lease in ms, bytes after which no further
-- item is taken.
if not max then return {'none'} end
expire()
local out, bytes = {}, 0
while #out < tonumber(ARGV[5]) and bytes < tonumber(ARGV[7]) do
  local id = call('ZPOPMIN', w)[1]
  if not id then break end
  local v = call('HGET', it, id)
  if v then
    local lease = string.format('%.0f', call('HINCRBY', h, 'lease', 1))
    call('ZADD', l, now + ARGV[6], id)
    call('HSET', r, id, lease)
    out[#out + 1] = {id, v, lease, call('HINCRBY', d, id, 1)}
    bytes = bytes + #v
  end
end
local over = closed and call('HLEN', it) == 0 and 1 or 0
return done({'ok', over, next_ms(), out})
