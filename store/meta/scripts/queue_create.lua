-- Makes a queue, or changes its bounds.
-- ARGV[1] to ARGV[4]: see queue.lua. Then: items at most (0: the bound is kept), deliveries at most
-- (0: the bound is kept), queues at most, items at most in a new queue by default, deliveries at
-- most by default.
-- Lease numbers begin at the time at which the queue was made, so a receipt of a deleted queue is
-- not valid in a later queue of the same name.
if not max then
  if call('ZCARD', KEYS[2]) >= tonumber(ARGV[7]) then return {'many'} end
  local lease = string.format('%.0f', now * 1000)
  call('HSET', h, 'max', ARGV[8], 'deliveries', ARGV[9], 'lease', lease)
  call('ZADD', KEYS[2], 0, name)
end
if ARGV[5] ~= '0' then call('HSET', h, 'max', ARGV[5]) end
if ARGV[6] ~= '0' then call('HSET', h, 'deliveries', ARGV[6]) end
mark()
return {'ok', facts(), {}}
