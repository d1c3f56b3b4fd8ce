-- Ends leases.
-- ARGV[1] to ARGV[4]: see queue.lua. Then: how (ack: the item is done, nack: it is put back, dead:
-- it becomes a dead item), reason for dead, receipts.
-- Answers {"ok", number of receipts that were valid}.
if not max then return {'none'} end
expire()
local known = 0
for i = 7, #ARGV do
  local lease, id = string.match(ARGV[i], '^(%d+)%-(.*)$')
  if id and call('HGET', r, id) == lease then
    known = known + 1
    call('ZREM', l, id)
    call('HDEL', r, id)
    if ARGV[5] == 'ack' then gone(id)
    elseif ARGV[5] == 'dead' then dead(id, ARGV[6])
    else back(id) end
  end
end
if ARGV[5] == 'ack' then call('HINCRBY', h, 'acked', known) end
return done({'ok', known})
