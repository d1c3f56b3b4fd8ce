-- Removes a name. KEYS: names, order. ARGV: name, object ("": any).
-- Answers the record that was there, or nil: there was no such name, or the name means another
-- object.
local had = redis.call('HGET', KEYS[1], ARGV[1])
if had and ARGV[2] ~= '' and string.sub(had, 4, 19) ~= ARGV[2] then return false end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return had
