-- Claims the next epoch of the journal, for a scheduler that starts.
-- KEYS: cluster, staging.
-- ARGV: cluster id to use if Redis has no cluster id yet, incarnation, format.
-- Answers {id, epoch, sequence, base}, or {format} if Redis has a later format.
-- Drops the entries that an earlier scheduler left in the staging stream.
local format = tonumber(redis.call('HGET', KEYS[1], 'format') or 0)
if format > tonumber(ARGV[3]) then return {format} end
redis.call('HSET', KEYS[1], 'format', ARGV[3])
redis.call('HSETNX', KEYS[1], 'id', ARGV[1])
redis.call('DEL', KEYS[2])
local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch') or 0) + 1
redis.call('HSET', KEYS[1], 'epoch', string.format('%d', epoch), 'incarnation', ARGV[2])
local c = redis.call('HMGET', KEYS[1], 'id', 'sequence', 'base')
return {c[1], epoch, tonumber(c[2] or 0), tonumber(c[3] or 1)}
