-- Puts an item.
-- ARGV[1] to ARGV[4]: see queue.lua. Then: id, kind ("o": an object, "v": a value), value, number
-- of ids that the queue remembers.
-- An item is not put again if an item with its id is in the queue, or was put there recently.
if not max then return {'none'} end
local id = ARGV[5]
local live = call('HEXISTS', it, id)
if live == 1 or call('ZSCORE', p, id) then return {'there', live} end
if closed then return {'closed'} end
expire()
if call('HLEN', it) >= max then return done({'full', next_ms()}) end
local seq = call('HINCRBY', h, 'seq', 1)
call('SREM', KEYS[4], 'queue/' .. name .. '/' .. id)
call('HSET', it, id, ARGV[6] .. seq .. ':' .. ARGV[7])
call('ZADD', w, seq, id)
call('ZADD', p, seq, id)
if seq % 256 == 0 then call('ZREMRANGEBYRANK', p, 0, -ARGV[8] - 1) end
return done({'ok'})
