-- Writes or deletes the record of a training, unless a later trainer has taken an epoch.
-- KEYS: records, documents, epoch. ARGV: epoch, id ("": check the epoch only), record ("": delete),
-- document ("": keep).
local e = tonumber(redis.call('GET', KEYS[3]) or '0')
local mine = tonumber(ARGV[1])
if e > mine then return 'refused' end
if e < mine then redis.call('SET', KEYS[3], ARGV[1]) end
if ARGV[2] == '' then return 'ok' end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[2])
  redis.call('HDEL', KEYS[2], ARGV[2])
  return 'ok'
end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[2], ARGV[2], ARGV[4]) end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return 'ok'
