-- Removes the location of an object, if it is the one on this node.
-- KEYS: locations. ARGV: object, the node as it stands in a record: behind the list's tag and an
-- integer, whose length its first byte tells.
local had = redis.call('HGET', KEYS[1], ARGV[1])
if not had then return 0 end
local bytes = {[204] = 2, [205] = 3, [206] = 5, [207] = 9}
local at = 2 + (bytes[string.byte(had, 2)] or 1)
if string.sub(had, at, at + #ARGV[2] - 1) ~= ARGV[2] then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
