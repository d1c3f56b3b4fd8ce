-- Gives an object a name, unless the name means another object and `replace` is 0.
-- KEYS: names, order. ARGV: name, record, object (16 bytes), replace (0, 1).
-- The object id stands first in a record, behind a list tag and an ext header (3 bytes).
-- Answers {"exists" | "ok", record}.
local had = redis.call('HGET', KEYS[1], ARGV[1])
if had and ARGV[4] ~= '1' and string.sub(had, 4, 19) ~= ARGV[3] then return {'exists', had} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return {'ok', ARGV[2]}
