-- Drops the records before a snapshot, unless another scheduler has claimed an epoch.
-- KEYS: cluster, journal. ARGV: epoch, sequence of the first record to keep.
if tonumber(redis.call('HGET', KEYS[1], 'epoch') or 0) ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'base', ARGV[2])
return redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2] .. '-0')
