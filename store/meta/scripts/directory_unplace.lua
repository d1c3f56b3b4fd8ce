-- Removes the place of an object if the place names the node in ARGV.
-- KEYS: places. ARGV: object, node (encoded as in a place).
-- A place is a MessagePack list. Its first byte is the list's tag. Then come an integer, whose
-- first byte tells its length, and the node.
local had = redis.call('HGET', KEYS[1], ARGV[1])
if not had then return 0 end
local bytes = {[204] = 2, [205] = 3, [206] = 5, [207] = 9}
local at = 2 + (bytes[string.byte(had, 2)] or 1)
if string.sub(had, at, at + #ARGV[2] - 1) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
